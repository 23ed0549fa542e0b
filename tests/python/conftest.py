"""Builds the kernel and tells Jupyter about it, for this test run only.

    python3 -m venv .kernetes/venv && .kernetes/venv/bin/pip install -r tests/python/requirements.txt
    .kernetes/venv/bin/pytest tests/python
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
jupyter_path = tempfile.mkdtemp(prefix="kernetes-test-")


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
