#!/usr/bin/env python3
"""Replays conversations recorded from Kubernetes against `kernetes serve`, and compares how many agree with parity.scores.

The recordings are no part of this repository: a folder `parity` in a folder beside it, or the one that RECORDINGS names.
Without it nothing is tested. Usage: parity.py [--accept] SERVER_PROGRAM [AREA ...]; --accept writes the scores down.
"""
import argparse
import concurrent.futures
import glob
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SCORES = pathlib.Path(__file__).with_name("parity.scores")
PROJECT = SCORES.parent.parent
QUIET = ["--without", "kube-controller-manager,kube-scheduler,kubelet"]
# Cases with controllers wait most of their time.
SERVERS_AT_ONCE = 8
QUIET_CASES_AT_A_TIME = 15
JOB_MAX_S = 150
AGREEMENT = re.compile(r"^(\S+) +(\d+) of (\d+) agree", re.M)


def recordings():
    named = os.environ.get("RECORDINGS")
    found = [named] if named else sorted(glob.glob(str(PROJECT.parent / "*" / "parity")))
    return next((pathlib.Path(path) for path in found if pathlib.Path(path, "parity.py").is_file()), None)


def jobs(cases, areas):
    """Files that are replayed together, with their area and whether they need something running behind the API.

    Each case that does gets a server of its own, so that none disturbs another; they come first, because they wait.
    """
    import yaml

    live, quiet = [], {}
    for path in sorted(cases.glob("*/*.yaml")):
        case = yaml.safe_load(path.read_text())
        area = case.get("area", path.parent.name)
        if areas and area not in areas:
            continue
        if case.get("needs"):
            live.append((area, True, [str(path)]))
        else:
            quiet.setdefault(area, []).append(str(path))
    size = QUIET_CASES_AT_A_TIME
    parts = [(area, False, files[at : at + size]) for area, files in quiet.items() for at in range(0, len(files), size)]
    return live + parts


def replay(program, folder, job):
    """What of a job agrees, of how much, and what was said."""
    area, needs, files = job
    with tempfile.TemporaryDirectory() as temporary:
        kubeconfig = os.path.join(temporary, "kubeconfig")
        command = [program, "serve", "--kubeconfig-out", kubeconfig, *([] if needs else QUIET)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                # The server answers once it has said where.
                if not server.stdout.readline():
                    return area, 0, len(files), f"{' '.join(command)} ended\n"
                check = [sys.executable, str(folder / "parity.py"), "check", "--kubeconfig", kubeconfig, *files]
                done = subprocess.run(check, capture_output=True, text=True, timeout=JOB_MAX_S)
            except subprocess.TimeoutExpired:
                return area, 0, len(files), f"{' '.join(files)}: not done after {JOB_MAX_S} s\n"
            finally:
                server.kill()
    agreement = AGREEMENT.search(done.stdout)
    passed = int(agreement[2]) if agreement else 0
    return area, passed, len(files), done.stdout + done.stderr


def replay_all(program, folder, todo):
    """Passed and total by area, and what the areas said that do not agree in full."""
    scores, said = {}, {}
    with concurrent.futures.ThreadPoolExecutor(SERVERS_AT_ONCE) as pool:
        for area, passed, total, text in pool.map(lambda job: replay(program, folder, job), todo):
            known = scores.get(area, (0, 0))
            scores[area] = (known[0] + passed, known[1] + total)
            if passed < total:
                said[area] = said.get(area, "") + text
    return scores, said


def read_scores():
    lines = SCORES.read_text().split("\n") if SCORES.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {area: tuple(map(int, score.split("/"))) for area, score in rows}


def write_scores(scores):
    lines = [f"{area} {passed}/{total}\n" for area, (passed, total) in sorted(scores.items())]
    SCORES.write_text("# How many recorded conversations agree with Kubernetes, by area.\n" + "".join(lines))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--accept", action="store_true", help="write the scores down")
    arguments.add_argument("program", help="the built kernetes")
    arguments.add_argument("areas", nargs="*", help="only these")
    asked = arguments.parse_args()
    folder, start = recordings(), time.monotonic()
    if folder is None:
        print("1 skipped: no recordings stand beside the project")
        return 0
    if importlib.util.find_spec("yaml") is None:
        print("1 skipped: python3 with yaml is not installed")
        return 0
    todo = jobs(folder / "cases", asked.areas)
    program = os.path.abspath(asked.program)
    scores, said = replay_all(program, folder, todo)
    committed = read_scores()
    worse = [area for area, score in scores.items() if score[0] < committed.get(area, (0, 0))[0]]
    if worse and not asked.accept:
        # Some cases wait for the wall clock; on a busy machine they deserve a second try.
        again, text = replay_all(program, folder, [job for job in todo if job[0] in worse])
        scores.update(again)
        said.update(text)
    if asked.accept:
        write_scores({**committed, **scores})
    failed = 0
    for area, (passed, total) in sorted(scores.items()):
        known = committed.get(area, (0, 0))[0]
        print(f"{area:24} {passed}/{total}", end="")
        if passed < known:
            failed += 1
            print(f": {known} agreed before\n{said.get(area, '')}", end="")
        elif passed > known and not asked.accept:
            print(f": better than {known}; commit that with --accept", end="")
        print()
    print(f"{len(scores) - failed} passed, {failed} failed in {time.monotonic() - start:.2f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
