"""What kubectl does with files, by the real kubectl and the built-in one with the same words: kustomizations, kubeconfigs,
objects that stand in no file any more, objects in an editor."""

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from conftest import target
from test_kubectl import KUBECTL

OURS = [target / "kernetes", "kubectl"]
HERE = Path(__file__).parent / "kustomize"


def said(program, *words, **environment):
    done = subprocess.run(
        [*program, *words], capture_output=True, text=True, env=os.environ | environment, timeout=120, cwd=HERE
    )
    # The real one also logs, behind a date.
    told = [line for line in done.stderr.splitlines() if line[:1] not in "EIW" or not line[1:5].isdigit()]
    return done.stdout, told, done.returncode


@pytest.mark.parametrize("folder", ["base", "prod", "nothing", "."])
def test_a_kustomization_comes_to_the_same(folder):
    ours, real = said(OURS, "kustomize", folder), said([KUBECTL], "kustomize", folder)
    assert (ours[0], ours[2]) == (real[0], real[2])
    if folder in ("base", "prod"):
        assert ours[1] == real[1]


CONFIG = """
apiVersion: v1
kind: Config
clusters:
- {name: b, cluster: {server: "https://b:1", certificate-authority-data: QUJD, tls-server-name: x}}
- {name: a, cluster: {server: "https://a:1", insecure-skip-tls-verify: true}}
contexts:
- {name: two, context: {cluster: b, user: ann, namespace: shop}}
- {name: one, context: {cluster: a, user: ben}}
current-context: one
preferences: {}
users:
- {name: ben, user: {client-certificate-data: QUJD, client-key-data: QUJD}}
- {name: ann, user: {token: secret}}
"""

STEPS = """
view
view --minify
view --raw -o json
view -o jsonpath={.contexts[*].name}
view --minify --context=nothing
get-contexts
get-contexts two
get-contexts one nothing two
get-contexts -o name
get-contexts --no-headers
current-context
use-context two
use nothing
use-context
set-context --current --namespace=shop2
set-context three --cluster=a --user=ann
set-context
set-context a b
rename-context three four
rename-context three four
rename-context one two
delete-context four
delete-context two
delete-context nothing
delete-context
set-cluster c --server=https://c:1 --tls-server-name=y
set-cluster c --server=https://c:2 --insecure-skip-tls-verify
set-cluster c --certificate-authority=kubeconfig
set-cluster c --certificate-authority=base/kustomization.yaml --embed-certs
set-cluster c --certificate-authority=a --insecure-skip-tls-verify
set-cluster c --embed-certs
set-cluster c --embed-certs --certificate-authority=nothing
set-cluster
set-credentials cleo --token=abc
set-credentials cleo --username=u --password=p
set-credentials cleo --token=abc --username=u
set-credentials cleo --client-key=base/kustomization.yaml --embed-certs
set-credentials cleo --client-certificate=/etc/hosts
set-credentials cleo --embed-certs
set-credentials cleo --auth-provider=oidc --auth-provider-arg=a=b --auth-provider-arg=c=d
set-credentials cleo --auth-provider-arg=c-
set-credentials cleo --exec-command=/x --exec-api-version=v1 --exec-arg=a --exec-arg=b --exec-env=A=b
set-credentials cleo --exec-env=A- --exec-interactive-mode=Never
set-credentials cleo --exec-command=/y
set-credentials cleo --exec-interactive-mode=Maybe
set-credentials cleo --exec-env=a
set-credentials
set clusters.c.server https://c:3
set clusters.c.insecure-skip-tls-verify true
set clusters.c.insecure-skip-tls-verify maybe
set contexts.a.b.cluster c
set current-context a.b
set users.dan.client-key-data aGVsbG8=
set users.dan.client-key-data hello --set-raw-bytes=true
set users.dan.client-key-data hello
set users.dan.exec.command x
set nothing.c.server x
set preferences.colors true
set a
unset users.dan.client-key-data
unset users.nothing
unset users.nothing.token
unset contexts.a.b.cluster
unset current-context
unset contexts
unset nothing.x
delete-cluster c
delete-cluster c
delete-cluster
delete-user cleo
delete-user cleo
delete-user
get-clusters
get-users
"""


def test_a_kubeconfig_is_shown_and_changed_in_the_same_way(tmp_path):
    file = tmp_path / "kubeconfig"

    def story(program):
        file.write_text(CONFIG)
        for step in STEPS.strip().splitlines():
            told = said(program, "--kubeconfig", str(file), "config", *step.split())
            if step == "get-clusters":
                # The real one names clusters in no order.
                told = (sorted(told[0].splitlines()), *told[1:])
            yield step, told, file.read_text()

    for ours, real in zip(story(OURS), list(story([KUBECTL]))):
        # Only one of the two files is sorted before it is first written.
        changed = ours[0].split()[0] not in ("view", "get-contexts", "current-context")
        assert ours[:2] == real[:2]
        assert ours[2] == real[2] or not changed


def test_what_stands_in_no_file_any_more_is_pruned(kubeconfig, tmp_path):
    def kubectl(*words, program=OURS):
        return said(program, "--kubeconfig", str(kubeconfig), *words)

    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    dry = ("apply", "-k", "base", "--dry-run=client")
    assert kubectl(*dry) == kubectl(*dry, program=[KUBECTL])
    for name in "ab":
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: mine}}}}\n")
    assert kubectl("apply", "-f", str(tmp_path))[0] == "configmap/a created\nconfigmap/b created\n"
    (tmp_path / "b.yaml").unlink()
    words = ("apply", "-f", str(tmp_path), "--prune", "-l", "set=mine")
    told = kubectl(*words, "--dry-run=server", program=[KUBECTL])[0]
    assert kubectl(*words, "--dry-run=server")[0] == told
    assert kubectl(*words)[0] == "configmap/a unchanged\nconfigmap/b pruned\n"
    assert kubectl("apply", "-f", str(tmp_path), "--prune") == kubectl(
        "apply", "-f", str(tmp_path), "--prune", program=[KUBECTL]
    )


