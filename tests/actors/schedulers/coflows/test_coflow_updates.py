"""Tasks that restart or move, and coflows that leave: what their schedulers make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checkpointing import digest_with_restores
from coflow_emulations import (
    COSTS,
    TASKS,
    Row,
    coflows,
    instants,
    mixed_workload,
    rates_now,
    setting_of,
    variants_of,
)
from emulations import OBSERVED, digest, run_setting
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actors.fabric.world import N_ARRIVED, N_FINISHED, N_LOST, N_STARTED
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.hosting.windows import emulate_here
from actors.kernel.compiled import config
from actors.kernel.queue import NONE
from actors.kernel.world import NEVER
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Setting
from workloads.coflow_updates import DEREGISTER, MOVE, NO_SIDE, RECEIVER, RESTART, SENDER, make_updates
from workloads.coflow_updates import Row as Update
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError

NS = 1_000_000_000
MIB = 1 << 20
PORT = MIB / 0.008  # bytes per second: a MiB in an interval
WHERE = (0, 1, 70, 140)  # ports, so that lines are of several words
EXAMPLES = 15 if config.DISABLE_JIT else 40
PHASES = [p for p in Phase if p is not Phase.explain]
NAMES = [name for name in scheduler_names("coflows") if find_scheduler(name).updatable]


def updated(scheduler: str, workload: CoflowWorkload, updates: Sequence[Update], **asked: Any) -> Setting:
    if find_scheduler(scheduler).updatable == "rates=greedy":
        asked["rates"] = "greedy"
    return replace(
        setting_of(scheduler, workload, **asked),
        updates=make_updates(updates, workload) if updates else None,
    )


def spans_of(setting: Setting) -> tuple[dict[str, list[tuple[float, float]]], Outcome]:
    """From when to when each flow was sent, and the outcome; a port sends a byte in a second."""
    partition = Partition(setting, TASKS)
    partition.start()
    fabric = partition.world.fabric
    names = [f"{c} {i}>{j - fabric.side}" for c, i, j, *_ in zip(*fabric.flows[:3], strict=True)]
    found: dict[str, list[tuple[float, float]]] = {}
    since: dict[int, float] = {}
    for t in instants(partition):
        running = set(np.flatnonzero(rates_now(partition)).tolist())
        for flow in since.keys() - running:
            found.setdefault(names[flow], []).append((since.pop(flow), t / NS))
        since |= dict.fromkeys(running - since.keys(), t / NS)
    return found, partition.outcome()


def ends_of(outcome: Outcome) -> list[float | None]:
    """When coflows ended, s."""
    return [None if ns < 0 else ns / NS for ns in outcome.finish_ns.tolist()]


# A port sends a byte in a second, so that without updates 0>1 is sent from 0 to 4 and 2>1 from 4 to 7.
TWO = coflows((0.0, [(0, 1, 4.0), (2, 1, 3.0)]), ports=4)


@pytest.mark.parametrize(
    ("update", "delay_s", "spans", "lost"),
    [
        (  # All that the receiver had is lost, also what had ended.
            Update(5.0, 0, RESTART, RECEIVER, 1),
            0.0,
            {"0 0>1": [(0.0, 4.0), (5.0, 9.0)], "0 2>1": [(4.0, 5.0), (9.0, 12.0)]},
            5,
        ),
        (  # The task stops at once; the coordinator hears of it after 0.5 s, and its answer takes as long.
            Update(7.0, 0, RESTART, RECEIVER, 1),
            0.5,
            {"0 0>1": [(1.0, 5.0), (8.0, 12.0)], "0 2>1": [(6.0, 7.0), (13.0, 16.0)]},
            5,
        ),
        (
            Update(5.0, 0, RESTART, SENDER, 2),
            0.0,
            {"0 0>1": [(0.0, 4.0)], "0 2>1": [(4.0, 5.0), (5.0, 8.0)]},
            1,
        ),
        (  # What has ended its receiver keeps.
            Update(5.0, 0, RESTART, SENDER, 0),
            0.0,
            {"0 0>1": [(0.0, 4.0)], "0 2>1": [(4.0, 7.0)]},
            0,
        ),
        (
            Update(5.0, 0, MOVE, RECEIVER, 1, 3),
            0.0,
            {"0 0>1": [(0.0, 4.0)], "0 2>1": [(4.0, 5.0)], "0 0>3": [(5.0, 9.0)], "0 2>3": [(9.0, 12.0)]},
            5,
        ),
        (  # It goes to where a flow has ended, and makes that one live again.
            Update(5.0, 0, MOVE, SENDER, 2, 0),
            0.0,
            {"0 0>1": [(0.0, 4.0), (5.0, 8.0)], "0 2>1": [(4.0, 5.0)]},
            1,
        ),
        (  # It goes to where a flow is being sent, which goes on for longer.
            Update(3.5, 0, MOVE, SENDER, 2, 0),
            0.5,
            {"0 0>1": [(1.0, 8.0)]},
            0,
        ),
        (  # That flow ends before its agent is told of more.
            Update(4.5, 0, MOVE, SENDER, 2, 0),
            0.5,
            {"0 0>1": [(1.0, 5.0), (5.5, 8.5)]},
            0,
        ),
    ],
)
def test_restarts_and_moves_by_hand(update: Update, delay_s: float, spans: dict[str, Any], lost: int) -> None:
    found, outcome = spans_of(updated("fifo", TWO, [update], delay_s=delay_s))
    joined = {
        name: [span for i, span in enumerate(own) if i == 0 or own[i - 1][1] != span[0]]
        for name, own in spans.items()
    }
    if update.side == SENDER and update.kind == RESTART and lost:  # it stops and starts at one instant
        joined["0 2>1"] = [(4.0, 8.0)]
    assert found == joined
    assert ends_of(outcome) == [max(end for own in spans.values() for _, end in own)]
    assert outcome.counters.get("bytes_lost", 0) == lost
    assert outcome.counters["coflow_updates"] == 1
    assert outcome.tasks is not None
    assert outcome.tasks["finish_ns"].max() == outcome.finish_ns[0]


@pytest.mark.parametrize(("delay_s", "end"), [(0.0, 4.0), (0.5, 6.0)])
def test_a_coflow_that_is_deregistered_makes_room(delay_s: float, end: float) -> None:
    workload = coflows((0.0, [(0, 1, 4.0)]), (0.0, [(0, 2, 3.0)]), ports=3)
    at = 1.0 + 2 * delay_s
    rows = [Update(at, 0, DEREGISTER), Update(50.0, 1, DEREGISTER)]
    spans, outcome = spans_of(updated("fifo", workload, rows, delay_s=delay_s))
    assert spans == {"0 0>1": [(2 * delay_s, at)], "1 0>2": [(end - 3.0, end)]}
    assert ends_of(outcome) == [None, end]
    assert outcome.tasks is not None
    assert outcome.tasks["finish_ns"].tolist() == [-1, end * NS]
    told = {
        name: outcome.counters.get(name) for name in ("deregistered", "updates_without_effect", "bytes_lost")
    }
    assert told == {"deregistered": 1, "updates_without_effect": 1, "bytes_lost": None}


def test_a_rate_that_was_on_its_way_does_not_start_what_has_restarted() -> None:
    workload = coflows((0.0, [(0, 1, 2.0)]), ports=2)
    rows = [Update(0.75, 0, RESTART, SENDER, 0)]
    spans, outcome = spans_of(updated("fifo", workload, rows, delay_s=0.5))
    assert spans == {"0 0>1": [(1.75, 3.75)]}
    assert outcome.counters["stale_rates"] == 1


# One pilot, 0>1, is sent from 0 to 2; then the size is known, and the others are sent.
STAR = coflows((0.0, [(0, 1, 2.0), (0, 2, 2.0), (0, 3, 2.0)]), ports=5)
ONE_PILOT = {"thin_limit": 0, "pilots": "number", "pilot_number": 1, "starvation": "strict"}


@pytest.mark.parametrize(
    ("update", "spans", "learned"),
    [
        (Update(1.0, 0, RESTART, RECEIVER, 1), {"0 0>1": [(0.0, 3.0)], "0 2": (3.0, 5.0)}, 3.0),
        (Update(1.0, 0, MOVE, RECEIVER, 1, 4), {"0 0>4": [(1.0, 3.0)], "0 2": (3.0, 5.0)}, 3.0),
        (Update(3.0, 0, RESTART, RECEIVER, 1), {"0 0>1": [(0.0, 2.0), (4.0, 6.0)], "0 2": (2.0, 4.0)}, 2.0),
    ],
)
def test_a_pilot_that_restarts_before_the_size_is_known_is_a_pilot_again(
    update: Update, spans: dict[str, Any], learned: float
) -> None:
    found, outcome = spans_of(updated("philae", STAR, [update], **ONE_PILOT))
    name = next(iter(spans))
    assert found[name] == spans[name]
    assert found["0 0>2"] == [spans["0 2"]]
    assert ends_of(outcome) == [8.0 if learned == 2.0 else 7.0]
    assert outcome.series is not None
    assert outcome.series["learned_ns"].tolist() == [learned * NS]
    assert outcome.series["learned_bytes"].tolist() == [2.0]  # what was lost does not count
    assert outcome.series["estimated_bytes"].tolist() == [6.0]


def test_what_a_pilot_has_taught_is_withdrawn_when_it_is_one_again() -> None:
    # Pilots are 0>1 and 2>3; the first ends at 2 and restarts at 3, the other ends at 6.
    workload = coflows((0.0, [(0, 1, 2.0), (2, 3, 6.0), (0, 3, 1.0)]), ports=4)
    rows = [Update(3.0, 0, RESTART, RECEIVER, 1)]
    spans, outcome = spans_of(updated("philae", workload, rows, **ONE_PILOT | {"pilot_number": 2}))
    assert spans == {"0 0>1": [(0.0, 2.0), (3.0, 5.0)], "0 2>3": [(0.0, 6.0)], "0 0>3": [(6.0, 7.0)]}
    assert outcome.series is not None
    assert outcome.series["estimated_bytes"].tolist() == [12.0]
    assert outcome.counters["bytes_lost"] == 2


def test_the_key_of_a_coflow_is_that_of_what_it_is_now() -> None:
    # Two senders move to one, so that the first coflow is narrower, longer, and as heavy as before.
    pair = [(0.0, [(0, 2, 2.0), (1, 2, 2.0), (0, 3, 2.0), (1, 3, 2.0)]), (0.0, [(4, 0, 3.0), (4, 1, 3.0)])]
    workload = coflows(*pair, ports=5)
    keys = {}
    for scheduler in ("fifo", "scf", "ncf", "lcf"):
        partition = Partition(updated(scheduler, workload, [Update(0.5, 0, MOVE, SENDER, 1, 0)]), TASKS)
        partition.start()
        steps = instants(partition)
        next(steps)
        before = partition.state.key.tolist()
        next(steps)
        keys[scheduler] = (before, partition.state.key.tolist())
    assert keys == {
        "fifo": ([0.0, 1.0], [0.0, 1.0]),
        "scf": ([2.0, 3.0], [4.0, 3.0]),
        "ncf": ([2.0, 1.0], [1.0, 1.0]),
        "lcf": ([8.0, 6.0], [8.0, 6.0]),
    }


Case = tuple[list[Row], list[tuple[Any, ...]], dict[str, Any]]  # coflows, updates, settings
SIZES = st.one_of(st.integers(1, 8).map(lambda n: n * MIB // 4), st.sampled_from([1, 1000, 3 * MIB + 1]))
FLOWS = st.dictionaries(
    st.tuples(st.sampled_from(WHERE), st.sampled_from(WHERE)), SIZES, min_size=1, max_size=12
)


@st.composite
def cases(draw: st.DrawFn, exact: bool) -> Case:
    """A small case, with updates as `admitted` takes them; `exact`: without delays and costs."""
    rows: list[Row] = []
    at = 0.0
    for flows in draw(st.lists(FLOWS, min_size=1, max_size=4)):
        at += draw(st.sampled_from([0.0, 0.001, 0.008, 0.0123456]))
        rows.append((at, [(i, j, float(size)) for (i, j), size in flows.items()]))
    port = st.sampled_from(WHERE)
    update = st.tuples(
        st.integers(0, len(rows) - 1),
        st.sampled_from([0.0, 0.004, 0.008, 0.016, 0.0213, 0.05, 0.1]),
        st.sampled_from([RESTART, MOVE, MOVE, DEREGISTER]),
        st.sampled_from([SENDER, RECEIVER]),
        port,
        port,
    )
    asked = {
        "delay_s": 0.0 if exact else draw(st.sampled_from([0.0005, 0.003, 0.02])),
        "costs": None if exact else draw(st.sampled_from([None, COSTS])),
        "local_is_free": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
    }
    return rows, draw(st.lists(update, max_size=8)), asked


def admitted(workload: CoflowWorkload, wanted: Sequence[tuple[Any, ...]]) -> list[Update]:
    """Those of (coflow, seconds after its arrival, kind, side, port, to) that are of tasks that are there."""
    arrival_s, updates = workload.arrays().arrival_ns / NS, []
    for coflow, after_s, kind, side, port, to in wanted:
        ports = (NO_SIDE, -1, -1) if kind == DEREGISTER else (side, port, to if kind == MOVE else -1)
        update = Update(float(arrival_s[coflow]) + after_s, coflow, kind, *ports)
        try:
            make_updates([*updates, update], workload)
        except InputError:
            continue
        updates.append(update)
    return updates


def setting_for(scheduler: str, variant: dict[str, Any], case: Case) -> Setting:
    rows, wanted, asked = case
    workload = coflows(*rows, ports=WHERE[-1] + 1)
    return updated(scheduler, workload, admitted(workload, wanted), speed=PORT, **variant, **asked)


@pytest.mark.parametrize("scheduler", ["fifo", "sincronia", "aalo", "philae"])
def test_all_is_sent_again_that_was_lost(scheduler: str) -> None:
    variants = [v for v in variants_of(scheduler) if v.get("rates") != "madd"]

    @settings(max_examples=EXAMPLES, phases=PHASES)
    @given(st.data())
    def hold(data: st.DataObject) -> None:
        exact = data.draw(st.booleans())
        setting = setting_for(scheduler, data.draw(st.sampled_from(variants)), data.draw(cases(exact)))
        partition = Partition(setting, OBSERVED)
        partition.start()
        sent = sent_at_rates_that_ports_have(partition, exact)
        nothing_is_left(partition)
        bytes_add_up(setting, partition, sent)

    hold()


def sent_at_rates_that_ports_have(partition: Partition, exact: bool) -> np.ndarray:
    """[F] bytes sent; where nothing takes time, agents do what the coordinator believes."""
    fabric, matching = partition.world.fabric, partition.state.matching
    flows = fabric.flows
    sent, rates, since = np.zeros(flows.size.size), np.zeros(flows.size.size), 0
    for t in instants(partition):
        sent += rates * (t - since)
        rates, since = rates_now(partition), t
        load = np.bincount(flows.source, rates, fabric.speed.size)
        load += np.bincount(flows.sink, rates, fabric.speed.size)
        assert (load <= fabric.speed * (1 + 1e-9)).all(), f"at {t} ns"
        if exact:
            assert np.array_equal(np.unique(matching.flow[matching.flow >= 0]), np.flatnonzero(rates))
            if hasattr(partition.state, "crowd"):
                knows_who_is_there(partition, t)
    assert not rates.any()
    return sent


def knows_who_is_there(partition: Partition, t: int) -> None:
    """Philae's coordinator knows which coflows have anything to send at a port, and so their queues."""
    fabric, state = partition.world.fabric, partition.state
    flows, parameters = fabric.flows, partition.setting.parameters
    there = (flows.finish == NEVER) & (flows.line[:, 0] != NONE) & (fabric.coflows.arrival[flows.coflow] <= t)
    at = {
        (c, port)
        for side in (flows.source, flows.sink)
        for c, port in zip(flows.coflow[there], side[there], strict=True)
    }
    crowd = np.bincount([port for _, port in at], minlength=fabric.speed.size)
    assert np.array_equal(state.crowd, crowd)
    for c in np.flatnonzero(state.queues.queue >= 0) if parameters["policy"] == "D" else ():
        around = sum(crowd[port] - state.own for coflow, port in at if coflow == c)
        assert state.around[c] == around
        if not parameters["size_correction"]:
            assert state.queues.queue[c] == np.searchsorted(state.queues.limit, state.length[c] * around)


