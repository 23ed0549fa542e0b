"""The ways in which a teacher grades, as the guide shows them: its snippets are run as they stand there."""

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as xml

import nbformat
import pytest
from conftest import ROOT, target

GUIDE = (ROOT / "notebooks/exercises/README.md").read_text()
RIGHT = "kubectl create deployment web --image=nginx --replicas=3"
WRONG = "kubectl create deployment web --image=nginx --replicas=2"


def snippet(heading, language):
    """The first fenced piece of code in that language below a heading of the guide."""
    return re.search(rf"### {heading}\n.*?```{language}\n(.*?)```", GUIDE, re.DOTALL)[1]


@pytest.fixture
def class_folder(tmp_path):
    """A folder with two learners' notebooks, one right and one wrong."""
    for name, answer in {"ami": RIGHT, "ben": WRONG}.items():
        cells = [nbformat.v4.new_code_cell(text) for text in ("%exercise 01-keep-three", answer, "%check")]
        path = tmp_path / "submissions" / name / "keep-three.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return tmp_path


def run(folder, *command, **environment):
    path = f"{target}{os.pathsep}{os.environ['PATH']}"
    home = os.environ | {"PATH": path} | environment
    return subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, timeout=300)


def test_pytest_asks_the_grader(class_folder):
    (class_folder / "test_answers.py").write_text(snippet("With pytest", "python"))
    done = run(class_folder, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_answers.py")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_answer[submissions/ben/keep-three.ipynb]" in done.stdout
    assert "three-ready" in done.stdout, "it says which check does not hold"


def test_the_workflow_grades_and_keeps_the_reports(class_folder):
    [line] = re.findall(r"- run: \.kernetes-source/target/release/(kernetes .*)", snippet("On GitHub", "yaml"))
    done = run(class_folder, *shlex.split(line))
    assert done.returncode == 1, done.stdout + done.stderr
    grades = json.loads((class_folder / "grades.json").read_text())["grades"]
    assert [grade["verdict"] for grade in grades] == ["passed", "wrong"]
    suites = xml.parse(class_folder / "grades.xml").getroot()
    failed = [suite.get("name") for suite in suites.iter("testsuite") if suite.find(".//failure") is not None]
    assert len(failed) == 1 and "ben" in failed[0], failed
    built = re.findall(r"--manifest-path \.kernetes-source/(\S+)", snippet("On GitHub", "yaml"))
    assert built and all((ROOT / manifest).is_file() for manifest in built)


def test_a_missing_compiler_is_no_wrong_answer(class_folder):
    cells = [nbformat.v4.new_code_cell(text) for text in ("%exercise 25-own-replica-set", "%%rust\nlet x = 1;")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), class_folder / "rust.ipynb")
    done = run(class_folder, "kernetes", "grade", "rust.ipynb", "--json", "rust.json", KERNETES_RUST_CELLS="nowhere")
    assert done.returncode == 3, done.stdout + done.stderr
    [grade] = json.loads((class_folder / "rust.json").read_text())["grades"]
    assert grade["verdict"] == "broken"
