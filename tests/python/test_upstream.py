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


def create(api, kind, version, name, spec):
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}
    utils.create_from_dict(api, body)


def workload(name, **rest):
    # Go's encoder escapes signs of this command: a revision that came back otherwise would be written without end.
    container = {"name": "c", "image": "nginx", "command": ["sh", "-c", "echo '<begin>' && sleep 3600"]}
    # A shell does not heed SIGTERM.
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **rest}


@pytest.mark.parametrize("components", [BOTH[:1], BOTH[1:], BOTH], ids="+".join)
def test_a_cluster_is_whole_with_components_of_kubernetes(programs, tmp_path, components):
    with cluster(programs, tmp_path, components) as api:
        core, apps, batch = client.CoreV1Api(api), client.AppsV1Api(api), client.BatchV1Api(api)
        core.create_namespace({"metadata": {"name": "shop"}})
        until(lambda: [account.metadata.name for account in core.list_namespaced_service_account("shop").items])
        create(api, "Deployment", "apps/v1", "web", workload("web", replicas=3))
        create(api, "DaemonSet", "apps/v1", "agent", workload("agent"))
        create(api, "StatefulSet", "apps/v1", "db", workload("db", replicas=2, serviceName="db"))
        create(api, "Service", "v1", "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]})
        create(api, "ResourceQuota", "v1", "quota", {"hard": {"pods": "30"}})
        hello = {"name": "c", "image": "busybox", "command": ["echo", "hello"]}
        create(api, "Job", "batch/v1", "hello", {"template": {"spec": {"restartPolicy": "Never", "containers": [hello]}}})
        until(lambda: apps.read_namespaced_deployment_status("web", "shop").status.available_replicas == 3)
        until(lambda: apps.read_namespaced_stateful_set_status("db", "shop").status.available_replicas == 2)
        until(lambda: apps.read_namespaced_daemon_set_status("agent", "shop").status.number_available == 3)
        until(lambda: batch.read_namespaced_job_status("hello", "shop").status.succeeded == 1)
        until(lambda: core.read_namespaced_resource_quota_status("quota", "shop").status.used == {"pods": "8"})
        slices = client.DiscoveryV1Api(api)
        until(lambda: [len(one.endpoints or []) for one in slices.list_namespaced_endpoint_slice("shop").items] == [3])

        # A Pod that fits nowhere is told of.
        huge = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100"}}}
        create(api, "Pod", "v1", "huge", {"containers": [huge]})
        selected = "involvedObject.name=huge,reason=FailedScheduling"
        notes = until(lambda: core.list_namespaced_event("shop", field_selector=selected).items)
        assert "3 Insufficient cpu" in notes[0].message

        # A rolling update replaces all Pods.
        change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}}}
        generation = apps.patch_namespaced_deployment("web", "shop", change).metadata.generation

        def updated():
            status = apps.read_namespaced_deployment_status("web", "shop").status
            replicas = (status.updated_replicas, status.available_replicas, status.replicas)
            return status.observed_generation == generation and replicas == (3, 3, 3)

        until(updated)
        assert len(apps.list_namespaced_replica_set("shop").items) == 2
        revisions = apps.list_namespaced_controller_revision("shop").items
        assert sorted(revision.metadata.owner_references[0].name for revision in revisions) == ["agent", "db"]

        assert {name: errors(tmp_path, name) for name in components} == {name: [] for name in components}

        # Children go with their owner, and everything with its namespace.
        apps.delete_namespaced_deployment("web", "shop", propagation_policy="Foreground")
        until(lambda: not apps.list_namespaced_replica_set("shop").items)
        core.delete_namespace("shop")
        until(lambda: "shop" not in [namespace.metadata.name for namespace in core.list_namespace().items])
        leases = client.CoordinationV1Api(api).list_namespaced_lease("kube-system").items
        assert {lease.metadata.name for lease in leases} >= set(components)