def nothing_is_left(partition: Partition) -> None:
    world, state = partition.world, partition.state
    counts, crossing = world.counts, world.fabric.flows.line[:, 0] != NONE
    assert not world.sending.left[crossing].any()
    assert not world.fabric.coflows.left.any()
    assert not world.fabric.lines.left.any()
    assert counts[N_ARRIVED] == counts[N_STARTED] == counts[N_FINISHED]
    assert (state.matching.flow < 0).all()
    assert state.matching.running[0] == 0
    assert state.agenda.due[0] == NEVER


def bytes_add_up(setting: Setting, partition: Partition, sent: np.ndarray) -> None:
    outcome, world = partition.outcome(), partition.world
    gone = outcome.finish_ns < 0
    assert gone.sum() == outcome.counters.get("deregistered", 0)
    if gone.any():
        return
    assert outcome.tasks is not None
    assert (outcome.tasks["finish_ns"] >= 0).all()
    if setting.switch.local_is_free:
        return
    # Ends are in whole ns, and so is whatever changes a rate.
    rounding = world.fabric.speed.max() * float(world.queue.now.events[0]) + 100
    wanted = setting.workload.arrays().size_bytes.sum() + world.counts[N_LOST]
    assert abs(sent.sum() - wanted) <= rounding


def rough(scheduler: str) -> Setting:
    """A setting in which updates of all kinds meet late schedules and costs."""
    workload, rng = mixed_workload(8, 5, seed=5), np.random.default_rng(3)
    kinds = rng.choice([RESTART, MOVE, DEREGISTER], 60, p=[0.5, 0.4, 0.1])
    columns = (
        rng.integers(8, size=60),
        rng.exponential(0.02, 60),
        kinds,
        *rng.integers(0, (2, 5, 5), (60, 3)).T,
    )
    updates = admitted(workload, list(zip(*(column.tolist() for column in columns), strict=True)))
    variant = {} if scheduler == "fifo" else variants_of(scheduler)[0]
    return updated(scheduler, workload, updates, speed=PORT, delay_s=0.002, costs=COSTS, **variant)


