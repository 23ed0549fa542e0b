"""The real kubectl, against `kernetes serve`: what a person does in a day, step by step."""

import json
import os
import subprocess
import sysconfig
import time
from pathlib import Path

import pytest
from conftest import target

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""

CRON_TABS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {cronSpec: {type: string, description: When it runs.}}}
"""


class Cluster:
    def __init__(self, home, kubeconfig):
        self.environment = os.environ | {"HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def run(self, *arguments, stdin="", **environment):
        return subprocess.run(
            [KUBECTL, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment | environment,
            timeout=120,
        )

    def __call__(self, *arguments, **options):
        done = self.run(*arguments, **options)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def refused(self, *arguments, code=1, **options):
        done = self.run(*arguments, **options)
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    kubeconfig = home / "kubeconfig"
    with subprocess.Popen(
        [target / "kernetes", "serve", "--kubeconfig-out", kubeconfig], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            # The address is printed just before the kubeconfig is written.
            assert server.stdout.readline().startswith("https://")
            deadline = time.monotonic() + 30
            while not kubeconfig.exists():
                assert server.poll() is None and time.monotonic() < deadline, "no kubeconfig"
                os.sched_yield()
            cluster = Cluster(home, kubeconfig)
            cluster("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
            yield cluster
        finally:
            server.terminate()


def test_discovery_names_what_there_is(kubectl):
    assert {"v1", "apps/v1", "autoscaling/v2"} <= set(kubectl("api-versions").split())
    deployments = [line.split() for line in kubectl("api-resources").splitlines() if line.startswith("deployments")]
    assert deployments == [["deployments", "deploy", "apps/v1", "true", "Deployment"]]
    assert "Server Version: v1.36" in kubectl("version")
    assert kubectl("get", "--raw", "/readyz?verbose").endswith("readyz check passed\n")
    assert kubectl("cluster-info").count("is running at") == 1


def test_the_schema_explains_and_validates(kubectl):
    told = kubectl("explain", "deployment.spec.strategy")
    assert "VERSION:    v1" in told and "rollingUpdate\t<RollingUpdateDeployment>" in told
    wrong = WEB.replace("replicas", "replicaz")
    told = kubectl.refused("create", "-f", "-", stdin=wrong.partition("---")[0])
    assert 'strict decoding error: unknown field "spec.replicaz"' in told
    assert 'field "nothing" does not exist' in kubectl.refused("explain", "pod.spec.nothing")


def test_a_deployment_from_apply_to_delete(kubectl):
    assert kubectl("apply", "-f", "-", stdin=WEB) == "deployment.apps/web created\nservice/web created\n"
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}") == "2"
    assert "Scaled up replica set" in kubectl("describe", "deployment", "web")

    more = WEB.replace("replicas: 2", "replicas: 3")
    changed = kubectl.refused("diff", "-f", "-", stdin=more)
    assert "-  replicas: 2\n+  replicas: 3\n" in changed
    assert kubectl("apply", "-f", "-", stdin=more) == "deployment.apps/web configured\nservice/web unchanged\n"
    assert kubectl("diff", "-f", "-", stdin=more) == ""
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=more)
    assert applied == "deployment.apps/web serverside-applied\nservice/web serverside-applied\n"

    assert kubectl("scale", "deployment/web", "--replicas=1") == "deployment.apps/web scaled\n"
    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
    kubectl("set", "image", "deployment/web", "web=nginx:1.27")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl("rollout", "history", "deployment/web").split()[-4:] == ["1", "<none>", "2", "<none>"]
    edited = kubectl("edit", "deployment", "web", EDITOR="sed -i 's/replicas: 1/replicas: 2/'")
    assert edited == "deployment.apps/web edited\n"
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    assert "ScalingReplicaSet" in kubectl("events", "--for", "deployment/web")

    kubectl("delete", "deployment,service", "web", "--timeout=60s")
    kubectl("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")
    assert 'deployments.apps "web" not found' in kubectl.refused("get", "deployment", "web")


def test_objects_that_kubectl_sends_as_protobuf(kubectl):
    assert kubectl("create", "namespace", "shop") == "namespace/shop created\n"
    kubectl("create", "configmap", "settings", "-n", "shop", "--from-literal=colour=blue")
    kubectl("create", "secret", "generic", "key", "-n", "shop", "--from-literal=token=hush")
    kubectl("create", "deployment", "web", "-n", "shop", "--image=nginx", "--replicas=0", "--port=80")
    kubectl("create", "job", "once", "-n", "shop", "--image=busybox", "--", "true")
    kubectl("create", "role", "reader", "-n", "shop", "--verb=get,list", "--resource=pods,deployments.apps")

    def get(*arguments):
        return json.loads(kubectl("get", "-n", "shop", "-o", "json", *arguments))

    assert get("configmap", "settings")["data"] == {"colour": "blue"}
    assert get("secret", "key")["data"] == {"token": "aHVzaA=="}
    spec = get("deployment", "web")["spec"]
    assert spec["replicas"] == 0
    [container] = spec["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert "paused" not in spec and "hostNetwork" not in spec["template"]["spec"]
    assert get("job", "once")["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert get("role", "reader")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
    ]


def test_custom_resources_are_discovered_and_explained(kubectl):
    kubectl("apply", "-f", "-", stdin=CRON_TABS)
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=60s")
    cron_tab = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {cronSpec: '* *'}\n"
    assert kubectl("apply", "-f", "-", stdin=cron_tab) == "crontab.stable.example.com/a created\n"
    assert kubectl("get", "ct", "-o", "name") == "crontab.stable.example.com/a\n"
    assert "When it runs." in kubectl("explain", "crontabs.spec")
    told = kubectl.refused("create", "-f", "-", stdin=cron_tab.replace("cronSpec", "crown"))
    assert 'unknown field "spec.crown"' in told
    kubectl("delete", "crd", "crontabs.stable.example.com", "--timeout=60s")


def test_what_is_not_there(kubectl):
    assert "the server doesn't have a resource type \"nothing\"" in kubectl.refused("get", "nothing")
    assert "Metrics API not available" in kubectl.refused("top", "nodes")
