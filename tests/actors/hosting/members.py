"""Partitions in threads of this process that meet in shared memory, on one machine or on several; and settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from emulations import OBSERVED, cluster_of, mixed_workload, named, setting_of, with_failures

from actors.hosting import relay
from actors.hosting.checkpoint import Position
from actors.hosting.member import Member, Met
from actors.hosting.outcome import Observe, Outcome, merge_shares
from actors.hosting.snapshot import Snapshot
from actors.hosting.windows import divide, lead_ns, window_ns
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs, Network, Setting, Switch
from actors.transfers.joined import with_network
from clusters.cluster import build_cluster
from tests.actors.dag_settings import mixed_dags, unlike_machines, with_bytes
from tests.actors.dag_settings import setting_of as dag_setting
from workloads.catalogue import load_workload

BOUND_S = 600.0  # for what is wrong to end, and not to hang
RACKED = cluster_of([1, 2, 1] * 8, [i // 3 for i in range(24)])
VARIES = Network(0.01, spread_s=0.02, cross_rack_delay_s=0.05)


Machines = Sequence[Sequence[int]]
ONE: list[Machines] = [[[0, 1]], [[0, 1, 2]], [[0, 1, 2, 3, 4, 5]]]
SEVERAL: list[Machines] = [[[0], [1]], [[0, 2], [1]], [[0], [1], [2]], [[0, 3, 4], [1, 5], [2]]]


def size_of(machines: Machines) -> int:
    """How many partitions they have."""
    return sum(map(len, machines))


class Group:
    """Members in threads; each of `machines`, given by its partitions, has a memory of its own."""

    def __init__(self, setting: Setting, observe: Observe, machines: Machines):
        self.setting, self.machines = setting, machines
        partitions = size_of(machines)
        self.members = [Member(setting, observe) for _ in range(partitions)]
        grouping = divide(setting, self.members[0].cast(), partitions)
        for k, member in enumerate(self.members):
            member.start()
            member.join(grouping, k, lead_ns(setting, window_ns(setting, None)))
        for machine in self.machines:
            first, *_ = group = [self.members[k] for k in machine]
            place = first.offer()
            for member in group:
                assert member.can_share(place)
                member.share_memory(place, window_ns(setting, None))
            first.withdraw()
        if len(self.machines) > 1:
            self._connect()

    def _connect(self) -> None:
        firsts = [self.members[machine[0]] for machine in self.machines]
        addresses = [first.listen("127.0.0.1") for first in firsts]
        with ThreadPoolExecutor(len(firsts)) as threads:
            for call in [threads.submit(f.connect, self.machines, addresses, b"secret") for f in firsts]:
                call.result(BOUND_S)

    def close(self) -> None:
        for member in self.members:
            member.leave()

    def meet(self, *arguments: Any) -> list[Met]:
        with ThreadPoolExecutor(len(self.members)) as threads:
            calls = [threads.submit(member.meet, *arguments) for member in self.members]
            return [call.result(BOUND_S) for call in calls]

    def continued(self, saved: Sequence[Snapshot], at: Position) -> Outcome:
        """Go back to snapshots of such a group, after some windows without events, and on to the end."""
        self.meet(0.0, 4)
        for member, of in zip(self.members, saved, strict=True):
            member.restore(of)
            member.go_back_to(at)
        return self.to_the_end(3600.0)

    def to_the_end(self, most_s: float) -> Outcome:
        for _ in range(100_000):
            mets = self.meet(most_s)
            assert len({met[:-1] for met in mets}) == 1  # all know the same
            if mets[0].done:
                break
        outcome = merge_shares(self.setting, [member.share() for member in self.members])
        return replace(outcome, windows=mets[0].windows)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Let no machine be late, or silent, because it has much else to do."""
    for limit in ("CONNECT_S", "GREET_S", "SILENT_S"):
        patch.setattr(relay, limit, BOUND_S)


@contextmanager
def group_on(machines: Machines, setting: Setting, observe: Observe = OBSERVED) -> Iterator[Group]:
    """A group that leaves no connection and no thread."""
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        group = Group(setting, observe, machines)
        try:
            yield group
        finally:
            group.close()
    assert threading.active_count() == before[0]
    members = len(group.members)
    assert len(os.listdir("/proc/self/fd")) <= before[1] + members  # their memories are freed with them


def fails(*_: object) -> int:
    """In place of a decision of a user's scheduler."""
    raise ValueError("of a user's scheduler")


def small(scheduler: str, **changes: Any) -> Setting:
    workload = mixed_workload(12, seed=5)
    made = setting_of(named(scheduler), workload, RACKED, long_partition=0.75, network=VARIES, seed=3)
    return replace(made, **changes)


def of_coflows() -> Setting:
    found = find_scheduler("philae")
    made = load_workload("synthetic-coflows", options={"coflows": 30, "ports": 12})
    cluster = build_cluster("ports", [1] * 12)
    return Setting(found, resolve_parameters(found, {}), made, cluster, 10.0, 1.0, Network(0.001), seed=2)


def of_dags() -> Setting:
    return dag_setting("drf", mixed_dags(12, seed=5), unlike_machines(), network=Network(0.01))


def over_network() -> Setting:
    """Five managers, so that there are as many partitions as tests want."""
    machines = build_cluster("machines", [4] * 5, cpu_cores=[4.0] * 5)
    work = with_bytes(mixed_dags(12, seed=5), 5)
    made = dag_setting("drf", work, machines, network=Network(0.01), managers=5)
    switch = Switch(port_bytes_per_s=1e9, scheduler="sebf")
    return replace(made, scheduler=with_network(made.scheduler, find_scheduler("sebf")), switch=switch)


CASES = {
    "eagle": lambda: small("eagle"),
    "a user's own": lambda: small("own"),
    "costs": lambda: small("hawk", costs=Costs("fixed", per_message_s=0.02, per_job_s=0.3, per_task_s=0.05)),
    "failures": lambda: with_failures(small("yacc-d")),
    "coflows": of_coflows,
    "DAGs": of_dags,
    "DAGs over a network": over_network,
}
