"""`%cluster use`: a notebook whose cells speak to a real API server."""

import nbformat
import pytest
from nbclient import NotebookClient

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx}]
"""


@pytest.fixture(scope="module")
def cell(kubeconfig):
    """Runs a cell of one notebook that uses the server; returns what it shows, pictures as SVG, and its error."""
    client = NotebookClient(nbformat.v4.new_notebook(), kernel_name="kernetes", allow_errors=True, timeout=120)

    def run(code):
        client.nb.cells.append(nbformat.v4.new_code_cell(code))
        outputs = client.execute_cell(client.nb.cells[-1], len(client.nb.cells) - 1).outputs
        parts = []
        for output in outputs:
            data = output.get("data", {})
            told = [output.get("text", ""), data.get("text/plain", ""), data.get("image/svg+xml", "")]
            parts.append("".join(told) + output.get("evalue", ""))
        return "".join(parts)

    with client.setup_kernel():
        run("%lang en")
        assert "node-3" in run("kubectl get nodes")
        assert "what you do here is real; %cluster sim goes back" in run(f"%cluster use {kubeconfig}")
        yield run
        assert run("%cluster sim") == "the simulated cluster (3 nodes, seed 1)\n"
        assert "No resources found" in run("kubectl get deployments")


def test_a_manifest_is_applied_told_and_drawn(cell):
    told = cell(WEB.replace("REPLICAS", "2"))
    assert told.startswith("deployment.apps/web created\n")
    assert "kube-controller-manager" in told or "kube-scheduler" in told
    assert "holds after" in cell("%until deployment/web ready within 60s")
    assert cell("kubectl get deployment web -o jsonpath={.status.readyReplicas}") == "2"
    drawn = cell("%plot pods deployment/web")
    assert "<svg" in drawn and "web-" in drawn
    assert "create deployments default/web" in cell("%trace 50 deployment/web")
    assert "configured" in cell(WEB.replace("REPLICAS", "3").strip())
    assert "3 → 3" not in cell("%plot desired deployment/web")


def test_a_cell_with_one_wrong_object_changes_nothing(cell):
    wrong = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {}"
    assert "spec.containers" in cell(wrong)
    assert '"good" not found' in cell("kubectl get configmap good")


def test_what_only_a_simulation_can_do_is_told_with_what_to_do_instead(cell):
    assert "instead: kubectl delete pod" in cell("%kill pod/web")
    assert "only a simulated cluster can do %check" in cell("%check")
    assert "only a simulated cluster can do %rust" in cell("%%rust\nfn main() {}")
    assert "no container host beside a remote cluster" in cell("docker ps")


def test_a_log_that_is_followed_ends(cell):
    cell("kubectl run talker --image=busybox --restart=Never -- sh -c 'echo one; sleep 1; echo two; sleep 3600'")
    cell("%until pod/talker .status.phase=Running within 60s")
    assert cell("kubectl logs -f talker") == "one\ntwo\n"
