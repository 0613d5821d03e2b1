"""Tasks that restart or move, and coflows that leave: what their schedulers make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from coflow_emulations import TASKS, coflows, instants, rates_now, setting_of, updated
from emulations import OBSERVED, run_setting

from actors.hosting.outcome import Outcome
from actors.hosting.partition import Partition
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Setting
from workloads.coflow_updates import DEREGISTER, MOVE, RECEIVER, RESTART, SENDER, make_updates
from workloads.coflow_updates import Row as Update
from workloads.errors import InputError

NS = 1_000_000_000


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
        (  # The task stops at once; the coordinator learns of it after 0.5 s, and its answer takes as long.
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
        (  # That flow ends before its agent learns of more bytes.
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
    counters = {
        name: outcome.counters.get(name) for name in ("deregistered", "updates_without_effect", "bytes_lost")
    }
    assert counters == {"deregistered": 1, "updates_without_effect": 1, "bytes_lost": None}


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
    assert outcome.series.learned_ns.tolist() == [learned * NS]
    assert outcome.series.learned_bytes.tolist() == [2.0]  # what was lost does not count
    assert outcome.series.estimated_bytes.tolist() == [6.0]


def test_what_a_pilot_has_taught_is_withdrawn_when_it_is_one_again() -> None:
    # Pilots are 0>1 and 2>3; the first ends at 2 and restarts at 3, the other ends at 6.
    workload = coflows((0.0, [(0, 1, 2.0), (2, 3, 6.0), (0, 3, 1.0)]), ports=4)
    rows = [Update(3.0, 0, RESTART, RECEIVER, 1)]
    spans, outcome = spans_of(updated("philae", workload, rows, **ONE_PILOT | {"pilot_number": 2}))
    assert spans == {"0 0>1": [(0.0, 2.0), (3.0, 5.0)], "0 2>3": [(0.0, 6.0)], "0 0>3": [(6.0, 7.0)]}
    assert outcome.series is not None
    assert outcome.series.estimated_bytes.tolist() == [12.0]
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


def test_schedulers_without_updates_refuse_them() -> None:
    rows = [Update(1.0, 0, RESTART, SENDER, 0)]
    for scheduler in scheduler_names("coflows"):
        setting = replace(setting_of(scheduler, TWO), updates=make_updates(rows, TWO))
        if find_scheduler(scheduler).updatable == "always":
            assert run_setting(setting).counters["coflow_updates"] == 1
            continue
        with pytest.raises(InputError, match=rf"^{scheduler} .*takes? updates of coflows"):
            Partition(setting, OBSERVED)


def test_more_bytes_than_the_counter_holds_are_refused() -> None:
    work = coflows((0, [(0, 1, 1e18)]), ports=2)
    restarts = [Update(1.0 + i, 0, RESTART, SENDER, 0) for i in range(5)]
    assert len(make_updates(restarts[:4], work).coflow) == 4
    with pytest.raises(InputError, match=r"field size_bytes: 5e\+18 bytes may have to be sent again"):
        make_updates(restarts, work)
