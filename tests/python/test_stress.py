"""Many frontends at once on one kernel, some of which send nonsense or vanish: nothing is lost, doubled or mixed up."""

import itertools
import socket
import time
from collections import Counter, defaultdict

import pytest
import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

CLIENTS = 4
ROUNDS = 2
#: Of all clients together, in each round.
MESSAGES = 5_000
SECONDS_MAX = 90
#: What a round may add: its cells stand in the trace, in the history and in the checkpoints.
GROWTH_BYTES_MAX = 64 << 20
DELIMITER = b"<IDS|MSG>"

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {number: '%d'}"
CELLS = ["kubectl get nodes", "# nothing", CONFIG, "%components", "kubectl delete configmap a", "kubectl get nosuch"]


def requests():
    """Without end: the channel, kind and content of what frontends ask."""
    for number in itertools.count():
        cell = CELLS[number % len(CELLS)].replace("%d", str(number))
        silent = number % 40 == 3
        run = {"code": cell, "silent": silent, "stop_on_error": number % 30 == 5, "user_expressions": {}}
        yield "shell", "execute_request", run
        yield "shell", "complete_request", {"code": "kubectl get po", "cursor_pos": 14}
        yield "shell", "is_complete_request", {"code": "kind: Pod"}
        yield "control", "kernel_info_request", {}
        yield "shell", "inspect_request", {"code": "kind: Pod", "cursor_pos": 7}
        yield "shell", "history_request", {"hist_access_type": "tail", "n": 3}
        yield "shell", "comm_info_request", {}
        yield "shell", "kernel_info_request", {}
        yield "control", "interrupt_request", {}
        yield "shell", "comm_open", {"comm_id": "c", "target_name": "none", "data": {}}
        yield "shell", "comm_msg", {"comm_id": "c", "data": {}}


class Client:
    """A frontend that sends without waiting, and writes down what it asked and what came."""

    def __init__(self, manager):
        self.session = Session(key=manager.session.key)
        self.sockets = {channel: dealer(manager, channel) for channel in ("shell", "control")}
        self.asked = {channel: [] for channel in self.sockets}
        self.answered = {channel: [] for channel in self.sockets}

    def send(self, channel, kind, content):
        message = self.session.msg(kind, content)
        self.session.send(self.sockets[channel], message)
        self.asked[channel].append((message["header"]["msg_id"], kind))

    def take(self, channel):
        _, frames = self.session.feed_identities(self.sockets[channel].recv_multipart())
        reply = self.session.deserialize(frames)
        self.answered[channel].append((reply["parent_header"]["msg_id"], reply["msg_type"]))

    def awaited(self, channel):
        """The replies that are due: one for each request, in the order in which they were sent."""
        kinds = [(msg_id, kind) for msg_id, kind in self.asked[channel] if kind.endswith("_request")]
        return [(msg_id, kind.replace("_request", "_reply")) for msg_id, kind in kinds]

    def waits(self, channel):
        return len(self.answered[channel]) < len(self.awaited(channel))

    def close(self):
        for one in self.sockets.values():
            one.close()


def dealer(manager, channel):
    made = zmq.Context.instance().socket(zmq.DEALER)
    made.linger, made.sndhwm, made.rcvhwm = 0, 0, 0
    made.connect(manager._make_url(channel))
    return made


def nonsense(session, kind="execute_request"):
    """Frames that nobody can answer: cut off, not signed, signed but no message."""
    code = session.pack({"code": "kubectl create configmap stolen"})
    parts = [session.pack(session.msg_header(kind)), b"{}", b"{}", code]
    signed = lambda parts: [DELIMITER, session.sign(parts), *parts]  # noqa: E731
    yield from ([b""], [DELIMITER], [b"\xff" * 64], [b"x"] * 200, signed(parts)[:4], signed(parts)[1:])
    yield from ([DELIMITER, b"0" * 64, *parts], [DELIMITER, b"", *parts], [DELIMITER, b"\xff\xfe", *parts])
    yield [*signed(parts)[:3], b"[]", *parts[2:]]
    for header in (b"{", b"[]", b"null", b"{}", b'{"msg_id": 1, "msg_type": 2}', b"[" * 10_000):
        yield signed([header, *parts[1:]])


