"""Kills at random moments, and how many of the finished results were those of an undisturbed run.

    python -m tests.oracles.crash                             20 kills of each kind, about half an hour on 2 cores
    python -m tests.oracles.crash --kills 200 --seed 3        some hours
    python -m tests.oracles.crash --kinds gcs,driver --clocks windows --phases start-up

What is killed (`--kinds`): the actor of a partition; the raylet beside the process that drives Ray; another raylet, of
a local cluster of several; the GCS; the process that drives Ray; the driver, that is the program itself; with `term` it
gets SIGTERM. In turn with each clock, `virtual`, `windows`, in a run that is `recorded` with its events, and in a sweep
of four runs; and in each phase, during start-up, while it runs, and while it writes results; once, or up to six times
in quick succession.

After kills of what Ray runs the program must end by itself; after those of the driver, or more losses in a row than it
takes, by `emu run --resume`, or the same sweep again. Then all files of the run must be there, and be those of an
undisturbed run except for wall times; no process, temporary folder or file may be left; no command may wait
longer than LIMIT_S after a kill; and every event must be reported in a line. Only processes that this program started
are killed.
"""  # fmt: skip

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path

from benchmarks.measuring import ROOT, parser_of
from tests.oracles.crash_machine import LocalCluster, differences, kill, leftovers, victims

KINDS = ("actor", "raylet", "other-raylet", "gcs", "ray-driver", "driver", "term")
PHASES = ("start-up", "running", "writing")
# Some seconds of work, most of them in the scheduler.
RUN = (
    *[
        "run",
        "--scheduler",
        "dist-lwl",
        "--workload",
        "yahoo",
        "--set",
        "workload_seed=0",
        "--json",
        "--out",
        "run",
    ],
)
OFTEN = ("--set", "checkpoint.period=0.2 s")
# A barrier for every two or three events: a part of the same workload takes as long.
SMALL = ("--nodes", "1000", "--set", "workload_options.nodes=1000", "--set", "workload_options.jobs=2000")
RECORDED = ("--set", "output.events=all", "--set", "workload_options.nodes=2000")
COMMANDS: dict[str, tuple[str, ...]] = {
    "virtual": (*RUN, *OFTEN, "--nodes", "15000", "--set", "workload_options.jobs=12000"),
    "windows": (*RUN, *OFTEN, *SMALL, "--clock", "windows", "--partitions", "2"),
    "recorded": (*RUN, *OFTEN, *RECORDED, "--nodes", "2000", "--set", "workload_options.jobs=4000"),
    "sweep": ("sweep", "grid.toml", "--out", "run"),
}
SWEEP = """
workload = "yahoo"
nodes = 2000
[workload_options]
nodes = 2000
jobs = 4000
[sweep]
scheduler = ["sparrow", "dist-lwl"]
seed = [1, 2]
"""
LIMIT_S = 120.0
AT_ONCE = (1, 1, 2, 3, 6)
GIVEN_UP = (
    "times without a checkpoint in between"  # what a program says that ends after more losses than it takes
)
GRACE_S = 8.0  # for what is left behind to be gone


@dataclass(frozen=True)
class Times:
    """Of an undisturbed run, in s since its start."""

    hosts: float  # its first actor is there
    end: float


def main() -> None:
    """Kill, compare, and print a line a run and what they come to."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    for name, values in (("kinds", KINDS), ("clocks", tuple(COMMANDS)), ("phases", PHASES)):
        parser.add_argument(f"--{name}", default=",".join(values))
    options = parser.parse_args()
    os.environ["RAY_AUTH_MODE"] = (
        "disabled"  # the cluster and who joins it must agree, whatever this machine has
    )
    clocks, phases = options.clocks.split(","), options.phases.split(",")
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    (folder / "grid.toml").write_text(SWEEP)
    kills: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    cluster = LocalCluster(3) if "other-raylet" in options.kinds else None
    try:
        times = {clock: undisturbed(clock, folder) for clock in clocks}
        for kind in options.kinds.split(","):
            for turn, (clock, phase) in enumerate(cycle(product(clocks, phases))):
                if kills[kind] >= options.kills or turn > 4 * options.kills:
                    break
                chance = random.Random(f"{options.seed} {kind} {turn}")
                done, found = one_run(kind, clock, phase, folder, cluster, times[clock], chance)
                if not done:
                    continue
                kills[kind], runs[found] = kills[kind] + done, runs[found] + 1
                print(f"{kills[kind]:4d} {kind:13s}{clock:9s}{phase:10s}{done} killed: {found}", flush=True)
    finally:
        if cluster is not None:
            cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"kills: {', '.join(f'{kind} {number}' for kind, number in kills.items())}")
    print(f"{sum(runs.values())} runs: {runs['identical']} identical")
    sys.exit(runs["identical"] != sum(runs.values()))


def undisturbed(clock: str, folder: Path) -> Times:
    """Run a clock's command twice, the second time with all compiled; keeps its files in `whole-CLOCK`."""
    for _ in range(2):
        shutil.rmtree(folder / "run", ignore_errors=True)
        begin, driver = time.monotonic(), start(COMMANDS[clock], folder)
        while not victims("actor", driver.pid) and driver.poll() is None:
            time.sleep(0.02)
        hosts = time.monotonic() - begin
        code, error = finish(driver)
        assert code == 0, error
        times = Times(hosts, time.monotonic() - begin)
    shutil.rmtree(folder / f"whole-{clock}", ignore_errors=True)
    (folder / "run").rename(folder / f"whole-{clock}")
    print(f"{clock}: the first actor after {times.hosts:.1f} s, the end after {times.end:.1f} s", flush=True)
    return times


