"""Notebooks executed as `jupyter execute`, nbconvert and the graders do, on the kernel of words."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def test_nbclient_runs_a_notebook():
    done = NotebookClient(notebook("print a\nshow b\nclear\nshow c", "result d", "update e"), kernel_name="words").execute()
    outputs = [[output.get("data", output.get("text")) for output in cell.outputs] for cell in done.cells]
    assert outputs == [[{"text/plain": "e"}], [{"text/plain": "d"}], []]
    assert [cell.execution_count for cell in done.cells] == [1, 2, 3]


def test_nbclient_stops_at_an_error_unless_it_is_allowed():
    with pytest.raises(CellExecutionError, match="why"):
        NotebookClient(notebook("fail why", "print a"), kernel_name="words").execute()
    done = NotebookClient(notebook("fail why", "print a"), kernel_name="words", allow_errors=True).execute()
    assert [cell.outputs[0].output_type for cell in done.cells] == ["error", "stream"]


def test_nbclient_interrupts_a_cell_that_takes_too_long_and_goes_on():
    client = NotebookClient(notebook("sleep 60", "print a"), kernel_name="words", timeout=1, interrupt_on_timeout=True)
    client.allow_errors = True
    done = client.execute()
    assert [cell.outputs[0].output_type for cell in done.cells] == ["error", "stream"]
