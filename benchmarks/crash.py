"""Kills at random moments, and how many of the finished results were those of an undisturbed run.

    python benchmarks/crash.py                      50 kills, about 20 minutes on 2 cores
    python benchmarks/crash.py --kills 8 --seed 3
    python benchmarks/crash.py --clock windows --partitions 3

Four kinds in turn: the actor of a run, the raylet under it (of a local cluster of several raylets, made with Ray's test
utility), the driver, and Ctrl-C. After the first two the run must end by itself, after the others by `emu run
--resume`. Only what this program started is killed: processes below its own.
"""  # fmt: skip

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("actor", "raylet", "driver", "ctrl-c")
# Some seconds of work, most of them in the scheduler.
RUN = ("run", "--scheduler", "dist-lwl", "--workload", "yahoo", "--set", "workload_seed=0", "--json")
SIZES = {
    "virtual": ("--nodes", "15000"),
    # A barrier for every two or three events: a small part of the same workload takes as long.
    "windows": (
        "--nodes",
        "1000",
        "--set",
        "workload_options.nodes=1000",
        "--set",
        "workload_options.jobs=60",
    ),
}
OFTEN = ("--set", "checkpoint.period=0.2 s")
RESULTS = ("jobs.parquet", "timeline.parquet")
LONGEST_S = 6.0  # from the actor's start to the kill; later the run is over
LIMIT_S = 300.0


def main() -> None:
    """Kill, compare, and print a line a kill and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--clock", default="virtual", choices=["virtual", "windows"])
    parser.add_argument("--partitions", type=int, default=3, help="of the clock 'windows'")
    options = parser.parse_args()
    whole = [*RUN, *SIZES[options.clock]]
    run = [*whole, "--clock", options.clock]
    if options.clock == "windows":
        run += ["--partitions", str(options.partitions)]
    kinds, chance = options.kinds.split(","), random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="emu-crash-"))
    nodes = max(options.partitions if options.clock == "windows" else 1, 1)
    cluster = LocalCluster(nodes)
    try:
        finish(start([*whole, "--in-process", "--out", "whole"], folder))
        counts: Counter[str] = Counter()
        while sum(counts.values()) < options.kills:
            kind = kinds[sum(counts.values()) % len(kinds)]
            said = one_kill(kind, run, folder, cluster, chance)
            if said is None:
                continue  # the run was over before
            counts[said] += 1
            print(f"{sum(counts.values()):3d} {kind:8s}{said}", flush=True)
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{sum(counts.values())} kills: {counts['identical']} results identical")
    sys.exit(counts["identical"] != sum(counts.values()))


def one_kill(
    kind: str, run: list[str], folder: Path, cluster: LocalCluster, chance: random.Random
) -> str | None:
    """Run once with a kill at a random moment; what came of it, or None if the run was over before."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    driver = start([*run, *OFTEN, "--address", cluster.address, "--out", "run"], folder)
    end = time.monotonic() + LIMIT_S
    while not cluster.hosts() and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(chance.uniform(0, LONGEST_S))
    hosts = cluster.hosts()
    if driver.poll() is not None or not hosts:
        finish(driver)
        return None
    if kind in ("actor", "raylet"):
        victim = chance.choice(hosts)
        if kind == "raylet":
            cluster.kill_raylet_of(victim)
        else:
            os.kill(victim, signal.SIGKILL)
    else:
        driver.send_signal(signal.SIGKILL if kind == "driver" else signal.SIGINT)
    code, error = finish(driver)
    cluster.heal()
    if kind in ("driver", "ctrl-c"):
        if code not in (-signal.SIGKILL, 130):
            return None if code == 0 else f"ended with {code}: {error}"
        code, error = finish(start(["run", "--resume", "run", "--address", cluster.address], folder))
    if code != 0:
        return f"ended with {code}: {error}"
    same = all((folder / "run" / n).read_bytes() == (folder / "whole" / n).read_bytes() for n in RESULTS)
    return "identical" if same else "DIFFERENT"


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start the program in a folder."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the program's end: exit code and what it said last."""
    _, error = process.communicate(timeout=LIMIT_S)
    return process.returncode, error.strip().rpartition("\n")[2]


class LocalCluster:
    """A Ray cluster of several raylets on this machine: a head without CPUs, and nodes with one each, one to spare."""

    def __init__(self, nodes: int):
        from ray.cluster_utils import Cluster

        quick = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 4}
        system = {f"health_check_{name}": value for name, value in quick.items()}
        self._cluster: Any = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": system}
        )
        self._nodes = [self._cluster.add_node(num_cpus=1) for _ in range(nodes + 1)]
        self.address: str = self._cluster.address

    def hosts(self) -> list[int]:
        """Process ids of the actors that host partitions here."""
        rows = [line.split(None, 2) for line in _ps()]
        parents = {int(pid): int(parent) for pid, parent, *_ in rows}
        raylets = {self._raylet(node) for node in self._nodes}
        named = [int(row[0]) for row in rows if len(row) > 2 and row[2].startswith("ray::Host")]
        return [pid for pid in named if parents.get(pid) in raylets]

    def kill_raylet_of(self, pid: int) -> None:
        """Kill the raylet under which an actor runs."""
        parents = {int(row[0]): int(row[1]) for row in (line.split(None, 2) for line in _ps())}
        for node in self._nodes:
            if self._raylet(node) == parents.get(pid):
                os.kill(self._raylet(node), signal.SIGKILL)

    def heal(self) -> None:
        """Put a new node in the place of each that is dead."""
        for i, node in enumerate(self._nodes):
            if node.dead_processes():
                self._cluster.remove_node(node, allow_graceful=False)
                self._nodes[i] = self._cluster.add_node(num_cpus=1)

    def close(self) -> None:
        """Stop it."""
        self._cluster.shutdown()

    @staticmethod
    def _raylet(node: Any) -> int:
        return int(node.all_processes["raylet"][0].process.pid)


def _ps() -> list[str]:
    told = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


if __name__ == "__main__":
    main()
