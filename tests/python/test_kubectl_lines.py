"""Hundreds of command lines, each to the real kubectl and to the built-in one, each with a server of its own that has lived
through the same. `kubectl_lines/TOPIC.txt` holds them, one a line; `kubectl_lines/files` is where they run."""

import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import pytest
from conftest import serving, target, until
from test_kubectl import KUBECTL

HERE = Path(__file__).parent / "kubectl_lines"
OURS, REAL = [str(target / "kernetes"), "kubectl"], [str(KUBECTL)]

# What differs from server to server and from moment to moment.
GENERATED = "[bcdfghjklmnpqrstvwxz2456789]"
VARYING = [
    (re.compile(pattern, re.MULTILINE), mark)
    for pattern, mark in [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4}( UTC)?)", "TIME"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"(resourceVersion\\?\"?: ?\\?\"?|Resource Version: +|metadata.resourceVersion=)\d+", r"\1VERSION"),
        (r"\b(\d+d)?(\d+h)?(\d+m)?\d+s( ago)?\b|\b\d+m\b(?= |$)|\b\d+m ago", "AGE"),
        (r" *Normal +Pull(ed|ing) .*\n", ""),
        (r"<invalid>", "AGE"),
        (r"\(x\d+ over AGE\)", ""),
        (r"\b(10|172|192)(\.\d+){3}\b", "ADDRESS"),
        (r"127\.0\.0\.1:\d+", "SERVER"),
        (r"\bnode-\d\b", "NODE"),
        (rf"-{GENERATED}{{6,10}}-{GENERATED}{{5}}\b", "-HASH-ID"),
        (rf"\b{GENERATED}{{8,10}}\b", "HASH"),
        (rf"-{GENERATED}{{5}}\b", "-ID"),
        (r"\.[0-9a-f]{16}\b", ".ID"),
        (r"[a-z]+://[0-9a-f]{64}|\S+@sha256:\w+", "ID"),
        (r"/tmp/(LIVE|MERGED|kubectl-edit)-?\w+", r"/tmp/\1"),
        (r" +", " "),
    ]
]
LOG = re.compile(r"[EIW]\d{4} \d\d:\d\d:\d\d")


def masked(text, home):
    for pattern, mark in VARYING:
        text = pattern.sub(mark, text)
    lines = [line.rstrip().replace(home, "HOME") for line in text.splitlines() if not LOG.match(line)]
    # How often a state is told depends on how fast it is looked at.
    lines = [line for line, before in zip(lines, [None, *lines]) if line != before or not line.startswith("Waiting for")]
    # The order of generated names is drawn.
    rows = groupby(lines, lambda line: line.startswith("pvc-UID "))
    lines = [line for drawn, group in rows for line in (sorted(group) if drawn else group)]
    return "\n".join(lines) + ("" if text.endswith("\n") or not text else "\n[no newline]")


class Seat:
    """A kubectl, its server, and its folder."""

    def __init__(self, program, folder, kubeconfig):
        self.program, self.folder = program, folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent),
            "KUBECONFIG": str(kubeconfig),
            "EDITOR": "sed -i s/blue/green/",
            "TZ": "UTC",
        }

    def run(self, line, program=None):
        """Runs a line; what stands behind ` <<< ` is its standard input, `VAR=value` in front is its environment."""
        line, _, stdin = line.partition(" <<< ")
        words = shlex.split(line)
        environment = dict(self.environment)
        while re.match(r"[A-Z]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        try:
            done = subprocess.run(
                [*(program or self.program), *words],
                input=stdin.replace("\\n", "\n"),
                capture_output=True,
                text=True,
                errors="replace",
                env=environment,
                cwd=self.folder,
                timeout=60,
            )
        except subprocess.TimeoutExpired as expired:
            return f"{(expired.stdout or b'').decode()}\n(no end)"
        home = self.environment["HOME"]
        told = masked(done.stdout, home)
        told += "".join(f"\n! {line}" for line in masked(done.stderr, home).splitlines())
        return told + (f"\n[exit {done.returncode}]" if done.returncode else "")


@pytest.fixture(scope="module")
def seats(tmp_path_factory):
    with ExitStack() as stack:
        seats = []
        for name, program in ("ours", OURS), ("real", REAL):
            home = tmp_path_factory.mktemp(name)
            stack.enter_context(serving(home / "kubeconfig", "--nodes", "1", "--speed", "4"))
            shutil.copytree(HERE / "files", home / "files")
            seats.append(Seat(program, home / "files", home / "kubeconfig"))
        with ThreadPoolExecutor() as pool:
            list(pool.map(settle, seats))
        yield seats


def settle(seat):
    for line in lines_of("settle"):
        told = seat.run(line, REAL)
        assert "[exit" not in told and "(no end)" not in told, f"{line}: {told}"


def lines_of(topic):
    return [line for line in (HERE / f"{topic}.txt").read_text().splitlines() if line and not line.startswith("#")]


def agree_in_time(line, seats, pool):
    """A pod that fails again and again is seen at two moments of its life: both are asked until these are alike."""

    def same():
        ours, real = pool.map(lambda seat: seat.run(line), seats)
        return ours == real

    try:
        return until(same)
    except AssertionError:
        return False


# The topics that change nothing.
READING = ["get", "describe", "explain"]


@pytest.mark.parametrize("topic", [*READING, "around", "nodes", "change"])
def test_both_say_the_same(seats, topic):
    lines = lines_of(topic)
    with ThreadPoolExecutor() as pool:
        ours, real = pool.map(lambda seat: [seat.run(line) for line in lines], seats)
        differ = [(line, a, b) for line, a, b in zip(lines, ours, real) if a != b]
        if topic in READING:
            differ = [(line, a, b) for line, a, b in differ if not agree_in_time(line, seats, pool)]
    told = "\n\n".join(f"$ kubectl {line}\n--- ours\n{a}\n--- real\n{b}" for line, a, b in differ)
    assert not differ, f"{len(differ)} of {len(lines)} differ\n{told}"
