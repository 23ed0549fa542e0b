"""The kernel as people install it: a wheel of the dev build, in an environment of its own that sees this one's Jupyter."""

import csv
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

maturin = Path(sysconfig.get_path("scripts")) / "maturin"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(folder):
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An environment with the wheel; uninstalling it leaves the environment as it was."""
    if not maturin.exists():
        pytest.skip("maturin is not installed")
    dist, home = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("environment")
    run(maturin, "build", "--quiet", "--profile", "dev", "--auditwheel", "skip", "--out", dist, cwd=ROOT)
    run(sys.executable, "-m", "venv", "--without-pip", home)
    [packages] = home.glob("lib/python*/site-packages")
    (packages / "jupyter_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    before = files(home)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", home / "bin/python"]
    [wheel] = dist.glob("kernetes-*.whl")
    run(*pip, "install", "--quiet", "--no-deps", wheel)
    yield home
    run(*pip, "uninstall", "--quiet", "--yes", "kernetes")
    assert files(home) == before


@pytest.fixture
def jupyter(place, tmp_path):
    """Runs a program of Jupyter's with that environment's interpreter, in a new folder that is its home, too."""

    def module(name, *arguments):
        path = os.pathsep.join([str(place / "bin"), sysconfig.get_path("scripts"), "/usr/bin", "/bin"])
        # What Jupyter's own packages have put beside themselves, such as nbconvert's templates.
        shared = str(Path(sysconfig.get_path("data")) / "share/jupyter")
        home = {"HOME": str(tmp_path), "PATH": path, "JUPYTER_PATH": shared, "LANG": "C.UTF-8"}
        return run(place / "bin/python", "-m", name, *arguments, cwd=tmp_path, env=home)

    return module


def notebook(path, *cells):
    """Cells are code, or code and its metadata."""
    pairs = [cell if isinstance(cell, tuple) else (cell, {}) for cell in cells]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code, metadata=about) for code, about in pairs])
    book.metadata.kernelspec = {"name": "kernetes", "display_name": "Kubernetes (Kernetes)", "language": "kubernetes"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)


def outputs(path):
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in nbformat.read(path, 4).cells]


def test_jupyter_knows_the_kernel(jupyter, place):
    known = jupyter("jupyter_client.kernelspecapp", "list")
    assert str(place / "share/jupyter/kernels/kernetes") in known
    assert run(place / "bin/kernetes", "--version").startswith("kernetes ")


def test_papermill_runs_a_notebook_with_parameters(jupyter, tmp_path):
    notebook(tmp_path / "in.ipynb", ("%nodes 2", {"tags": ["parameters"]}), "kubectl get nodes -o name")
    assert "nodes: Unknown type (default 2)" in jupyter("papermill", "in.ipynb", "--help-notebook")
    jupyter("papermill", "in.ipynb", "out.ipynb", "-p", "nodes", "5")
    executed = nbformat.read(tmp_path / "out.ipynb", 4)
    assert executed.cells[1].source == "# Parameters\n%nodes 5\n"
    assert outputs(tmp_path / "out.ipynb")[-1].split() == [f"node/node-{n}" for n in range(1, 6)]


def test_jupytext_and_nbconvert_take_notebooks_there_and_back(jupyter, tmp_path):
    notebook(tmp_path / "a.ipynb", "kubectl run web --image=nginx", "%plot pods")
    jupyter("jupytext", "--to", "md:myst", "a.ipynb")
    (tmp_path / "a.ipynb").unlink()
    jupyter("jupytext", "--to", "ipynb", "--execute", "a.md")
    assert "pod/web created" in outputs(tmp_path / "a.ipynb")[0]
    jupyter("nbconvert", "--to", "html", "--execute", "a.ipynb")
    assert "pod/web created" in (tmp_path / "a.html").read_text()


def nbgrader_cell(name, **about):
    usual = {"schema_version": 3, "cell_type": "code", "grade": False, "solution": False, "locked": True, "task": False}
    return {"nbgrader": usual | {"grade_id": name} | about}


def test_nbgrader_hides_the_solution_and_gives_points(jupyter, tmp_path):
    right = "kubectl create deployment web --image=nginx --replicas=3"
    notebook(
        tmp_path / "source/ps1/keep-three.ipynb",
        ("%exercise 01-keep-three", nbgrader_cell("start")),
        (f"### BEGIN SOLUTION\n{right}\n### END SOLUTION", nbgrader_cell("answer", solution=True, locked=False)),
        ("%check --score 3", nbgrader_cell("check", grade=True, points=3)),
    )
    jupyter("nbgrader", "generate_assignment", "ps1", "--create")
    released = nbformat.read(tmp_path / "release/ps1/keep-three.ipynb", 4)
    assert released.cells[1].source == "# your answer"

    answers = {"ami": right, "ben": released.cells[1].source, "cy": "kubectl run web --image=nginx"}
    for learner, answer in answers.items():
        released.cells[1].source = answer
        path = tmp_path / "submitted" / learner / "ps1/keep-three.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(released, path)
    assert "passes all the tests" in jupyter("nbgrader", "validate", "submitted/ami/ps1/keep-three.ipynb")
    assert "failed" in jupyter("nbgrader", "validate", "submitted/ben/ps1/keep-three.ipynb")

    jupyter("nbgrader", "autograde", "ps1", "--create")
    jupyter("nbgrader", "export")
    with open(tmp_path / "grades.csv") as grades:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(grades)}
    assert scores["ami"] == 3 and scores["ben"] < 3 and scores["cy"] < 3
    jupyter("nbgrader", "generate_feedback", "ps1")
    assert (tmp_path / "feedback/cy/ps1/keep-three.html").exists()


def test_nbmake_runs_notebooks_as_tests(jupyter, tmp_path):
    notebook(tmp_path / "good.ipynb", "kubectl get nodes")
    assert "1 passed" in jupyter("pytest", "--nbmake", "good.ipynb")