def disturb(manager, session, number):
    """A frontend that sends nonsense, asks something, and is gone before the answer; others do not even say hello."""
    for channel in ("shell", "control"):
        gone = dealer(manager, channel)
        for frames in nonsense(session):
            gone.send_multipart(frames)
        session.send(gone, session.msg("kernel_info_request", {}))
        gone.close(linger=20 if number % 2 else 0)
    hearer = zmq.Context.instance().socket(zmq.SUB)
    hearer.subscribe(b"")
    hearer.connect(manager._make_url("iopub"))
    hearer.close(linger=0)
    greetings = [b"", b"\xff", b"GET / HTTP/1.1\r\n\r\n", b"\xff" + b"\0" * 8 + b"\x7f\x03", b"\0" * 4096]
    for port in manager.ports:
        with socket.create_connection((manager.ip, port)) as connection:
            connection.send(greetings[number % len(greetings)])


class Listener:
    """Hears all that is published, in order, and checks it as it comes."""

    def __init__(self, manager):
        self.session = Session(key=manager.session.key)
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.linger, self.socket.rcvhwm = 0, 0
        self.socket.subscribe(b"")
        self.socket.connect(manager._make_url("iopub"))
        assert self.socket.poll(10_000), "no iopub_welcome"
        self.heard = defaultdict(list)
        self.begun = defaultdict(list)

    def take(self):
        _, frames = self.session.feed_identities(self.socket.recv_multipart())
        message = self.session.deserialize(frames)
        parent = message["parent_header"]
        if not parent:
            return
        state = message["content"].get("execution_state") if message["msg_type"] == "status" else None
        if state == "busy":
            self.begun[parent["session"]].append(parent["msg_id"])
        self.heard[parent["msg_id"]].append(state or message["msg_type"])


def memory_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))


@pytest.fixture
def manager():
    manager = KernelManager(kernel_name="kernetes")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=30)
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


def test_nothing_is_lost_doubled_or_mixed_up(manager):
    listener = Listener(manager)
    clients = [Client(manager) for _ in range(CLIENTS)]
    stranger = Session(key=manager.session.key)
    poller = zmq.Poller()
    poller.register(listener.socket, zmq.POLLIN)
    takes = {listener.socket: listener.take}
    for client, channel in itertools.product(clients, ("shell", "control")):
        poller.register(client.sockets[channel], zmq.POLLIN)
        takes[client.sockets[channel]] = lambda client=client, channel=channel: client.take(channel)

    def unfinished():
        answers = any(client.waits(channel) for client in clients for channel in client.sockets)
        return answers or any("idle" not in listener.heard[msg_id] for msg_id in asked())

    def asked():
        return (msg_id for client in clients for sent in client.asked.values() for msg_id, _ in sent)

    deadline = time.monotonic() + SECONDS_MAX
    memory = []
    for _ in range(ROUNDS):
        for number, request in enumerate(itertools.islice(requests(), MESSAGES // CLIENTS)):
            for client in clients:
                client.send(*request)
            if number % 100 == 50:
                disturb(manager, stranger, number // 100)
                for frames in nonsense(stranger):
                    clients[0].sockets["shell"].send_multipart(frames)
        while True:
            ready = [one for one, _ in poller.poll(500)]
            for one in ready:
                takes[one]()
            if not ready and not unfinished():
                break
            assert time.monotonic() < deadline, Counter(kind for sent in listener.heard.values() for kind in sent)
        memory.append(memory_bytes(manager.provisioner.process.pid))

    for client, channel in itertools.product(clients, ("shell", "control")):
        assert client.answered[channel] == client.awaited(channel)
    for client in clients:
        for sent in client.asked.values():
            own = {msg_id for msg_id, _ in sent}
            assert [msg_id for msg_id in listener.begun[client.session.session] if msg_id in own] == [
                msg_id for msg_id, _ in sent
            ]
    for msg_id in asked():
        heard = listener.heard[msg_id]
        assert (heard[0], heard[-1]) == ("busy", "idle") and heard.count("busy") == heard.count("idle") == 1
    growth = memory[-1] - memory[0]
    print(f"{sum(map(len, listener.heard.values()))} messages heard; memory {[size >> 20 for size in memory]} MiB")
    assert growth < GROWTH_BYTES_MAX

    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=30)
    assert client.execute_interactive("kubectl get pods")["content"]["status"] == "ok"
    stolen = client.execute_interactive("kubectl get configmap stolen", output_hook=lambda _: None)
    assert stolen["content"]["status"] == "error"
    client.stop_channels()
    for client in clients:
        client.close()
    listener.socket.close()
