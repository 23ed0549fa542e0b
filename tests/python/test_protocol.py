"""What frontends rely on and jupyter_kernel_test does not ask, tried on the kernel of words."""

import os
import signal
import socket
import subprocess
import sys
import time
from queue import Empty

import pytest
import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

TIMEOUT = 10


class Frontend:
    """A client that waits for the reply and the idle status of each request."""

    def __init__(self, client):
        self.client = client
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT)

    def ask(self, channel, kind, content):
        message = self.client.session.msg(kind, content)
        getattr(self.client, f"{channel}_channel").send(message)
        return message["header"]["msg_id"]

    def send(self, code, **options):
        options = {"silent": False, "store_history": True, "user_expressions": {}, **options}
        return self.ask("shell", "execute_request", {"code": code, **options})

    def reply(self, msg_id, channel="shell"):
        deadline = time.monotonic() + TIMEOUT
        while True:
            get = getattr(self.client, f"get_{channel}_msg")
            message = get(timeout=max(0, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") == msg_id:
                return message["content"]

    def published(self, msg_id):
        """All that was published because of a request, from busy to idle, without these two."""
        messages = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                assert messages[0]["content"] == {"execution_state": "busy"}
                return [(message["msg_type"], message["content"]) for message in messages[1:-1]]

    def run(self, code, **options):
        msg_id = self.send(code, **options)
        return self.reply(msg_id), self.published(msg_id)

    def wait_for(self, msg_id, kind):
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == kind:
                return message["content"]


@pytest.fixture(params=["tcp", "ipc"])
def manager(request, tmp_path):
    manager = KernelManager(kernel_name="words", transport=request.param)
    if request.param == "ipc":
        manager.ip = str(tmp_path / "kernel")
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.fixture
def frontend(manager):
    frontend = Frontend(manager.client())
    yield frontend
    frontend.client.stop_channels()


def text(messages, name="stdout"):
    return "".join(content["text"] for kind, content in messages if kind == "stream" and content["name"] == name)


def test_outputs_keep_their_order_and_streams_are_joined(frontend):
    reply, messages = frontend.run("print a\nprint b\nwarn c\nprint d\nshow e\nupdate f\nclear wait\nresult g")
    assert [kind for kind, _ in messages] == [
        "execute_input", "stream", "stream", "stream", "display_data", "update_display_data", "clear_output",
        "execute_result",
    ]  # fmt: skip
    assert [content["text"] for kind, content in messages if kind == "stream"] == ["a\nb\n", "c\n", "d\n"]
    assert messages[4][1]["transient"] == messages[5][1]["transient"] == {"display_id": "id"}
    assert messages[6][1] == {"wait": True}
    assert messages[7][1]["execution_count"] == reply["execution_count"] == 1


def test_a_partial_line_arrives_while_the_cell_still_runs(frontend):
    started = time.monotonic()
    msg_id = frontend.send("partial working\nsleep 2")
    assert frontend.wait_for(msg_id, "stream")["text"] == "working"
    assert time.monotonic() - started < 1


def test_much_output_comes_whole_in_few_messages(frontend):
    _, messages = frontend.run("flood")
    assert text(messages).splitlines() == [str(line) for line in range(100_000)]
    assert len(messages) < 2_000


def test_silent_shows_and_counts_nothing(frontend):
    reply, messages = frontend.run("print a\nresult b", silent=True)
    assert (reply["status"], messages) == ("ok", [])
    reply, messages = frontend.run("print a", store_history=False)
    assert (reply["execution_count"], text(messages)) == (0, "a\n")
    assert frontend.run("print a")[0]["execution_count"] == 1


def test_an_error_aborts_the_cells_that_wait(frontend):
    first, second, third = frontend.send("sleep 0.2\nfail why"), frontend.send("print no"), frontend.send("print no")
    failed = frontend.reply(first)
    assert (failed["status"], failed["ename"], failed["evalue"]) == ("error", "Failed", "why")
    assert failed["traceback"] and failed["user_expressions"] == {}
    for aborted in (second, third):
        assert frontend.reply(aborted)["status"] == "aborted"
        assert frontend.published(aborted) == []
    assert frontend.run("print yes")[0] == {"status": "ok", "execution_count": 2, "user_expressions": {}, "payload": []}


def test_an_error_lets_them_run_without_stop_on_error(frontend):
    first, second = frontend.send("fail why", stop_on_error=False), frontend.send("print yes")
    assert frontend.reply(first)["status"] == "error"
    assert frontend.reply(second)["status"] == "ok"


def test_a_cell_sent_after_the_error_reply_runs(frontend):
    for _ in range(20):
        assert frontend.reply(frontend.send("fail why"))["status"] == "error"
        assert frontend.reply(frontend.send("print yes"))["status"] == "ok"


def test_user_expressions(frontend):
    reply, _ = frontend.run("let x", user_expressions={"a": "kept", "b": "fail no"})
    assert reply["user_expressions"]["a"] == {"status": "ok", "data": {"text/plain": "x"}, "metadata": {}}
    assert reply["user_expressions"]["b"]["ename"] == "Failed"
    assert frontend.run("fail", user_expressions={"a": "kept"})[0]["user_expressions"] == {}


def test_a_session_knows_which_cell_runs(frontend):
    message = frontend.client.session.msg("execute_request", {"code": "cell"}, metadata={"cellId": "a-1"})
    frontend.client.shell_channel.send(message)
    assert text(frontend.published(message["header"]["msg_id"])) == "a-1"
    assert text(frontend.run("cell")[1]) == ""


def test_a_panic_is_an_error_and_the_session_lives(frontend):
    frontend.run("let x")
    reply, messages = frontend.run("panic lost")
    assert (reply["ename"], [kind for kind, _ in messages]) == ("InternalError", ["execute_input", "error"])
    assert text(frontend.run("kept")[1]) == "x"


@pytest.mark.parametrize("by", ["message", "signal"])
def test_interrupt_stops_the_cell_and_keeps_the_state(frontend, manager, by):
    frontend.run("let x")
    msg_id = frontend.send("partial go\nsleep 60")
    waiting = frontend.send("print no")
    frontend.wait_for(msg_id, "stream")
    started = time.monotonic()
    if by == "message":
        assert frontend.reply(frontend.ask("control", "interrupt_request", {}), "control") == {"status": "ok"}
    else:
        manager.signal_kernel(signal.SIGINT)
    assert frontend.reply(msg_id)["ename"] == "Interrupted"
    assert time.monotonic() - started < 1
    assert frontend.reply(waiting)["status"] == "aborted"
    assert text(frontend.run("kept")[1]) == "x"


def test_an_interrupt_without_a_cell_does_not_stop_the_next_one(frontend, manager):
    manager.signal_kernel(signal.SIGINT)
    frontend.reply(frontend.ask("control", "interrupt_request", {}), "control")
    assert frontend.run("sleep 0.1")[0]["status"] == "ok"


def test_control_is_answered_while_a_cell_runs_and_shell_waits(frontend):
    cell = frontend.send("sleep 1")
    queued = frontend.ask("shell", "kernel_info_request", {})
    frontend.wait_for(cell, "execute_input")
    started = time.monotonic()
    for kind in ("kernel_info_request", "connect_request", "comm_info_request"):
        msg_id = frontend.ask("control", kind, {})
        assert frontend.reply(msg_id, "control")["status"] == "ok"
        assert frontend.published(msg_id) == []
    assert time.monotonic() - started < 0.5
    assert frontend.reply(cell)["status"] == "ok"
    assert frontend.reply(queued)["status"] == "ok"


def test_connect_tells_the_ports_of_the_connection_file(frontend, manager):
    reply = frontend.reply(frontend.ask("shell", "connect_request", {}))
    assert reply["shell_port"] == manager.shell_port and reply["hb_port"] == manager.hb_port


def test_comms_are_answered(frontend):
    assert frontend.reply(frontend.ask("shell", "comm_info_request", {"target_name": "x"}))["comms"] == {}
    opened = frontend.ask("shell", "comm_open", {"comm_id": "c", "target_name": "x", "data": {}})
    assert frontend.published(opened) == [("comm_close", {"comm_id": "c", "data": {}})]
    for kind in ("comm_msg", "comm_close"):
        assert frontend.published(frontend.ask("shell", kind, {"comm_id": "c", "data": {}})) == []


def test_completion_counts_code_points_and_tells_types(frontend):
    reply = frontend.reply(frontend.ask("shell", "complete_request", {"code": "🚀箱 pr and more", "cursor_pos": 5}))
    assert (reply["matches"], reply["cursor_start"], reply["cursor_end"]) == (["print"], 3, 5)
    types = reply["metadata"]["_jupyter_types_experimental"]
    assert types == [{"text": "print", "type": "word", "start": 3, "end": 5}]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("execute_request", {}),
        ("execute_request", {"code": 1}),
        ("complete_request", {"code": "x", "cursor_pos": -1}),
        ("inspect_request", {}),
        ("is_complete_request", {}),
        ("history_request", {"hist_access_type": "dream"}),
        ("dance_request", {}),
    ],
)
def test_a_request_that_makes_no_sense_is_answered(frontend, kind, content):
    msg_id = frontend.ask("shell", kind, content)
    reply = frontend.reply(msg_id)
    assert reply["status"] == "error" and kind in reply["evalue"]
    assert frontend.published(msg_id) == []


