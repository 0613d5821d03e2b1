"""What the conformance suite shares: drawn cases as settings, runs of them, and what must be left at their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from bounded_runs import finish, started
from coflow_emulations import instants, parts_of_state, rates_now
from emulations import OBSERVED, FewestTasks, digest, run_setting

from actors.compiling.rows import is_tree
from actors.fabric.counters import N_DECISIONS, N_LOST
from actors.failures import NEVER_AGAIN, find_outage
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.kernel.counters import N_ARRIVED, N_FINISHED, N_STARTED
from actors.kernel.queue import NEVER, NONE, make_queue
from actors.nodes.waiting import length_of
from actors.nodes.world import make_entries
from actors.scheduler import Scheduler
from actors.schedulers.jobs.least_work import DOWN
from actors.schedulers.registry import built_in_schedulers, find_scheduler
from actors.setting import Costs, Network, Setting
from emu.configuration.plan import Plan, configure, prepare
from emu.families.drawn_cases import ALL, Case, arguments
from emu.families.jobs.constraint_check import check_tasks, levels_of, satisfying
from emu.results.result import Result
from emu.running.emulation import describe_clock, result_of
from workloads.constraints import PLACEMENT, constraint_sets, set_of_job, set_text

SCHEDULERS = {s.name: s for s in (*built_in_schedulers(), find_scheduler(FewestTasks))}
"""All built-in schedulers, and one of a user's own."""
NAMES = [*SCHEDULERS]
CASES = (0, 1, 4, ALL)
"""Seeds of the cases of the quick ring."""
FAR_BELOW = 1 << 60
"""What a manager takes off the room of a machine that is down is more."""


class Planned(NamedTuple):
    """A case, the plan of its run, and its setting."""

    case: Case
    plan: Plan
    setting: Setting


def planned(scheduler: Scheduler, seed: int | str, given: Mapping[str, Any] | None = None) -> Planned:
    """Return the case of a seed; ALL: one that has all that the scheduler declares."""
    testing = import_module(f"emu.families.{scheduler.family}.testing")
    number, features = (0, ALL) if isinstance(seed, str) else (seed, None)
    case = testing.draw_case(scheduler, number, given, features)
    with arguments(case) as settings:
        parameters = settings.pop("parameters")
        asked = {"scheduler": FewestTasks if scheduler.own else scheduler.name, "workload": case.workload}
        options = {"in_process": True, "output_tasks": True, "seed": 7}
        plan = prepare(configure({**asked, **settings, "parameters": parameters, **options}))
        plan.manifest(0)  # which reads the files of the case
    return Planned(case, plan, plan.setting(0))


OWN = {"wall_s", "compile_s", "peak_rss_mb", "partitions", "windows", "restarts", "live", "recorded"}
"""Of an outcome, what may depend on how it was computed."""


def reported(setting: Setting, outcome: Outcome) -> dict[str, Any]:
    """Return all that is reported of a run but how long it took."""
    arrivals_ns = setting.scheduler.worlds.span_ns(setting)[0]
    found = {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name not in OWN}
    return {**found, "schedulers": describe_clock(replace(outcome, windows=0), None, arrivals_ns)}


def differing(one: Any, other: Any) -> list[str]:
    """Return where two values differ."""
    if is_tree(one) and is_tree(other):
        one, other = one._asdict(), other._asdict()
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return [f"{name}.{at}" for name in names for at in differing(one.get(name), other.get(name))]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        equal = one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    else:
        equal = type(one) is type(other) and one == other
    return [] if equal else [""]


def check(scheduler: Scheduler, run: Planned, outcome: Outcome) -> Result:
    """Check the tables of a run as `check_scheduler` does."""
    result = result_of(run.plan, 0, outcome)
    import_module(f"emu.families.{scheduler.family}.testing").check_case(scheduler, run.case, result)
    return result


