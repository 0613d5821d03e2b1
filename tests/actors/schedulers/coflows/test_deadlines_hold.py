"""What holds for schedulers of coflows with deadlines, whatever messages and decisions take: on random settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coflow_emulations import COSTS, NAMES, Row, coflows, instants, rates_now, setting_of
from emulations import OBSERVED, run_setting
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actors.hosting.partition import Partition
from actors.kernel.compiled import config
from actors.schedulers.registry import find_scheduler
from actors.setting import Costs
from tests.actors.coflow_emulations import due
from workloads.coflows import CoflowWorkload

EXAMPLES = 5 if config.DISABLE_JIT else 24
SOLVED = (
    "cds-lp",
    "cds-lpa",
    "order-ilp",
)  # by programs, which take their time: few examples, as they are found
PHASES = [p for p in Phase if p is not Phase.explain]
DEAR = Costs("fixed", per_update_s=0.01, per_flow_s=0.03, per_coflow_s=0.02, per_schedule_s=0.01)
PORTS = 4
NAMES_WITH_DEADLINES = [name for name in NAMES if find_scheduler(name).uses_deadlines]
PORT_S = st.sampled_from([0.5, 1.0, 2.0, 0.3333, 1.7])
PAIRS = st.tuples(st.integers(0, PORTS - 1), st.integers(0, PORTS - 1))
FLOWS = st.dictionaries(PAIRS, PORT_S, min_size=1, max_size=6)
MANY_EVENTS = 20_000


Case = tuple[
    list[Row], list[float | None], dict[str, Any]
]  # coflows, deadlines, and the arguments of `setting_of`


@st.composite
def cases_of(draw: st.DrawFn, scheduler: str) -> Case:
    """Coflows of some seconds, most with deadlines of which some are tight to the nanosecond; delays and costs."""
    rows: list[Row] = []
    deadlines: list[float | None] = []
    at = 0.0
    for flows in draw(st.lists(FLOWS, min_size=1, max_size=6)):
        at += draw(st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.1]))
        rows.append((at, [(i, j, size) for (i, j), size in flows.items()]))
        slack = draw(st.sampled_from([None, 0.0, 1e-9, 0.1, 0.5, 1.0, 3.0, 8.0]))
        sums = np.zeros(2 * PORTS)
        for (i, j), size in flows.items():
            sums[[i, PORTS + j]] += size
        deadlines.append(None if slack is None else at + float(sums.max()) + slack)
    found = find_scheduler(scheduler)
    given: dict[str, Any] = {}
    names = {parameter.name for parameter in found.parameters}
    if "update_period_s" in names:
        given["update_period_s"] = draw(st.sampled_from([0.0, 0.0, 0.05, 0.5]))
    if "decide_at" in names:
        given["decide_at"] = draw(st.sampled_from(["arrivals", "ends"]))
    for parameter in found.parameters:
        if parameter.kind == "choice" and parameter.name != "decide_at":
            given[parameter.name] = draw(st.sampled_from(parameter.choices))
        if parameter.name == "serve_rejected":
            given[parameter.name] = draw(st.booleans())
    given["delay_s"] = draw(st.sampled_from([0.0, 0.05, 0.013]))
    given["costs"] = draw(st.sampled_from([None, COSTS, Costs("fixed", per_flow_s=1e-5), DEAR]))
    return rows, deadlines, given


@pytest.mark.parametrize("scheduler", NAMES_WITH_DEADLINES)
def test_coflows_end_with_their_flows_and_no_port_carries_too_much(scheduler: str) -> None:
    # Settings are drawn inside, so that every scheduler has its own examples.
    few = scheduler in SOLVED

    @settings(max_examples=EXAMPLES // 5 if few else EXAMPLES, phases=PHASES[:-1] if few else PHASES)
    @given(cases_of(scheduler))
    def hold(case: Case) -> None:
        rows, deadlines, asked = case
        work = due(coflows(*rows, ports=PORTS), *deadlines)
        partition = Partition(setting_of(scheduler, work, **asked), OBSERVED)
        partition.start()
        run_within_ports(partition)
        coflows_end_with_their_flows(partition, work)

    hold()


@pytest.mark.parametrize(
    ("scheduler", "size"),
    [("dcoflow", 1.9), ("cs-mha", 1.9), ("order-ilp", 1.9), ("cds-lp", 1.0), ("cds-lpa", 1.0)],
)
def test_what_has_ended_when_the_schedule_takes_effect_is_not_dropped(scheduler: str, size: float) -> None:
    # Its rate takes effect at 0.1, two delays after its arrival, and ends it at the deadline, or just before. A
    # decision made at 1.95 takes effect then: nothing is left, of the flow and of its time.
    work = due(coflows((0.0, [(0, 2, size)]), ports=4), 2.0)
    setting = setting_of(scheduler, work, delay_s=0.05, update_period_s=0.05)
    outcome = run_setting(setting, OBSERVED)
    assert outcome.finish_ns[0] / 1e9 == pytest.approx(2.0, abs=1e-6)
    assert outcome.finish_ns[0] <= 2 * 10**9
    assert outcome.series.admitted.all()


def test_a_coflow_that_was_dropped_has_ended_if_its_flows_have() -> None:
    # Coflow 0 takes 1 and starts at 0.2, when its rate has been paid for. When coflow 1 arrives it has 0.15 left, is
    # late and is dropped; its agent would learn that when the rate of coflow 1 has been paid for.
    work = due(coflows((0.0, [(0, 0, 1.0)]), (1.05, [(1, 1, 1.0)]), ports=2), 1.0, 9.0)
    costs = Costs("fixed", per_flow_s=0.1, per_schedule_s=0.1)
    setting = setting_of("edf", work, costs=costs)
    outcome = run_setting(setting, OBSERVED)
    assert outcome.counters["dropped"] == 1
    assert outcome.finish_ns[0] / 1e9 == pytest.approx(1.2)


def run_within_ports(partition: Partition) -> None:
    """Run to the end; no port carries more than its speed between any two events, and they are few."""
    fabric = partition.world.fabric
    flows, speed = fabric.flows, fabric.speed
    for t in instants(partition):
        rates = rates_now(partition)
        load = np.bincount(flows.source, rates, speed.size) + np.bincount(flows.sink, rates, speed.size)
        assert (load <= speed * (1 + 1e-9)).all(), (
            f"{(load - speed).max()} more than a port's speed at {t} ns"
        )
        assert int(partition.world.queue.now.events[0]) < MANY_EVENTS, "it does not end"
    assert not rates.any()


def coflows_end_with_their_flows(partition: Partition, work: CoflowWorkload) -> None:
    """A coflow has ended if all its flows have, when the last of them has; whether it was dropped or not."""
    outcome = partition.outcome()
    assert outcome.tasks is not None
    finish, first = outcome.tasks["finish_ns"], work.arrays().first_flow
    for coflow, ended in enumerate(outcome.finish_ns.tolist()):
        own = finish[first[coflow] : first[coflow + 1]]
        assert ended == (own.max() if (own >= 0).all() else -1), f"coflow {coflow}: {own}"