def raw(manager, frames):
    """Sends frames to the shell socket as they are, and returns the socket."""
    dealer = zmq.Context.instance().socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(manager._make_url("shell"))
    dealer.send_multipart(frames)
    return dealer


def frames(session, content):
    """A signed execute request whose content is any bytes."""
    header = session.msg_header("execute_request")
    parts = [session.pack(header), session.pack({}), session.pack({}), content]
    return [b"<IDS|MSG>", session.sign(parts), *parts]


def test_a_content_that_is_not_json_is_answered(frontend, manager):
    dealer = raw(manager, frames(frontend.client.session, b"{nonsense"))
    assert dealer.poll(TIMEOUT * 1000)
    assert b"not JSON" in dealer.recv_multipart()[-1]
    dealer.close()
    assert frontend.run("print a")[0]["status"] == "ok"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: [b"<IDS|MSG>", b"0" * 64, *parts[2:]],
        lambda parts: [b"<IDS|MSG>", b"", *parts[2:]],
        lambda parts: [b"<IDS|MSG>", b"\xff\xfe", *parts[2:]],
        lambda parts: [*parts[:2], b"{}", *parts[3:]],
        lambda parts: parts[:4],
        lambda parts: [b"<IDS|MSG>"],
        lambda parts: [b""],
    ],
)
def test_what_is_not_signed_or_whole_is_ignored(frontend, manager, spoil):
    dealer = raw(manager, spoil(frames(frontend.client.session, b'{"code": "let stolen"}')))
    assert not dealer.poll(200)
    dealer.close()
    assert text(frontend.run("kept")[1]) == ""


