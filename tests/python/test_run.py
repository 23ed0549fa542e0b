"""`kernetes run` writes what nbclient would write with the same kernel, byte for byte."""

import os
import subprocess
import tempfile

import nbformat
import pytest
from conftest import ROOT, target
from nbclient import NotebookClient

# Those with Rust cells are run where the compiler for them is built.
LESSONS = [path for path in sorted((ROOT / "notebooks/ja").glob("*.ipynb")) if "%%rust" not in path.read_text()]


def run(notebook, *arguments):
    return subprocess.run([target / "kernetes", "run", notebook, *arguments], capture_output=True, text=True)


def executed_by_nbclient(path):
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    # As Jupyter's server does, which is how the kernel knows in which language the notebook is written.
    session = os.environ | {"JPY_SESSION_NAME": str(path), "KERNETES_PROGRESS": ""}
    with tempfile.TemporaryDirectory() as folder:
        # What cells write to files is not for the project's folder.
        NotebookClient(notebook, kernel_name="kernetes", record_timing=False).execute(env=session, cwd=folder)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return nbformat.writes(notebook) + "\n"


def joined(outputs):
    """Neighbouring pieces of a stream as one, as JupyterLab shows them, however long the kernel took between them."""
    whole = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def written(path, *cells):
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    notebook.metadata["kernelspec"] = {"name": "kernetes", "display_name": "K"}
    nbformat.write(notebook, path)
    return path


def test_a_notebook_is_written_as_nbclient_would(tmp_path):
    code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    skipped = code("kubectl version", metadata={"tags": ["skip-execution"]})
    notebook = written(tmp_path / "a.ipynb", markdown("# 題\n\n文。"), code("# nothing"), code(" "), skipped)
    assert run(notebook, "--out", tmp_path / "b.ipynb").returncode == 0
    assert (tmp_path / "b.ipynb").read_text() == executed_by_nbclient(notebook)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_in_jupyter_gives_the_committed_bytes(lesson):
    assert executed_by_nbclient(lesson) == lesson.read_text()


def test_what_follows_the_wall_clock_is_refused_where_a_notebook_is_replayed(tmp_path):
    notebook = written(tmp_path / "a.ipynb", nbformat.v4.new_code_cell("%live 10x", id="live"))
    told = run(notebook, "--lang", "en")
    assert told.returncode == 1
    assert "cell live: NotRepeatable: %live follows the wall clock" in told.stderr
    assert "NotRepeatable" not in executed_by_nbclient(notebook)


def test_what_is_no_notebook_is_wrong_usage(tmp_path):
    (tmp_path / "a.ipynb").write_text("{}")
    told = run(tmp_path / "a.ipynb")
    assert told.returncode == 2
    assert told.stderr.startswith(f"kernetes: {tmp_path}{os.sep}a.ipynb: not a notebook: ")
