"""The Python client of Kubernetes against `kernetes serve`: typed objects, watches, logs, commands."""

import threading

import pytest
from conftest import until
from kubernetes import client, config, dynamic, stream, watch


@pytest.fixture(scope="module")
def api(kubeconfig):
    return config.new_client_from_config(str(kubeconfig))


@pytest.fixture(scope="module")
def core(api):
    core = client.CoreV1Api(api)
    until(lambda: core.list_namespaced_service_account("default").items)
    return core


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"of": "test"}), data=data)


def deployment(name, replicas):
    labels = {"app": name}
    container = client.V1Container(name="web", image="nginx", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(
        replicas=replicas, selector=client.V1LabelSelector(match_labels=labels), template=template
    )
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def test_an_object_from_create_to_delete(core):
    made = core.create_namespaced_config_map("default", config_map("typed", a="1"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
    with pytest.raises(client.ApiException) as twice:
        core.create_namespaced_config_map("default", config_map("typed"))
    assert (twice.value.status, twice.value.reason) == (409, "Conflict")

    patched = core.patch_namespaced_config_map("typed", "default", {"data": {"b": "2"}})
    assert patched.data == {"a": "1", "b": "2"}
    made.data = {"c": "3"}
    with pytest.raises(client.ApiException) as stale:
        core.replace_namespaced_config_map("typed", "default", made)
    assert "the object has been modified" in stale.value.body
    patched.data = {"c": "3"}
    assert core.replace_namespaced_config_map("typed", "default", patched).data == {"c": "3"}

    listed = core.list_namespaced_config_map("default", label_selector="of=test", field_selector="metadata.name=typed")
    assert [item.metadata.name for item in listed.items] == ["typed"]
    core.delete_namespaced_config_map("typed", "default")
    with pytest.raises(client.ApiException) as gone:
        core.read_namespaced_config_map("typed", "default")
    assert gone.value.status == 404


def test_a_cache_that_lists_and_watches_holds_what_there_is(core):
    cache, heard = {}, []
    first = core.create_namespaced_config_map("default", config_map("cached-0", at="0"))
    listed = core.list_namespaced_config_map("default", label_selector="of=test")
    cache.update({item.metadata.name: item.data for item in listed.items})

    def follow():
        events = watch.Watch().stream(
            core.list_namespaced_config_map,
            "default",
            label_selector="of=test",
            resource_version=listed.metadata.resource_version,
            timeout_seconds=60,
        )
        for event in events:
            name, data = event["object"].metadata.name, event["object"].data
            heard.append((event["type"], name))
            if event["type"] == "DELETED":
                cache.pop(name)
            else:
                cache[name] = data
            if name == "cached-end":
                return

    follower = threading.Thread(target=follow)
    follower.start()
    core.create_namespaced_config_map("default", config_map("cached-1", at="1"))
    core.patch_namespaced_config_map("cached-1", "default", {"data": {"at": "2"}})
    core.patch_namespaced_config_map("cached-1", "default", {"metadata": {"labels": {"of": "others"}}})
    core.delete_namespaced_config_map(first.metadata.name, "default")
    core.create_namespaced_config_map("default", config_map("cached-end"))
    follower.join(60)
    assert heard == [
        ("ADDED", "cached-1"),
        ("MODIFIED", "cached-1"),
        # It no longer is what was asked for.
        ("DELETED", "cached-1"),
        ("DELETED", "cached-0"),
        ("ADDED", "cached-end"),
    ]
    assert cache == {"cached-end": None}


def test_a_deployment_is_watched_until_it_is_available(api, core):
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment("default", deployment("web", 2))
    for event in watch.Watch().stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
        if event["object"].metadata.name == "web" and event["object"].status.ready_replicas == 2:
            break
    else:
        pytest.fail("two replicas never became ready")
    scaled = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 1}})
    assert scaled.spec.replicas == 1
    until(lambda: apps.read_namespaced_deployment("web", "default").status.replicas == 1)
    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    until(lambda: not core.list_namespaced_pod("default", label_selector="app=web").items)
    until(lambda: not apps.list_namespaced_deployment("default").items)


def test_containers_speak(core):
    container = client.V1Container(name="main", image="busybox", command=["sh", "-c", "echo hello; sleep 3600"])
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="speaker"), spec=client.V1PodSpec(containers=[container]))
    core.create_namespaced_pod("default", pod)
    until(lambda: core.read_namespaced_pod("speaker", "default").status.phase == "Running")
    until(lambda: core.read_namespaced_pod_log("speaker", "default") == "hello\n")
    said = stream.stream(
        core.connect_get_namespaced_pod_exec,
        "speaker",
        "default",
        command=["sh", "-c", "hostname; exit 2"],
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    said.run_forever(timeout=30)
    assert (said.read_stdout(), said.returncode) == ("speaker\n", 2)


def test_a_port_is_forwarded(core):
    container = client.V1Container(name="web", image="nginx", ports=[client.V1ContainerPort(container_port=80)])
    pod = client.V1Pod(metadata=client.V1ObjectMeta(name="site"), spec=client.V1PodSpec(containers=[container]))
    core.create_namespaced_pod("default", pod)
    until(lambda: core.read_namespaced_pod("site", "default").status.phase == "Running")
    forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "site", "default", ports="80")
    connection = forward.socket(80)
    connection.setblocking(True)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n")
    answer = b""
    while received := connection.recv(4096):
        answer += received
    assert answer.startswith(b"HTTP/1.1 200 OK") and b"nginx" in answer
    assert forward.error(80) is None


def test_the_dynamic_client_finds_kinds_by_discovery(api):
    namespaces = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="Namespace")
    assert "kube-system" in [namespace.metadata.name for namespace in namespaces.get().items]