def one_run(
    kind: str,
    clock: str,
    phase: str,
    folder: Path,
    cluster: LocalCluster | None,
    times: Times,
    chance: random.Random,
) -> tuple[int, str]:
    """Run once, with kills of one kind; how many there were, and what came of it."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    command = list(COMMANDS[clock])
    joined = cluster if kind == "other-raylet" else None
    if joined is not None:
        command += ["--address", joined.address]
    wanted = chance.choice(AT_ONCE)
    done, sessions, again, repeated = 0, set(), command, False
    while True:
        driver = start(again, folder)
        while done < wanted and _moment(phase if not done else "", driver, folder, times, chance, joined):
            killed = kill(kind, driver.pid, joined, chance, sessions)
            if not killed:
                break
            done += 1
            if joined is not None:
                joined.heal()
            if kind in ("driver", "term"):
                break
        code, error = finish(driver)
        if (code in (-signal.SIGKILL, 130) and kind in ("driver", "term")) or (
            code == 1 and any(words in error for words in GIVEN_UP)
        ):
            again, repeated = _again(clock, folder, command), True
            continue
        if code == "hangs" or code != 0:
            return max(done, 1), f"ended with {code}: {error}"
        if not done:
            return 0, ""
        if repeated:
            error = "note: who gives --resume knows"
        return done, differences(folder / "run", folder / f"whole-{clock}", error) or leftovers(
            sessions, folder / "run", GRACE_S
        ) or "identical"


def _moment(
    phase: str,
    driver: subprocess.Popen[str],
    folder: Path,
    times: Times,
    chance: random.Random,
    cluster: LocalCluster | None,
) -> bool:
    """Wait for a moment in a phase, or soon after a kill; whether the program still runs."""
    run = folder / "run"
    if phase == "start-up":
        time.sleep(chance.uniform(0, times.hosts))
    elif phase == "running":
        while not victims("actor", driver.pid, cluster) and driver.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, times.end - times.hosts))
    elif phase == "writing":
        while driver.poll() is None and not _writes(run):
            time.sleep(0.001)
        time.sleep(chance.choice([0.0, chance.uniform(0, 0.05)]))
    else:
        time.sleep(chance.uniform(0, 3.0))
    return driver.poll() is None


def _writes(run: Path) -> bool:
    """Whether a run, or one of a sweep, has begun to write its results."""
    places = ("*jobs.parquet*", ".jobs.parquet*", "*/*/*jobs.parquet*")
    try:
        return any(any(run.glob(place)) for place in places)
    except FileNotFoundError:  # a folder that was there is gone
        return False


def _again(clock: str, folder: Path, command: list[str]) -> list[str]:
    """The command that resumes what a driver left."""
    if not (folder / "run" / "manifest.json").exists():
        shutil.rmtree(folder / "run", ignore_errors=True)
        return command
    return command if clock == "sweep" else ["run", "--resume", "run"]


def start(arguments: list[str] | tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    """Start the program in a folder; what it says and what it prints come in one."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int | str, str]:
    """Wait for the program's end: exit code, or "hangs", and what it said."""
    try:
        error, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        error, _ = process.communicate()
        return "hangs", error.strip()
    return process.returncode, error.strip()


if __name__ == "__main__":
    main()
