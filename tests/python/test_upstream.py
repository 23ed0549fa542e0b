"""The control plane as Kubernetes publishes it, in place of ours: kube-controller-manager and kube-scheduler, unmodified."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import serving, target, until
from kubernetes import client, config, utils

MODULE = Path(__file__).parent / "upstream"
BOTH = ["kube-controller-manager", "kube-scheduler"]
# The command has signs that Go's encoder escapes: a revision that came back otherwise would be written without end.
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "command": ["sh", "-c", "echo <begin> && sleep 3600"],
                "resources": {"requests": {"cpu": "100m"}},
            }
        ]
    },
}
SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.fixture(scope="module")
def programs():
    """Built once, beside the other things that tests need."""
    folder = target.parent / "tests/upstream"
    built, wanted = folder / "go.sum", MODULE / "go.sum"
    if not (built.exists() and built.read_bytes() == wanted.read_bytes()):
        if shutil.which("go") is None:
            reason = "go is not installed, so the control plane cannot be built"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "build", "-o", f"{folder.absolute()}/", "tool"], cwd=MODULE, check=True)
        shutil.copy(wanted, built)
    return folder


@contextlib.contextmanager
def cluster(programs, home, components):
    """A server without these components, and theirs in their place; yields a client and the logs, which are read after."""
    kubeconfig = home / "kubeconfig"
    with serving(kubeconfig, "--without", ",".join(components)), contextlib.ExitStack() as running:
        for name in components:
            access = [f"--{purpose}kubeconfig={kubeconfig}" for purpose in ("", "authentication-", "authorization-")]
            command = [programs / name, *access, "--secure-port=0"]
            if name == "kube-controller-manager":
                # Each of its controllers comes with a ServiceAccount and the roles of its own.
                command.append("--use-service-account-credentials")
            log = running.enter_context(open(home / f"{name}.log", "w"))
            process = running.enter_context(subprocess.Popen(command, stderr=log))
            running.callback(process.kill)
        yield config.new_client_from_config(str(kubeconfig))


def errors(home, name):
    """What a component found wrong, but for what it tries again when its caches are behind, and what it says of its host."""
    lines = (home / f"{name}.log").read_text().splitlines()
    usual = re.compile("has been modified|is not as new as written version|manifest file is empty")
    return [line for line in lines if re.match(r"[EF]\d{4} ", line) and not usual.search(line)]


def create(api, namespace, *objects):
    for kind, version, name, rest in objects:
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **rest}
        utils.create_from_dict(api, body)


@pytest.mark.parametrize("components", [BOTH[:1], BOTH[1:], BOTH], ids="+".join)
def test_a_cluster_is_whole_with_components_of_kubernetes(programs, tmp_path, components):
    with cluster(programs, tmp_path, components) as api:
        core, apps, batch = client.CoreV1Api(api), client.AppsV1Api(api), client.BatchV1Api(api)
        core.create_namespace({"metadata": {"name": "shop"}})
        until(lambda: [account.metadata.name for account in core.list_namespaced_service_account("shop").items])
        create(
            api,
            "shop",
            ("Deployment", "apps/v1", "web", {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}}),
            ("DaemonSet", "apps/v1", "agent", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
            (
                "StatefulSet",
                "apps/v1",
                "db",
                {"spec": {"replicas": 2, "serviceName": "db", "selector": SELECTOR, "template": TEMPLATE}},
            ),
            ("Service", "v1", "web", {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
            ("ResourceQuota", "v1", "quota", {"spec": {"hard": {"pods": "30"}}}),
            (
                "Job",
                "batch/v1",
                "hello",
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "c", "image": "busybox", "command": ["echo", "hello"]}],
                            }
                        }
                    }
                },
            ),
        )
        until(lambda: apps.read_namespaced_deployment_status("web", "shop").status.available_replicas == 3)
        until(lambda: apps.read_namespaced_stateful_set_status("db", "shop").status.available_replicas == 2)
        until(lambda: apps.read_namespaced_daemon_set_status("agent", "shop").status.number_available == 3)
        until(lambda: batch.read_namespaced_job_status("hello", "shop").status.succeeded == 1)
        until(lambda: core.read_namespaced_resource_quota_status("quota", "shop").status.used == {"pods": "8"})
        # Three Pods of each workload on three nodes, and two of the StatefulSet.
        until(lambda: len((core.read_namespaced_endpoints("web", "shop").subsets or [])[0].addresses) == 8)

        # A Pod that fits nowhere is told of.
        huge = {"resources": {"requests": {"cpu": "100"}}, "name": "c", "image": "nginx"}
        create(api, "shop", ("Pod", "v1", "huge", {"spec": {"containers": [huge]}}))
        selected = "involvedObject.name=huge,reason=FailedScheduling"
        notes = until(lambda: core.list_namespaced_event("shop", field_selector=selected).items)
        assert "3 Insufficient cpu" in notes[0].message

        # A rolling update replaces all Pods.
        change = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}}}}
        apps.patch_namespaced_deployment("web", "shop", change)

        def updated():
            status = apps.read_namespaced_deployment_status("web", "shop").status
            return (status.updated_replicas, status.available_replicas, status.replicas) == (3, 3, 3)

        until(updated)
        assert len(apps.list_namespaced_replica_set("shop").items) == 2
        revisions = apps.list_namespaced_controller_revision("shop").items
        assert sorted(revision.metadata.owner_references[0].name for revision in revisions) == ["agent", "db"]

        # Children go with their owner, and everything with its namespace.
        apps.delete_namespaced_deployment("web", "shop", propagation_policy="Foreground")
        until(lambda: not apps.list_namespaced_replica_set("shop").items)
        core.delete_namespace("shop")
        until(lambda: "shop" not in [namespace.metadata.name for namespace in core.list_namespace().items])
        leases = client.CoordinationV1Api(api).list_namespaced_lease("kube-system").items
        assert {lease.metadata.name for lease in leases} >= set(components)
    for name in components:
        assert errors(tmp_path, name) == []