def test_a_header_that_is_not_json_is_ignored(frontend, manager):
    session = frontend.client.session
    parts = [b"{nonsense", b"{}", b"{}", b"{}"]
    dealer = raw(manager, [b"<IDS|MSG>", session.sign(parts), *parts])
    assert not dealer.poll(200)
    dealer.close()
    assert frontend.run("print a")[0]["status"] == "ok"


def test_two_frontends_hear_each_other(frontend, manager):
    other = Frontend(manager.client())
    msg_id = frontend.send("print a")
    assert text(other.published(msg_id)) == text(frontend.published(msg_id)) == "a\n"
    assert other.run("print b")[0]["execution_count"] == 2
    with pytest.raises(Empty):
        while True:
            assert other.client.get_shell_msg(timeout=0.2)["parent_header"]["msg_id"] != msg_id
    other.client.stop_channels()


def test_frontends_that_vanish_end_nothing(frontend, manager):
    for _ in range(5):
        other = Frontend(manager.client())
        other.send("sleep 0.05\nprint a")
        other.client.stop_channels()
        dealer = raw(manager, frames(other.client.session, b'{"code": "print a"}'))
        dealer.close()
    if manager.transport == "tcp":
        for port in manager.ports:
            with socket.create_connection((manager.ip, port)) as connection:
                connection.send(b"GET / HTTP/1.1\r\n\r\n")
    assert frontend.run("print a")[0]["status"] == "ok"
    assert frontend.client.is_alive()


def test_a_subscriber_is_welcomed(manager, frontend):
    subscriber = zmq.Context.instance().socket(zmq.SUB)
    subscriber.subscribe(b"status")
    subscriber.connect(manager._make_url("iopub"))
    assert subscriber.poll(TIMEOUT * 1000)
    _, parts = Session(key=manager.session.key).feed_identities(subscriber.recv_multipart())
    welcome = Session(key=manager.session.key).deserialize(parts)
    assert (welcome["msg_type"], welcome["content"]) == ("iopub_welcome", {"subscription": "status"})
    subscriber.close(linger=0)