def divisible(scheduler: Scheduler, seed: int | str) -> Setting:
    """Return the setting of a case for any number of partitions: messages take time, and none sees others' state."""
    given: dict[str, Any] = dict.fromkeys((n for n in scheduler.global_view if n != "always"), False)
    if any(parameter.name == "managers" for parameter in scheduler.parameters):
        given["managers"] = 2
    setting = planned(scheduler, seed, given).setting
    return replace(setting, network=replace(setting.network, delay_s=max(setting.network.delay_s, 0.0005)))


@cache
def whole(scheduler: str, seed: int | str) -> tuple[Setting, Outcome]:
    """Return the setting of a case of a scheduler, and its outcome in one partition."""
    setting = divisible(SCHEDULERS[scheduler], seed)
    return setting, run_setting(setting, OBSERVED)


def tiny_arrays(monkeypatch: Any) -> None:
    """Let queues and pools of entries begin as small as they may be, so that they must grow."""
    for place in ("schedulers.jobs.build", "machines.dag_world", "fabric.fabric_world"):
        module = import_module(f"actors.{place}")
        monkeypatch.setattr(module, "make_queue", lambda seq, room: make_queue(seq, room, 2))
    monkeypatch.setattr(
        import_module("actors.schedulers.jobs.build"), "make_entries", lambda: make_entries(1)
    )


def run_watched(run: Planned) -> Partition:
    """Run a case to its end; of coflows, with a look at all rates after each instant."""
    partition = started(run.setting, OBSERVED)
    if run.setting.scheduler.family == "coflows":
        run_within_ports(partition, changes=run.setting.updates is not None)
        return partition
    return finish(partition)


def run_within_ports(partition: Partition, changes: bool) -> None:
    """Check at every instant that no port carries too much, and at the end that all has been sent, and no more.

    `changes`: flows are sent again, move or leave.
    """
    fabric = partition.world.fabric
    flows, arrival = fabric.flows, fabric.coflows.arrival[fabric.flows.coflow]
    local = flows.line[:, 0] == NONE
    sent, rates, since, steps = np.zeros(local.size), np.zeros(local.size), 0, 0
    for t in instants(partition):
        sent += rates * (t - since)
        rates, since, steps = rates_now(partition), t, steps + 1
        load = np.bincount(flows.source, rates, fabric.speed.size)
        load += np.bincount(flows.sink, rates, fabric.speed.size)
        assert (load <= fabric.speed * (1 + 1e-9)).all(), f"at {t} ns"
        assert (arrival[rates > 0] <= t).all()
        assert changes or not rates[local].any()
    assert not rates.any()
    if changes:
        lost_bytes_are_sent_again(partition, sent)
        return
    rounding = fabric.speed.max() * steps  # ends are in whole ns
    assert (sent <= flows.size + rounding).all()
    if (partition.outcome().finish_ns >= 0).all():  # no coflow was dropped
        assert (np.where(local, flows.size, sent) >= flows.size - rounding).all()


def lost_bytes_are_sent_again(partition: Partition, sent: np.ndarray) -> None:
    """Check that ports sent what all coflows have, and what updates lost; where coflows leave it is not known."""
    setting, world = partition.setting, partition.world
    if (partition.outcome().finish_ns < 0).any() or setting.switch.local_is_free:
        return
    rounding = world.fabric.speed.max() * float(world.queue.now.events[0]) + 100
    wanted = setting.workload.arrays().size_bytes.sum() + world.counts[N_LOST]
    assert abs(sent.sum() - wanted) <= rounding


# Where decisions are made at the end of intervals, ports may wait for it. Nothing waits elsewhere, except for
# pilots where coflows that are being sampled get nothing else.
BY_INTERVAL = {"aalo", "aalo-oracle", "aalo-shares", "saath"}
NOT_CONSERVING = {"cds-lp", "cds-lpa", "sebf-deadline"}  # by plan, and where nothing is backfilled


