"""Times kernels from their start to the first kernel_info_reply, in turn, and prints one JSON object."""
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

RUNS = 9


def specs(folder, kernel):
    ours = {"argv": [kernel, "kernel", "{connection_file}"], "display_name": "ours", "language": "kubernetes"}
    theirs = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "ipykernel",
        "language": "python",
    }
    for name, spec in (("ours", ours), ("ipykernel", theirs)):
        (folder / name).mkdir()
        (folder / name / "kernel.json").write_text(json.dumps(spec))


def rss_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def once(manager, name):
    kernel = KernelManager(kernel_name=name, kernel_spec_manager=manager)
    start = time.perf_counter()
    kernel.start_kernel()
    client = kernel.client()
    client.start_channels()
    # Not `wait_for_ready`, which ends by listening until IOPub has been silent for 0.2 s, whatever the kernel.
    client.kernel_info()
    client.get_shell_msg(timeout=60)
    wall = time.perf_counter() - start
    memory = rss_mib(kernel.provisioner.process.pid)
    client.stop_channels()
    kernel.shutdown_kernel(now=True)
    return wall, memory


with tempfile.TemporaryDirectory() as folder:
    specs(Path(folder), sys.argv[1])
    manager = KernelSpecManager(kernel_dirs=[folder])
    runs = {"ours": [], "ipykernel": []}
    for _ in range(RUNS):
        for name, seen in runs.items():
            seen.append(once(manager, name))
ours, theirs = (
    [statistics.median(figure) for figure in zip(*runs[name])] for name in ("ours", "ipykernel")
)
print(
    json.dumps(
        {
            "wall_ms": round(ours[0] * 1e3, 1),
            "ipykernel_ms": round(theirs[0] * 1e3, 1),
            "ratio": round(ours[0] / theirs[0], 3),
            "rss_mib": round(ours[1], 1),
            "ipykernel_rss_mib": round(theirs[1], 1),
        }
    )
)
