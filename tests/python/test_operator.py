"""A kopf operator against `kernetes serve`: a custom resource, a finalizer, a child that is owned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import until
from kubernetes import client, config

OPERATOR = Path(__file__).parent / "operator/shops.py"
SPEC = {"type": "object", "properties": {"motto": {"type": "string"}}}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SHOPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "singular": "shop", "kind": "Shop"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": OPEN}},
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def api(kubeconfig, tmp_path_factory):
    api = config.new_client_from_config(str(kubeconfig))
    client.ApiextensionsV1Api(api).create_custom_resource_definition(SHOPS)
    log = tmp_path_factory.mktemp("log") / "operator.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", "default", str(OPERATOR)]
    with log.open("w") as output:
        environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
        with subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as operator:
            try:
                yield api
            finally:
                operator.terminate()
                print(log.read_text())


def test_a_shop_is_opened_renamed_and_closed(api):
    core, custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
    shops = ("example.com", "v1", "default", "shops")

    def text(name):
        try:
            return core.read_namespaced_config_map(name, "default").data["text"]
        except client.ApiException as missing:
            assert missing.status == 404
            return None

    body = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}, "spec": {"motto": "fresh"}}
    until(lambda: custom.list_namespaced_custom_object(*shops))
    custom.create_namespaced_custom_object(*shops, body)
    until(lambda: text("corner-motto") == "fresh")
    shop = until(lambda: (found := custom.get_namespaced_custom_object(*shops, "corner")).get("status") and found)
    assert shop["status"]["opened"] == {"child": "corner-motto"}
    assert shop["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
    owner = core.read_namespaced_config_map("corner-motto", "default").metadata.owner_references[0]
    assert (owner.kind, owner.uid) == ("Shop", shop["metadata"]["uid"])

    custom.patch_namespaced_custom_object(*shops, "corner", {"spec": {"motto": "cheap"}})
    until(lambda: text("corner-motto") == "cheap")

    custom.delete_namespaced_custom_object(*shops, "corner")
    until(lambda: text("corner-note") == "closed")
    until(lambda: not custom.list_namespaced_custom_object(*shops)["items"])
    # What the shop owned goes with it.
    until(lambda: text("corner-motto") is None)