def no_flow_waits_while_its_ports_idle(run: Planned) -> None:
    """Check at every instant that of each flow that could be sent one of the two ports is busy, without delays."""
    given, scheduler = run.setting.parameters, run.setting.scheduler
    if not given.get("work_conservation", True) or not given.get("serve_rejected", True):
        return
    setting = replace(run.setting, network=Network(0.0), costs=Costs(), updates=None)
    partition, made = started(setting, OBSERVED), 0
    periodic = given.get("decide") == "interval" or given.get("update_period_s", 0.0) > 0
    waits_for_interval = periodic or scheduler.name in BY_INTERVAL
    fabric, counts, flows = partition.world.fabric, partition.world.counts, partition.world.fabric.flows
    arrival, crossing = fabric.coflows.arrival[flows.coflow], flows.line[:, 0] != NONE
    for t in instants(partition):
        decided, made = counts[N_DECISIONS] > made, counts[N_DECISIONS]
        if decided or not waits_for_interval:
            rates = rates_now(partition)
            busy = np.union1d(flows.source[rates > 0], flows.sink[rates > 0])
            waits = crossing & (arrival <= t) & (flows.finish == NEVER) & (rates == 0)
            idle = ~np.isin(flows.source, busy) & ~np.isin(flows.sink, busy)
            assert not (waits & idle).any(), f"at {t} ns"


def first_levels(setting: Setting) -> list[int]:
    """Return how many soft constraints each job that has constraints must do without for its tasks to fit."""
    workload, racks = setting.workload, setting.cluster.racks()
    tasks, sets = np.diff(workload.arrays().first_task), constraint_sets(workload)
    jobs = [(job, which) for job, which in enumerate(set_of_job(workload)) if which >= 0]
    return [first_level(setting, sets[which], int(tasks[job]), racks) for job, which in jobs]


def first_level(setting: Setting, constraints: Any, tasks: int, racks: np.ndarray) -> int:
    """Return how many of some constraints must be dropped for so many tasks to fit on the cluster."""
    for dropped, level in enumerate(levels_of(constraints)):
        nodes = np.ones(setting.cluster.num_nodes, bool)
        for one in level.kept:
            if one.attribute != PLACEMENT:
                nodes &= satisfying(setting.cluster, one)
        lying = {one.value for one in level.kept if one.attribute == PLACEMENT}
        alone = [racks[nodes & (racks == rack)] for rack in set(racks)]
        for group in alone if "same-rack" in lying else [racks[nodes]]:
            room = float("inf") if len(group) else 0
            room = min(room, len(group)) if "spread-nodes" in lying else room
            room = min(room, len(set(group))) if "spread-racks" in lying else room
            if room >= tasks:
                return dropped
    raise AssertionError(f"{set_text(constraints)}: {tasks} tasks fit at no level")


def jobs_start_at_the_first_level_at_which_they_fit(run: Planned, result: Result, relaxes: bool) -> None:
    """Check it by nodes and durations of tasks; `relaxes`: a job may do without further constraints."""
    setting = run.setting
    found = check_tasks(
        result.tasks.to_pandas(),
        setting.workload,
        setting.cluster,
        relaxed=result.counters.get("jobs_relaxed", 0),
        machine_speed=setting.machine_speed,
        straggling=setting.dynamics.straggler_share > 0 or setting.preemption is not None,
    )
    for first, (least, most) in zip(first_levels(setting), found.iloc[:, 2:].to_numpy(), strict=True):
        assert first <= most
        assert least <= first or relaxes


def nothing_is_left(partition: Partition) -> None:
    """Check that queues are empty, and that what tasks and flows held is free again."""
    family, world = partition.setting.scheduler.family, partition.world
    if family == "coflows":
        state = parts_of_state(partition)
        assert not world.sending.rate.any()
        assert state.agenda.due[0] == NEVER
        if hasattr(state, "matching") and not getattr(state, "by_madd", False):
            assert (state.matching.flow < 0).all()
            assert state.matching.running[0] == 0
        return
    up = np.ones(partition.setting.cluster.num_nodes, bool)
    if world.faults.active:
        actors = world.faults.actors[: up.size]
        up = actors.down == 0
        if family == "jobs":
            assert (actors.running == NONE).all()
            assert (world.faults.jobs.lost == 0).all()
            assert (world.faults.jobs.again == NONE).all()
    if family == "dags":
        held = (world.machines.capacity - world.machines.free)[up]
        assert not held[held < FAR_BELOW].any()  # but of machines that their manager takes for down
        assert (world.tasks.ready == 0).all()
        return
    nothing_waits_at_nodes(partition, up)


