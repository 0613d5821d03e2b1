"""Two machines made of this one: every clock and a sweep on a Ray cluster that others started, by `--address`.

    python -m benchmarks.machines            three minutes on 2 cores; wants Linux, root and iproute2

Each machine is a network namespace with an address of its own; the second has a monotonic clock that is 5,000 s ahead
(a time namespace), as clocks of two machines are. Ray is started on both as docs/sweeps.md says. `virtual` and
`windows` in 2, 3 and 4 partitions must give the bytes of a run in one process, also when a partition on the other
machine is killed or stopped; a sweep must use both machines' CPUs and fail nowhere; and `live` must pace both machines
alike: were their clocks taken for one, messages would be 5,000 s late, or early.
"""  # fmt: skip

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import ROOT, parser_of

HEAD, OTHER = "emu-head", "emu-other"
ADDRESS = "10.77.0.1:6400"
AHEAD_S = "5000"
RAY = Path(sys.executable).with_name("ray")
START = (str(RAY), "start", "--num-cpus=1", "--object-store-memory=400000000", "--disable-usage-stats")
SEED = ("--set", "workload_seed=0")
YAHOO = ("--workload", "yahoo", *SEED, "--nodes", "1000", "--set", "workload_options.nodes=1000")
SMALL = (*YAHOO, "--set", "workload_options.jobs=300")
LONGER = (*YAHOO, "--set", "workload_options.jobs=1000")
STEADY = ("load=0.3", "jobs=300", "nodes=500", "mean_task_s=1", "tasks_per_job=10")
LIVE = (
    *("--clock", "live", "--workload", "poisson", *SEED, "--nodes", "500", "--set", "network.delay=5 ms"),
    *(word for option in STEADY for word in ("--set", f"workload_options.{option}")),
)
SWEEP = """
workload = "yahoo"
workload_seed = 0
nodes = 1000
workload_options = { jobs = 300, nodes = 1000 }
sweep = { scheduler = ["sparrow", "hawk"], seed = [1, 2, 3] }
"""
LATE_S = 1.0  # far below the difference of the clocks, far above what a busy machine adds


def main() -> int:
    """Print a line for each thing shown; 1 if one does not hold."""
    parser_of(__doc__).parse_args()
    with two_machines(), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "grid.toml").write_text(SWEEP)
        shown = [
            shows("virtual gives the bytes of a run in one process", same_bytes(folder, "virtual", SMALL)),
            *(
                shows(f"windows in {k} partitions, likewise", same_bytes(folder, "windows", SMALL, k))
                for k in (2, 3, 4)
            ),
            *(
                shows(f"also when one on the other machine is {how}", recovers(folder, how, number))
                for how, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP))
            ),
            shows(
                "a sweep of 6 runs fails nowhere", not emu(folder, "sweep", "grid.toml", "--address", ADDRESS)
            ),
            shows("live paces both machines alike", live_keeps_up(folder)),
        ]
    return 0 if all(shown) else 1


def shows(what: str, holds: bool) -> bool:
    """Say whether something holds."""
    print(f"{'yes' if holds else 'NO '}  {what}", flush=True)
    return holds


def same_bytes(folder: Path, clock: str, size: tuple[str, ...], partitions: int = 1) -> bool:
    """Whether a run on both machines writes the jobs of a run in this process."""
    options = ("--clock", clock, "--partitions", str(partitions)) if clock == "windows" else ()
    run, name = ("run", "--scheduler", "sparrow", *size), f"{clock}-{partitions}"
    failed = emu(folder, *run, "--in-process", "--out", f"{name}-here")
    failed = failed or emu(folder, *run, *options, "--address", ADDRESS, "--out", f"{name}-there")
    return not failed and have_same_jobs(folder / f"{name}-here", folder / f"{name}-there")


def have_same_jobs(here: Path, there: Path) -> bool:
    """Whether two runs have the same jobs; of windows, print how long each took."""
    summary = json.loads((there / "summary.json").read_text())
    if "windows" in summary:
        windows, wall_s = summary["windows"]["windows"], summary["engine"]["wall_s"]
        print(f"     {windows:,} windows, {1e6 * wall_s / windows:.0f} µs each")
    return (here / "jobs.parquet").read_bytes() == (there / "jobs.parquet").read_bytes()


