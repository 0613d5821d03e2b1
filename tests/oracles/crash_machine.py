"""What `tests.oracles.crash` kills and looks at: processes, raylets of a local cluster, files, what a run leaves."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

NOT_ACTORS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::DAGDriverProxyActor")
APPEARS_S = 30.0  # for a victim that is not there
DIES_S = 5.0  # for one that was killed to be gone


class Process(NamedTuple):
    """A line of ps."""

    pid: int
    parent: int
    session: int
    command: str


def processes() -> list[Process]:
    """All processes of this machine that have not ended."""
    found = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,sid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 4) for line in found.stdout.splitlines()]
    return [Process(*map(int, r[:3]), r[4]) for r in rows if len(r) == 5 and not r[3].startswith("Z")]


def session_of(driver: int) -> int | None:
    """The process that drives Ray for a program, which leads a session; None if it does not run."""
    mine = [p.pid for p in processes() if p.parent == driver and "actors.hosting.ray_driver" in p.command]
    return mine[0] if mine else None


def victims(kind: str, driver: int, cluster: LocalCluster | None = None) -> list[int]:
    """What there is of a kind for a running program."""
    if kind in ("driver", "term"):
        return [driver]
    leader = session_of(driver)
    if leader is None:
        return []
    if kind == "ray-driver":
        return [leader]
    if cluster is not None:
        return cluster.raylets_with_work()
    members = [p for p in processes() if p.session == leader]
    if kind == "actor":
        return [
            p.pid for p in members if p.command.startswith("ray::") and not p.command.startswith(NOT_ACTORS)
        ]
    name = {"raylet": "/raylet/raylet ", "gcs": "/gcs/gcs_server "}[kind]
    return [p.pid for p in members if name in p.command]


def kill(
    kind: str, driver: int, cluster: LocalCluster | None, chance: random.Random, sessions: set[int]
) -> bool:
    """Kill one of a kind, as soon as there is one; whether there was. Adds the session of the program to `sessions`."""
    end = time.monotonic() + APPEARS_S
    while not (found := victims(kind, driver, cluster)):
        if time.monotonic() > end or not _lives(driver):
            return False
        time.sleep(0.01)
    leader = session_of(driver)
    if leader is not None:
        sessions.add(leader)
    with suppress(ProcessLookupError):
        os.kill(chance.choice(found), signal.SIGTERM if kind == "term" else signal.SIGKILL)
    return True


def _lives(pid: int) -> bool:
    return any(p.pid == pid for p in processes())


class LocalCluster:
    """A Ray cluster of several raylets on this machine: a head without CPUs, and nodes with one each, one to spare."""

    def __init__(self, nodes: int):
        from ray.cluster_utils import Cluster

        quick = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 4}
        system = {f"health_check_{name}": value for name, value in quick.items()}
        self._cluster: Any = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": system}
        )
        self._nodes = [self._cluster.add_node(num_cpus=1) for _ in range(nodes)]
        self.address: str = self._cluster.address

    def raylets_with_work(self) -> list[int]:
        """Raylets under which actors or tasks run."""
        raylets = {self._raylet(node) for node in self._nodes}
        parents = {p.parent for p in processes() if p.command.startswith(("ray::Host", "ray::_task"))}
        return sorted(raylets & parents)

    def heal(self) -> None:
        """Put a new node in the place of one that was killed, as soon as it is dead.

        Its workers end when its process is gone: while it is a zombie, they take it as alive.
        """
        end = time.monotonic() + DIES_S
        while not any(node.dead_processes() for node in self._nodes) and time.monotonic() < end:
            time.sleep(0.01)
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


# The only parts of a run directory that may differ: when it was run, how long that took, and how often it was taken up.
WALL = {"wall_s", "load_s", "compile_s", "tasks_per_s", "peak_rss_mb", "restarts"}
LATER = {
    "process",
    "record",
    "results",
    "bytes",
    "at",
    "address",
    "sha256",
}  # of a manifest: hashes of what has wall times in it
BUT = {"comparison.csv": ",engine,", "config.toml": "address ="}  # lines of wall times; where it ran
SKIPPED = {"results.csv", "results.parquet", "report.html"}  # of a sweep: rows with wall times


def differences(run: Path, whole: Path, said: str) -> str:
    """In what a finished directory differs from that of an undisturbed run; empty: in nothing."""
    ours, theirs = (sorted(p.relative_to(f) for p in f.rglob("*") if p.is_file()) for f in (run, whole))
    if ours != theirs:
        return f"OTHER FILES: {sorted(map(str, set(ours) ^ set(theirs)))}"
    for name in ours:
        if name.name in SKIPPED:
            continue
        if name.suffix == ".json":
            same = _plain(run / name) == _plain(whole / name)
        elif name.name in BUT:
            same = _but(run / name, BUT[name.name]) == _but(whole / name, BUT[name.name])
        else:
            same = (run / name).read_bytes() == (whole / name).read_bytes()
        if not same:
            return f"DIFFERENT: {name}"
    restarts = any('"restarts"' in (run / name).read_text() for name in ours if name.name == "summary.json")
    return "SILENT: taken up again without a word" if restarts and "note:" not in said else ""


def _but(path: Path, what: str) -> list[str]:
    """The lines of a file without those that have a word in them."""
    return [line for line in path.read_text().splitlines() if what not in line]


def _plain(path: Path) -> Any:
    """A summary or manifest without what may differ."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k not in WALL and k not in LATER}
        return [without(v) for v in value] if isinstance(value, list) else value

    return without(json.loads(path.read_text()))


def leftovers(sessions: set[int], run: Path, grace_s: float) -> str:
    """What a program that has ended left behind, after some seconds of grace; empty: nothing."""
    end = time.monotonic() + grace_s
    while found := _left(sessions, run):
        if time.monotonic() > end:
            return f"LEFT BEHIND: {found}"
        time.sleep(0.1)
    return ""


def _left(sessions: set[int], run: Path) -> str:
    if living := [p for p in processes() if p.session in sessions]:
        return f"process {living[0].command[:80]}"
    for place in {"/tmp", tempfile.gettempdir()}:
        for name in os.listdir(place):
            if re.fullmatch(r"emu_(?:ray|checkpoints|events|explain)_.*", name) and not _is_held(
                f"{place}/{name}"
            ):
                return f"folder {place}/{name}"
    hidden = [p for p in run.rglob(".*") if p.name != ".lock"]
    return f"file {hidden[0]}" if hidden else ""


def _is_held(folder: str) -> bool:
    """Whether a process holds the lock of a temporary folder; one that is gone by now is held by its remover."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