def test_an_editor_changes_an_object(kubeconfig):
    def edit(editor, program=OURS):
        out, told, code = said(program, "--kubeconfig", str(kubeconfig), "edit", "configmap", "edited", KUBE_EDITOR=editor)
        return out, [re.sub(r"(/tmp/kubectl-edit)-\w+", r"\1", line) for line in told], code

    said(OURS, "--kubeconfig", str(kubeconfig), "create", "configmap", "edited", "--from-literal=colour=blue")
    assert edit("true") == edit("true", program=[KUBECTL])
    assert edit("sed -i s/blue/green/") == ("configmap/edited edited\n", [], 0)
    assert edit("sed -i s/green/red/", program=[KUBECTL])[0] == "configmap/edited edited\n"
    for editor in "truncate -s 0", "sed -i 's/^  name: edited/  name: other/'":
        out, told, code = edit(editor)
        assert (out, code) == ("", 1) and told[-1].startswith("error: ")
        assert (out, told, code) == edit(editor, program=[KUBECTL])


ROLES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME, labels: {a: b}}
rules:
- {apiGroups: [""], resources: [pods], verbs: VERBS}
- {nonResourceURLs: [/x], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}
subjects: [{kind: User, name: WHO, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
"""


def test_roles_are_reconciled_in_the_same_way(kubeconfig, tmp_path):
    def story(program, name):
        steps = [("[get, list]", "ann", name, []), ("[get, list]", "ann", name, []), ("[get, watch]", "ben", name, [])]
        steps.append(("[get]", "ben", name, ["--remove-extra-permissions", "--remove-extra-subjects"]))
        steps.append(("[get]", "ben", "view", ["-o", "name"]))
        for verbs, who, role, flags in steps:
            file = tmp_path / "roles.yaml"
            text = ROLES.replace("NAME", name).replace("VERBS", verbs).replace("WHO", who).replace("ROLE", role)
            file.write_text(text)
            words = ["--kubeconfig", str(kubeconfig), "auth", "reconcile", "-f", str(file), *flags]
            out, told, code = said(program, *words)
            yield out.replace(name, "NAME"), told, code

    assert list(story(OURS, "ours")) == list(story([KUBECTL], "real"))


def test_a_cluster_is_dumped_in_the_same_way(kubeconfig, tmp_path):
    def dump(program, *words):
        out, told, code = said(program, "--kubeconfig", str(kubeconfig), "cluster-info", "dump", *words)
        # Nodes report, and events are told, between the two.
        return re.sub(r'"?resourceVersion"?: "\d+"', "<revision>", out).partition("ReplicationControllerList")[2], told, code

    said(OURS, "--kubeconfig", str(kubeconfig), "run", "dumped", "--image=nginx")
    said(OURS, "--kubeconfig", str(kubeconfig), "wait", "--for=condition=Ready", "pod/dumped", "--timeout=60s")
    for words in [("--namespaces", "default"), ("-o", "yaml"), ("-o", "name")]:
        assert dump(OURS, *words) == dump([KUBECTL], *words)
    folders = [tmp_path / "ours", tmp_path / "real"]
    for program, folder in zip([OURS, [KUBECTL]], folders):
        assert dump(program, "-A", "--output-directory", str(folder)) == ("", [], 0)
    ours, real = [sorted(path.relative_to(folder) for path in folder.rglob("*")) for folder in folders]
    assert ours == real


@pytest.mark.parametrize("program", [OURS, [KUBECTL]], ids=["ours", "real"])
def test_files_go_into_a_container_and_come_out_again(kubeconfig, tmp_path, program):
    def kubectl(*words):
        return said(program, "--kubeconfig", str(kubeconfig), *words)

    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    kubectl("run", "web", "--image=nginx")
    assert kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")[2] == 0
    folder = tmp_path / "conf"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(f"{name}\n")
    assert kubectl("cp", str(folder), "web:/etc/app") == ("", [], 0)
    assert kubectl("exec", "web", "--", "cat", "/etc/app/a", "/etc/app/b")[0] == "a\nb\n"
    assert kubectl("cp", "web:/etc/app", str(tmp_path / "back"))[2] == 0
    assert (tmp_path / "back/b").read_text() == "b\n"
    assert kubectl("cp", "web:/none", str(tmp_path / "none"))[2] == 1
    kubectl("delete", "pod", "web", "--now")


def test_the_api_is_proxied(kubeconfig):
    words = ["--kubeconfig", str(kubeconfig), "proxy", "--port=0", "--api-prefix=/k/"]
    with subprocess.Popen([*OURS, *words], stdout=subprocess.PIPE, text=True) as proxy:
        address = proxy.stdout.readline().split()[-1]
        with urlopen(f"http://{address}/k/version") as answer:
            assert json.load(answer)["gitVersion"].startswith("v1.")
        for path, code in {"/version": 404, "/k/api/v1/namespaces/none": 404}.items():
            with pytest.raises(HTTPError, match=str(code)):
                urlopen(f"http://{address}{path}")
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(f"http://{address}/k/version", headers={"Host": "evil.example"}))
        proxy.terminate()