@pytest.mark.parametrize("scheduler", ["fifo", "aalo", "philae"])
def test_results_do_not_depend_on_partitions_or_checkpoints(scheduler: str) -> None:
    setting = rough(scheduler)
    whole = run_setting(setting, OBSERVED)
    assert whole.counters["coflow_updates"] > whole.counters.get("updates_without_effect", 0)
    assert digest(whole) != digest(run_setting(replace(setting, updates=None), OBSERVED))
    for partitions in (2, 3):
        outcome = emulate_here(setting, OBSERVED, partitions)
        assert digest(outcome) == digest(whole), partitions
        assert outcome.delayed.tolist() == [0, 0, 0]
    found, moves = digest_with_restores(setting, seed=1)
    assert found == digest(whole)
    assert moves > 0


def test_who_does_not_take_updates_says_so() -> None:
    rows = [Update(1.0, 0, RESTART, SENDER, 0)]
    for scheduler in scheduler_names("coflows"):
        setting = replace(setting_of(scheduler, TWO), updates=make_updates(rows, TWO))
        if find_scheduler(scheduler).updatable == "always":
            assert run_setting(setting).counters["coflow_updates"] == 1
            continue
        with pytest.raises(InputError, match=rf"^{scheduler} .*takes? updates of coflows"):
            Partition(setting, OBSERVED)