def recovers(folder: Path, how: str, number: signal.Signals) -> bool:
    """Whether a run goes on, to the same jobs, after a signal to a partition on the other machine."""
    run = ("run", "--scheduler", "sparrow", *LONGER)
    options = (
        "--clock",
        "windows",
        "--partitions",
        "2",
        "--set",
        "checkpoint.period=1 s",
        "--address",
        ADDRESS,
    )
    if emu(folder, *run, "--in-process", "--out", f"{how}-here"):
        return False
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(emu, folder, *run, *options, "--out", f"{how}-there")
        while not done.done() and not any((folder / f"{how}-there").rglob("*.npz")):
            time.sleep(0.1)
        struck = [pid for pid in processes_of(OTHER) if "ray::Host" in command_of(pid)]
        for pid in struck:
            os.kill(pid, number)
        begin = time.monotonic()
        failed = done.result()
    print(f"     {time.monotonic() - begin:.1f} s from the signal to the end")
    if failed or len(struck) != 1:
        return False
    restarts = json.loads((folder / f"{how}-there" / "summary.json").read_text())["engine"].get("restarts")
    return restarts == 1 and have_same_jobs(folder / f"{how}-here", folder / f"{how}-there")


def processes_of(machine: str) -> list[int]:
    """Return the processes of a machine."""
    found = subprocess.run(["ip", "netns", "pids", machine], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def command_of(pid: int) -> str:
    """Return the command line of a process, "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def live_keeps_up(folder: Path) -> bool:
    """Whether events of a live run are handled when they are due on both machines."""
    if emu(folder, "run", "--scheduler", "sparrow", *LIVE, "--address", ADDRESS, "--out", "live"):
        return False
    live = json.loads((folder / "live" / "summary.json").read_text())["live"]
    print(f"     message latency {live['message_latency']}")
    worst = [live["message_latency"]["max"], *(part["max"] for part in live["lateness"].values())]
    return live["message_latency"]["p50"] > 0 and max(worst) < LATE_S


def emu(folder: Path, *arguments: str) -> int:
    """Run the program on the first machine; its exit code."""
    begin = time.monotonic()
    done = on(HEAD, [sys.executable, str(ROOT / "run.py"), *arguments], cwd=folder)
    print(f"     {time.monotonic() - begin:5.1f} s  emu {' '.join(arguments)}", flush=True)
    if done.returncode:
        print(done.stderr.strip().rpartition("\n")[2])
    return done.returncode


@contextmanager
def two_machines() -> Iterator[None]:
    """Make the machines and the cluster, and take them away again."""
    ip(
        f"netns add {HEAD}",
        f"netns add {OTHER}",
        f"link add wire netns {HEAD} type veth peer name wire netns {OTHER}",
    )
    files = tempfile.mkdtemp(dir="/tmp")  # else other programs here would join this cluster
    try:
        for name, address in ((HEAD, "10.77.0.1/24"), (OTHER, "10.77.0.2/24")):
            ip(
                f"-n {name} addr add {address} dev wire",
                f"-n {name} link set lo up",
                f"-n {name} link set wire up",
            )
        head = ["--head", "--node-ip-address=10.77.0.1", "--port=6400", "--include-dashboard=false"]
        on(HEAD, [*START, *head, f"--temp-dir={files}"], check=True)
        other_clock = ["unshare", "--time", "--monotonic", AHEAD_S, "--boottime", AHEAD_S, "--fork"]
        on(OTHER, [*other_clock, *START, f"--address={ADDRESS}", "--node-ip-address=10.77.0.2"], check=True)
        yield
    finally:
        for name in (HEAD, OTHER):
            for pid in processes_of(name):
                subprocess.run(["kill", "-9", str(pid)], check=False)
            subprocess.run(["ip", "netns", "del", name], check=False)
        shutil.rmtree(files, ignore_errors=True)


def ip(*commands: str) -> None:
    """Run commands of iproute2."""
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


def on(
    machine: str, command: list[str], cwd: Path | None = None, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine."""
    environment = {**os.environ, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if machine == OTHER and (Path.home() / ".ray" / "auth_token").is_file():
        environment["RAY_AUTH_MODE"] = "token"  # the head wants the token then, as docs/sweeps.md says
    whole = inside(machine, command)
    return subprocess.run(
        whole, capture_output=True, text=True, env=environment, timeout=300, cwd=cwd, check=check
    )


def inside(machine: str, command: list[str]) -> list[str]:
    """Return the command that runs a command on a machine."""
    return ["ip", "netns", "exec", machine, *command]


if __name__ == "__main__":
    sys.exit(main())
