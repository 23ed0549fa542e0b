"""Builds the kernel and tells Jupyter about it, for this test run only.

    python3 -m venv .kernetes/venv && .kernetes/venv/bin/pip install -r tests/python/requirements.txt
    .kernetes/venv/bin/pytest tests/python
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
jupyter_path = tempfile.mkdtemp(prefix="kernetes-test-")


@contextlib.contextmanager
def serving(kubeconfig, *options):
    """`kernetes serve` for as long as the block lasts; its kubeconfig is there when the block begins."""
    command = [target / "kernetes", "serve", "--kubeconfig-out", kubeconfig, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            # The address is printed just before the kubeconfig is written.
            assert server.stdout.readline().startswith("https://")
            until(lambda: kubeconfig.exists() or server.poll() is not None)
            assert server.poll() is None, "the server has ended"
            yield
        finally:
            server.terminate()


def until(holds, seconds=60):
    """Waits until something holds; returns what `holds` returned."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {holds.__name__}"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """A server of this module's own."""
    path = tmp_path_factory.mktemp("home") / "kubeconfig"
    with serving(path):
        yield path


def pytest_configure():
    subprocess.run(["cargo", "build", "-q", "-p", "kernetes", "--bins", "--examples"], cwd=ROOT, check=True)
    subprocess.run([target / "kernetes", "install", "--prefix", jupyter_path], check=True, stdout=subprocess.DEVNULL)
    kernels = Path(jupyter_path) / "share/jupyter/kernels"
    (kernels / "words").mkdir()
    spec = json.loads((kernels / "kernetes/kernel.json").read_text())
    spec["argv"] = [str(target / "examples/words"), "{connection_file}"]
    (kernels / "words/kernel.json").write_text(json.dumps(spec))
    os.environ["JUPYTER_PATH"] = str(Path(jupyter_path) / "share/jupyter")


def pytest_unconfigure():
    shutil.rmtree(jupyter_path, ignore_errors=True)
