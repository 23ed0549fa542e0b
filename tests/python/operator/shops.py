"""An operator as people write them with kopf: a Shop has a ConfigMap with its motto, and leaves a note when it goes."""

import kopf
from kubernetes import client, config

config.load_kube_config()


def config_map(name, text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}


@kopf.on.create("example.com", "v1", "shops")
def opened(spec, name, namespace, **_):
    child = config_map(f"{name}-motto", spec["motto"])
    kopf.adopt(child)
    client.CoreV1Api().create_namespaced_config_map(namespace, child)
    return {"child": child["metadata"]["name"]}


@kopf.on.update("example.com", "v1", "shops", field="spec.motto")
def renamed(name, namespace, new, **_):
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-motto", namespace, {"data": {"text": new}})


@kopf.on.delete("example.com", "v1", "shops")
def closed(name, namespace, **_):
    client.CoreV1Api().create_namespaced_config_map(namespace, config_map(f"{name}-note", "closed"))
