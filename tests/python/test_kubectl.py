"""The real kubectl, against `kernetes serve`: what a person does in a day, step by step."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path
from urllib.request import urlopen

import pytest
from conftest import target, until

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

    def run(self, *arguments, stdin="", program=(KUBECTL,), **environment):
        return subprocess.run(
            [*program, *arguments],
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
def kubectl(kubeconfig):
    cluster = Cluster(kubeconfig.parent, kubeconfig)
    cluster("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    return cluster


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


LOUD = """
apiVersion: v1
kind: Pod
metadata: {name: loud}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "for n in 1 2 3 4 5 6; do echo line $n; sleep 1; done"]
  - {name: web, image: nginx, ports: [{containerPort: 80}]}
"""


def test_logs_are_read_followed_and_refused(kubectl):
    kubectl("apply", "-f", "-", stdin=LOUD)
    assert "choose one of: [main web]" in kubectl.refused("get", "--raw", "/api/v1/namespaces/default/pods/loud/log")
    until(lambda: "line 1" in kubectl.run("logs", "loud", "-c", "main").stdout)
    followed = kubectl("logs", "--follow", "loud", "-c", "main")
    assert followed == "".join(f"line {n}\n" for n in range(1, 7))
    assert kubectl("logs", "loud", "-c", "main", "--tail=2") == "line 5\nline 6\n"
    assert kubectl("logs", "loud", "-c", "main", "--limit-bytes=4") == "line"
    stamped = kubectl("logs", "loud", "-c", "main", "--timestamps", "--tail=1").split(" ", 1)
    assert stamped[0].endswith("Z") and stamped[1] == "line 6\n"
    assert 'previous terminated container "web"' in kubectl.refused("logs", "loud", "-c", "web", "--previous")


def test_commands_run_in_containers(kubectl):
    kubectl("run", "box", "--image=nginx")
    kubectl("wait", "--for=condition=Ready", "pod/box", "--timeout=60s")
    assert kubectl("exec", "box", "--", "hostname") == "box\n"
    done = kubectl.run("exec", "box", "--", "sh", "-c", "echo out; exit 3")
    assert (done.stdout, done.returncode) == ("out\n", 3)
    assert "command terminated with exit code 3" in done.stderr
    assert "executable file not found" in kubectl.refused("exec", "box", "--", "nothing")
    assert kubectl("exec", "-i", "box", "--", "sh", stdin="echo one\necho two\n") == "one\ntwo\n"


# Both kubectls, one after the other, with the same words.
SAME = [
    "get pods",
    "get pods -o name --sort-by=.metadata.name",
    "get deployments,services -o wide",
    "get pods -o jsonpath={.items[*].spec.containers[*].image}",
    "get nodes -L kubernetes.io/hostname",
    "get pod same-pod -o yaml",
    "get pod nothing",
    "get nothing",
    "describe configmap same",
    "describe service same",
    "api-versions",
    "api-resources --api-group=apps",
    "rollout status deployment/same",
    "rollout history deployment/same",
    "logs same-pod",
    "exec same-pod -- hostname",
    "exec same-pod -- sh -c 'exit 4'",
    "auth can-i create pods",
    "auth whoami -o yaml",
    "label pod same-pod a=b --dry-run=server",
    "apply -f - --dry-run=server",
    "create configmap same --from-literal=a=b",
    "delete pod nothing",
    "get pods --as=nobody",
    "wait --for=condition=Ready pod/same-pod --timeout=10s",
    "get pods -n nowhere",
]


@pytest.fixture(scope="module")
def same(kubectl):
    kubectl("create", "configmap", "same", "--from-literal=colour=blue")
    kubectl("create", "deployment", "same", "--image=nginx")
    kubectl("expose", "deployment", "same", "--port=80")
    kubectl("run", "same-pod", "--image=nginx")
    kubectl("rollout", "status", "deployment/same", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", "pod/same-pod", "--timeout=60s")
    return kubectl


def test_ports_of_a_pod_are_forwarded(same):
    command = [KUBECTL, "port-forward", "pod/same-pod", "0:80", "0:81"]
    forward = subprocess.Popen(
        command, env=same.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        told = {}
        while len(told) < 2:
            # The second line of a port is about IPv6.
            local, remote = re.fullmatch(r"Forwarding from \S+:(\d+) -> (\d+)\n", forward.stdout.readline()).groups()
            told[remote] = local
        for _ in range(3):
            with urlopen(f"http://127.0.0.1:{told['80']}/", timeout=30) as answer:
                assert b"Welcome to nginx!" in answer.read()
        with pytest.raises(OSError):
            urlopen(f"http://127.0.0.1:{told['81']}/", timeout=30)
        _, stderr = forward.communicate(timeout=60)
        assert f"an error occurred forwarding {told['81']} -> 81: " in stderr and "connection refused" in stderr
    finally:
        forward.kill()


@pytest.mark.parametrize("line", SAME)
def test_the_built_in_kubectl_says_the_same(same, line):
    def said(program):
        done = same.run(*shlex.split(line), stdin=WEB, program=program)
        # The real one also logs how discovery fails, behind a date.
        told = [line for line in done.stderr.splitlines() if not re.match(r"[EIW]\d{4} ", line)]
        # Ages grow between the two, and what is made for an answer is made at its own moment.
        moment = r"\b\d+[smh]\d*\w?\b|(?<=creationTimestamp: )\S+(?=\nstatus:\n  userInfo:)"
        return re.sub(moment, "<moment>", done.stdout), told, done.returncode

    assert said([target / "kernetes", "kubectl"]) == said([KUBECTL])


def test_the_built_in_kubectl_finds_its_server(kubectl, tmp_path):
    ours = [target / "kernetes", "kubectl"]
    away = kubectl.run("get", "pods", program=ours, KUBECONFIG=str(tmp_path / "none"))
    assert away.returncode == 1 and "localhost:8080 was refused" in away.stderr
    lost = kubectl.run("get", "pods", "--context=nothing", program=ours)
    told = "Error in configuration: context was not found for specified context: nothing\n"
    assert (lost.returncode, lost.stderr) == (1, told)
    kubeconfig = kubectl.environment["KUBECONFIG"]
    found = kubectl.run("--kubeconfig", kubeconfig, "get", "ns", "default", "-o", "name", program=ours, KUBECONFIG="")
    assert found.stdout == "namespace/default\n"
    assert "namespace/kube-system" in kubectl.run("get", "ns", "-oname", "--context", "kubernetes-admin@kubernetes", program=ours).stdout


@pytest.mark.parametrize("line, words", [
    ("kubectl rollout sta", ["status"]),
    ("kubectl get configmaps sam", ["same"]),
    ("kubectl get pods --output=ya", ["yaml"]),
    ("kubectl rollout restart deployment/sa", ["deployment/same"]),
    ("kubectl logs same-p", ["same-pod"]),
    ("kubectl logs same-pod -c ", ["same-pod"]),
    ("kubectl config use-context kubernetes-", ["kubernetes-admin@kubernetes"]),
])
def test_bash_completes(same, line, words):
    """As bash asks when somebody types Tab, where `kubectl` is an alias of the built-in one."""
    script = f"""
        shopt -s expand_aliases
        alias kubectl='{target}/kernetes kubectl'
        source <({target}/kernetes kubectl completion bash)
        compopt() {{ :; }}
        COMP_LINE='{line}' COMP_POINT={len(line)}
        __kubectl_complete
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=same.environment, timeout=60)
    assert done.stdout.split() == words, done.stderr