def nothing_waits_at_nodes(partition: Partition, up: np.ndarray) -> None:
    """Check nodes that are up: only others may have something in their queues, lost work that no job needs."""
    world, setting = partition.world, partition.setting
    if not setting.resources:
        assert np.array_equal(world.nodes.idle[up], setting.cluster.slots()[up])
    else:
        assert np.array_equal(world.room.free[up], world.room.capacity[up])
    assert (world.nodes.head[up] == NONE).all()
    assert (world.nodes.longs[up] == 0).all()
    used = sum(
        length_of(world.entries, entry) for head in world.nodes.head for entry in chain_of(world, head)
    )
    assert used + sum(1 for _ in chain_of(world, world.entries.next[0])) == world.entries.job[0] - 1
    for ledger in (field.ledger for field in partition.state if hasattr(field, "ledger")):
        # Books by reports keep what a node last said, until it is back, when it has no work.
        kept = ledger.work & DOWN > 0 if hasattr(partition.state, "newest") else np.zeros(up.size, bool)
        assert (ledger.work[~kept] & (DOWN - 1) == 0).all()
    if (monitor := getattr(partition.state, "monitor", None)) is not None:
        heard = np.ones(up.size, np.int64)
        if world.faults.active:
            heard = world.faults.actors.heard[: up.size] & 1
        assert monitor.total.nodes[0] == heard.sum()
        assert monitor.total.slots[0] == (heard * monitor.slots).sum()
        assert monitor.total.busy[0] == monitor.busy.sum()


def chain_of(world: Any, entry: int) -> Iterator[int]:
    """Yield the entries of a chain."""
    while entry != NONE:
        yield int(entry)
        entry = world.entries.next[entry]


def no_task_runs_on_a_node_that_is_down(setting: Setting, outcome: Outcome) -> None:
    """Check the last attempts against all outages, planned and drawn."""
    faults = setting.scheduler.build(setting)[0].faults
    if not faults.active:
        return
    assert outcome.tasks is not None
    node, start, finish = (outcome.tasks[name] for name in ("node", "start_ns", "finish_ns"))
    with np.errstate(over="ignore"):
        for each in range(setting.cluster.num_nodes):
            here, k, since = node == each, 0, np.int64(faults.origin)
            while True:
                fail, back = find_outage(faults, setting.seed, np.int64(each), np.int64(k), np.int64(since))
                if fail >= min(NEVER_AGAIN, outcome.finish_ns.max()):
                    break
                assert ((finish[here] <= fail) | (start[here] >= back)).all()
                k, since = k + 1, back


def digests_of_all() -> dict[str, str]:
    """Return the digest of the case of each scheduler that has all that it declares, while arrays grow."""
    return {name: digest(run_setting(planned(s, ALL).setting, OBSERVED)) for name, s in SCHEDULERS.items()}


def invariants_hold(scheduler: Scheduler, seed: int | str) -> None:
    """Run a case of a scheduler, and check its tables, its counters and what is left at its end."""
    run = planned(scheduler, seed)
    before = run.setting.workload.fingerprint()
    partition = run_watched(run)
    outcome = partition.outcome()
    result = check(scheduler, run, outcome)
    nothing_is_left(partition)
    if scheduler.constrained and not run.setting.resources and run.setting.workload.job_constraints.num_rows:
        jobs_start_at_the_first_level_at_which_they_fit(run, result, relaxes=scheduler.name == "phoenix")
    assert run.setting.workload.fingerprint() == before
    if scheduler.family == "jobs":
        no_task_runs_on_a_node_that_is_down(run.setting, outcome)
    if not scheduler.uses_deadlines and run.setting.updates is None:
        counts = partition.world.counts
        arrived, began, ended = (
            counts[which : which + 2].tolist() for which in (N_ARRIVED, N_STARTED, N_FINISHED)
        )
        assert arrived == began == ended
        assert scheduler.family == "coflows" or sum(arrived) == run.setting.num_tasks
