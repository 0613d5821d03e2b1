"""Coflows that end while what would drop them is on its way: two examples by hand."""

from __future__ import annotations

import pytest
from coflow_emulations import coflows, setting_of
from emulations import OBSERVED, run_setting

from actors.setting import Costs
from tests.actors.coflow_emulations import due


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
