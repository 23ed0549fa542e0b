"""Interrupt stops any cell of the real kernel at once, and the cluster can be used as it is by then."""

import signal
import time

import pytest
from jupyter_client.manager import KernelManager

TIMEOUT = 30
#: What a person may notice; the tests run a build for debugging, on busy machines.
SECONDS_MAX = 0.5

WAITING = {
    "advance": "%advance 300h",
    "until": "%until pod/a ready within 300h",
    "wait": "kubectl wait --for=condition=Ready pod/a --timeout=300h",
    "rollout": """kubectl create deployment b --image=nginx:no-such
        kubectl patch deployment b -p '{"spec": {"progressDeadlineSeconds": 2147483647}}'
        kubectl rollout status deployment b""",
    "settle": "kubectl create deployment web --image=nginx --replicas=5000",
    "scale": "kubectl create deployment web --image=nginx\nkubectl scale deployment web --replicas=1000000000",
}


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager(kernel_name="kernetes")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code):
    msg_id = client.execute(code)
    return reply(client, msg_id)


def reply(client, msg_id):
    while True:
        message = client.get_shell_msg(timeout=TIMEOUT)
        if message["parent_header"]["msg_id"] == msg_id:
            return message["content"]


@pytest.mark.parametrize("by", ["message", "signal"])
@pytest.mark.parametrize("cell", WAITING)
def test_a_cell_that_waits_stops_at_once(kernel, cell, by):
    manager, client = kernel
    run(client, "%reset")
    run(client, "kubectl run a --image=nginx:no-such")
    msg_id = client.execute(WAITING[cell])
    time.sleep(1)
    begun = time.monotonic()
    if by == "message":
        manager.interrupt_kernel()
    else:
        manager.signal_kernel(signal.SIGINT)
    assert reply(client, msg_id)["ename"] == "Interrupted"
    passed = time.monotonic() - begun
    print(f"{cell}: {passed:.3f} s")
    assert passed < SECONDS_MAX
    assert run(client, "%components")["status"] == "ok"
