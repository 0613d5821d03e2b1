"""What `benchmarks.crash` kills: processes below a running program, and raylets of a local cluster."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
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
    """The process that drives Ray for a program, which leads a session; None if there is none now."""
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

        Its workers end when it is no process any more: until then, as a zombie, it lives for them.
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
