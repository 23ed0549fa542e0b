"""Helm, built from its Go module, against `kernetes serve`: a release from install to uninstall."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import target

MODULE = "helm.sh/helm/v4/cmd/helm@v4.3.1"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: '7'\n",
    "values.yaml": "replicas: 1\nmotto: fresh\n",
    "templates/config.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-motto}
data: {text: {{ .Values.motto | quote }}, kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}}
""",
    "templates/web.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: web, image: nginx}]}
""",
}


@pytest.fixture(scope="module")
def program():
    """Built once, beside the other things that tests need."""
    folder = target.parent / "tests/helm"
    version = folder / "version"
    if not (version.exists() and version.read_text() == MODULE):
        if shutil.which("go") is None:
            reason = "go is not installed, so Helm cannot be built"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "install", MODULE], env=os.environ | {"GOBIN": str(folder.absolute())}, check=True)
        version.write_text(MODULE)
    return folder / "helm"


@pytest.fixture(scope="module")
def helm(program, kubeconfig, tmp_path_factory):
    home = tmp_path_factory.mktemp("helm")
    for name, text in CHART.items():
        file = home / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def run(*arguments):
        command = [program, *arguments]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def test_a_release_from_install_to_uninstall(helm):
    assert "STATUS: deployed" in helm("install", "corner", "./shop", "--wait", "--timeout=90s")
    [release] = json.loads(helm("list", "-o", "json"))
    assert (release["name"], release["revision"], release["status"]) == ("corner", "1", "deployed")
    assert "kubernetes: v1.36" in helm("get", "manifest", "corner").replace('"', "")

    changed = ("--set=replicas=2", "--set=motto=cheap")
    assert "Happy Helming" in helm("upgrade", "corner", "./shop", *changed, "--wait", "--timeout=90s")
    assert "motto: cheap" in helm("get", "values", "corner")
    history = json.loads(helm("history", "corner", "-o", "json"))
    assert [(entry["revision"], entry["status"]) for entry in history] == [(1, "superseded"), (2, "deployed")]

    assert "Rollback was a success" in helm("rollback", "corner", "1", "--wait", "--timeout=90s")
    assert "text: \"fresh\"" in helm("get", "manifest", "corner")
    assert 'release "corner" uninstalled' in helm("uninstall", "corner", "--wait", "--timeout=90s")
    assert json.loads(helm("list", "-o", "json")) == []