def test_the_heartbeat_is_echoed_while_a_cell_runs(frontend, manager):
    frontend.wait_for(frontend.send("stubborn 1"), "execute_input")
    heart = zmq.Context.instance().socket(zmq.REQ)
    heart.connect(manager._make_url("hb"))
    for beat in (b"one", b"two"):
        heart.send(beat)
        assert heart.poll(500) and heart.recv() == beat
    heart.close(linger=0)


@pytest.mark.parametrize("cell", [None, "sleep 60", "stubborn 60"])
@pytest.mark.parametrize("restart", [False, True])
def test_shutdown_is_answered_and_ends_the_program(frontend, manager, cell, restart):
    if cell:
        frontend.wait_for(frontend.send(cell), "execute_input")
    started = time.monotonic()
    msg_id = frontend.ask("control", "shutdown_request", {"restart": restart})
    assert frontend.reply(msg_id, "control") == {"status": "ok", "restart": restart}
    assert frontend.published(msg_id) == [("shutdown_reply", {"status": "ok", "restart": restart})]
    assert manager.provisioner.process.wait(TIMEOUT) == 0
    assert time.monotonic() - started < (3 if cell == "stubborn 60" else 1)


def test_restart_forgets(frontend, manager):
    frontend.run("let x")
    manager.restart_kernel()
    frontend.client.wait_for_ready(timeout=TIMEOUT)
    reply, messages = frontend.run("kept")
    assert (reply["execution_count"], text(messages)) == (1, "")


def test_a_kernel_that_was_killed_can_be_started_again(frontend, manager):
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    manager.provisioner.process.wait(TIMEOUT)
    manager.restart_kernel(now=True)
    frontend.client.wait_for_ready(timeout=TIMEOUT)
    assert frontend.run("print a")[0]["execution_count"] == 1


def test_a_termination_signal_ends_the_program(frontend, manager):
    manager.signal_kernel(signal.SIGTERM)
    assert manager.provisioner.process.wait(TIMEOUT) == 0


def test_the_kernel_ends_with_the_process_that_started_it(tmp_path):
    parent = """if True:
        import sys, time
        from jupyter_client.manager import start_new_kernel
        manager, client = start_new_kernel(kernel_name="words")
        print(manager.provisioner.process.pid, flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    os.kill(pid, 0)
    process.kill()
    process.wait()
    deadline = time.monotonic() + TIMEOUT
    while alive(pid):
        assert time.monotonic() < deadline, "the kernel outlives its parent"
        time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_connection_file_that_cannot_be_used_is_refused(tmp_path):
    from conftest import ROOT  # noqa: PLC0415

    program = ROOT / "target/debug/kernetes"
    for content, reason in (("{", "EOF"), ("{}", "missing field `ip`")):
        path = tmp_path / "connection.json"
        path.write_text(content)
        process = subprocess.run([program, "kernel", path], capture_output=True, text=True, timeout=TIMEOUT)
        assert process.returncode == 2 and reason in process.stderr


def test_ipc_leaves_no_files(tmp_path):
    manager = KernelManager(kernel_name="words", transport="ipc", ip=str(tmp_path / "kernel"))
    manager.start_kernel()
    frontend = Frontend(manager.client())
    assert len(list(tmp_path.iterdir())) == 5
    frontend.reply(frontend.ask("control", "shutdown_request", {"restart": False}), "control")
    assert manager.provisioner.process.wait(TIMEOUT) == 0
    assert list(tmp_path.iterdir()) == []
    frontend.client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_subscriber_that_stops_reading_does_not_silence_the_others():
    manager = KernelManager(kernel_name="words")
    manager.start_kernel()
    client = manager.client()
    frontend = Frontend(client)
    stopped = zmq.Context.instance().socket(zmq.SUB)
    stopped.rcvhwm = 1
    stopped.rcvbuf = 4096
    stopped.subscribe(b"")
    stopped.connect(manager._make_url("iopub"))
    assert stopped.poll(TIMEOUT * 1000)
    for _ in range(20):
        msg_id = frontend.send("flood")
        deadline = time.monotonic() + 30
        while True:
            message = client.get_iopub_msg(timeout=deadline - time.monotonic())
            if message["content"] == {"execution_state": "idle"} and message["parent_header"]["msg_id"] == msg_id:
                break
    stopped.close(linger=0)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
