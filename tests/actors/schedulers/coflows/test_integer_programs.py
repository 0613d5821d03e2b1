"""Integer programs of coflows with deadlines: beside brute force, each other, and the means of another program."""

from __future__ import annotations

from itertools import chain, combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from coflow_emulations import setting_of
from emulations import OBSERVED, run_setting

from actors.kernel.cost import COST
from actors.schedulers.coflows import integer_programs
from actors.schedulers.coflows.integer_programs import (
    Demand,
    Solved,
    _bandwidth,
    _cut,
    most_in_order,
    most_in_time,
)
from actors.setting import Costs
from tests.actors.coflow_emulations import coflows, due, star
from tests.oracles.deadline_rules import Instance, read_instances
from workloads.errors import InputError
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.readers.coflowlib import read_coflowlib

NEVER = -1.0
COFLOWLIB = Path(__file__).parents[5] / "shared" / "traces" / "coflowlib"


def drawn(seed: int, count: int = 6, machines: int = 3) -> Demand:
    """Coflows of one to four flows with whole weights, more than can be in time."""
    rng = np.random.default_rng(seed)
    coflow = np.repeat(np.arange(count), rng.integers(1, 5, count))
    ports = rng.integers(0, machines, (coflow.size, 2)) + np.array([0, machines])
    demand = Demand(
        coflow, ports, rng.uniform(0.2, 2.0, coflow.size), np.ones(count), rng.integers(1, 4, count).astype(float),
        rng.uniform(0.5, 2.0, 2 * machines),
    )  # fmt: skip
    return demand._replace(time_left_s=demand.times_s().max(axis=0) * rng.uniform(1.0, 2.5, count))


def order_of(demand: Demand, limit_s: float = 60.0) -> Solved:
    return most_in_order(demand.times_s(), demand.time_left_s, demand.weight, limit_s)


def best_order(demand: Demand) -> float:
    """The most weight in time over all orders: in each a coflow that would be late at a port is left out."""
    times, best = demand.times_s(), 0.0
    for order in permutations(range(len(demand.weight))):
        load, value = np.zeros(len(times)), 0.0
        for k in order:
            if ((load + times[:, k])[times[:, k] > 0] <= demand.time_left_s[k] + 1e-9).all():
                load, value = load + times[:, k], value + demand.weight[k]
        best = max(best, value)
    return best


def can_be_sent(demand: Demand, chosen: tuple[int, ...]) -> bool:
    """Whether all of these coflows can be in time: a linear program of rates, written out flow by flow."""
    flows = [f for f in range(len(demand.coflow)) if demand.coflow[f] in chosen]
    ends = sorted({float(demand.time_left_s[k]) for k in chosen})
    lengths = np.diff([0.0, *ends])
    variables = [
        (f, t) for f in flows for t, end in enumerate(ends) if end <= demand.time_left_s[demand.coflow[f]]
    ]
    whole = [[float(g == f) for g, _ in variables] for f in flows]
    room, most = [], []
    for port in range(len(demand.bytes_per_s)):
        for t, length in enumerate(lengths):
            room.append([float(port in demand.ports[g] and s == t) for g, s in variables])
            most.append(demand.bytes_per_s[port] * length + 1e-9)
    size = demand.size_bytes[flows]
    return not chosen or scipy.optimize.linprog(np.zeros(len(variables)), room, most, whole, size).status == 0


@pytest.mark.parametrize("seed", range(8))
def test_no_order_has_more_in_time(seed: int) -> None:
    demand = drawn(seed)
    solved = order_of(demand)
    assert solved.is_optimal
    assert solved.value == pytest.approx(best_order(demand))
    assert solved.bound == pytest.approx(solved.value)


@pytest.mark.parametrize("seed", range(8))
def test_no_division_of_bandwidth_has_more_in_time(seed: int) -> None:
    demand = drawn(seed)
    count = len(demand.weight)
    sets = chain.from_iterable(combinations(range(count), n) for n in range(count + 1))
    best = max(demand.weight[list(chosen)].sum() for chosen in sets if can_be_sent(demand, chosen))
    solved, relaxed = most_in_time(demand), most_in_time(demand, relaxed=True)
    assert solved.value == pytest.approx(best)
    assert solved.value <= order_of(demand).value + 1e-9
    assert relaxed.value <= solved.value + 1e-9 <= relaxed.bound + 2e-9
    check_bandwidth(demand, solved)
    check_bandwidth(demand, relaxed)


def check_bandwidth(demand: Demand, solved: Solved) -> None:
    """What is admitted is sent by its deadline, and no port carries more than it can."""
    sent = solved.sent_bytes
    admitted = solved.admitted[demand.coflow]
    assert sent[admitted].sum(axis=1) == pytest.approx(demand.size_bytes[admitted], rel=1e-6)
    late = solved.end_s > demand.time_left_s[demand.coflow][:, None] + 1e-12
    assert not sent[late].any()
    length_s = np.diff(solved.end_s, prepend=0.0)
    for port, speed in enumerate(demand.bytes_per_s):
        used = sent[(demand.ports == port).any(axis=1)].sum(axis=0)
        assert (used <= speed * length_s * (1 + 1e-6) + 1e-9).all()


def test_where_ports_cannot_be_served_apart_fewer_are_in_time() -> None:
    # Both ports of 0>1 have room before 2, but not at the same time: 0>0 must have the first second, 1>1 as well.
    # With the deadlines 1 and 2, what is left of port 0 in the second second is all that 0>1 can have.
    demand = Demand(
        coflow=np.array([0, 1, 2]),
        ports=np.array([[0, 2], [1, 3], [0, 3]]),
        size_bytes=np.array([1.0, 1.0, 1.5]),
        time_left_s=np.array([1.0, 2.0, 2.6]),
        weight=np.ones(3),
        bytes_per_s=np.ones(4),
    )
    assert order_of(demand).value == 3
    assert most_in_time(demand).value == 3
    late = demand._replace(time_left_s=np.array([1.0, 2.0, 2.4]))
    assert order_of(late).value == most_in_time(late).value == 2


def crossing() -> Demand:
    """Three coflows of which ports apart would have the first and the last in time, but both cannot be.

    Until 3 the last one needs port 1 all the time, and port 2 for 2 of it: so the first sends 1 of its 3 from port 2 to
    port 4 before 3, and 2 after. What it sends from port 1 to port 4 must be after 3, too, where there is no room left.
    """
    return Demand(
        coflow=np.array([0, 0, 1, 2, 2]),
        ports=np.array([[2, 4], [1, 4], [0, 3], [2, 3], [1, 5]]),
        size_bytes=np.array([3.0, 1.0, 3.0, 2.0, 3.0]),
        time_left_s=np.array([5.0, 1.0, 3.0]),
        weight=np.array([2.0, 1.0, 1.0]),
        bytes_per_s=np.ones(6),
    )


def test_a_set_that_only_ports_apart_have_in_time_breaks_a_row() -> None:
    demand = crossing()
    assert order_of(demand).admitted.tolist() == [True, False, True]
    solved = most_in_time(demand)
    assert (solved.admitted.tolist(), solved.bound, solved.is_optimal) == ([True, False, False], 2.0, True)
    check_bandwidth(demand, solved)
    row = _cut(demand, np.array([1.0, 3.0, 5.0]), np.array([True, False, True]))
    assert row[[0, 2]].sum() > 1.0
    assert (row[[0, 2]] <= 1.0).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_the_row_of_a_set_is_kept_by_all_that_can_be_sent(seed: int) -> None:
    demand = drawn(seed, count=5)
    end_s = np.unique(demand.time_left_s)
    sets = [np.array([bool(bits >> k & 1) for k in range(5)]) for bits in range(32)]
    can_be = [can_be_sent(demand, tuple(np.flatnonzero(chosen).tolist())) for chosen in sets]
    assert 1 < sum(can_be) < 32
    for chosen, possible in zip(sets, can_be, strict=True):
        found = _bandwidth(demand, end_s, chosen)
        assert (found is not None) == possible
        if not possible:
            row = _cut(demand, end_s, chosen)
            assert row[chosen].sum() > 1.0
            assert all(row[other].sum() <= 1 + 1e-6 for other, sent in zip(sets, can_be, strict=True) if sent)


def test_when_the_time_is_over_those_that_can_be_sent_together_are_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(integer_programs.time, "monotonic", iter([0.0, 1.0, *[100.0] * 9]).__next__)
    solved = most_in_time(crossing()._replace(weight=np.ones(3)))
    assert (solved.admitted.sum(), solved.bound, solved.is_optimal, solved.gap) == (1, 2.0, False, 0.5)
    check_bandwidth(crossing(), solved)


def test_a_coflow_without_a_deadline_is_admitted_behind_all_others() -> None:
    demand = drawn(3)._replace(weight=np.full(6, 1.0))
    free = demand._replace(time_left_s=np.where(np.arange(6) == 2, np.inf, demand.time_left_s))
    found = order_of(free)
    assert found.admitted[2]
    assert found.value >= order_of(demand).value


def test_a_search_that_the_time_limit_ends_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {}

    def milp(c: Any, **given: Any) -> Any:
        options.update(given["options"])
        return scipy.optimize.OptimizeResult(
            x=np.array([1.0] + [0.0] * (len(c) - 1)), fun=-1.0, mip_dual_bound=-4.0, status=1, message="time"
        )

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    solved = order_of(drawn(0)._replace(weight=np.ones(6)), 0.25)
    assert options["time_limit"] == 0.25
    assert (solved.is_optimal, solved.value, solved.bound, solved.gap) == (False, 1.0, 4.0, 0.75)

    def nothing(c: Any, **given: Any) -> Any:
        return scipy.optimize.OptimizeResult(x=None, status=1, message="Time limit reached.")

    monkeypatch.setattr(scipy.optimize, "milp", nothing)
    with pytest.raises(InputError, match=r"no solution within 0.25 s .* a longer time_limit_s"):
        order_of(drawn(0), 0.25)


# The schedulers


@pytest.mark.parametrize("scheduler", ["order-ilp", "cds-lp"])
def test_all_but_one_of_the_paper_s_figure_are_in_time(scheduler: str) -> None:
    outcome = run_setting(setting_of(scheduler, star(4)), OBSERVED)
    assert (outcome.finish_ns >= 0).tolist() == [False, True, True, True, True]
    assert outcome.series.admitted.tolist() == [False, True, True, True, True]
    assert outcome.series.solved.tolist() == [1.0, 0.0, 0.0]


def test_the_relaxed_program_admits_what_it_sends_whole() -> None:
    # Of three coflows that each take a port for 1 and are due at 2, two and a bit can be sent: 2 - 1e-6, as a millionth
    # of the port stays free. Which are sent in part is the solver's choice; never more than two are whole.
    work = due(coflows(*((0.0, [(0, egress, 1.0)]) for egress in (1, 2, 3)), ports=4), 2.1, 2.1, 2.1)
    admitted = run_setting(setting_of("cds-lpa", work), OBSERVED).series.admitted
    assert admitted.sum() <= 2
    half = run_setting(setting_of("cds-lpa", work, admit_from=0.05), OBSERVED)
    assert half.series.admitted.all()
    assert (half.finish_ns >= 0).sum() < 3


@pytest.mark.parametrize("scheduler", ["order-ilp", "cds-lp"])
def test_they_decide_again_when_a_coflow_arrives(scheduler: str) -> None:
    # The first is due at 8 and takes 3; the second takes 1 of the same port, from 1 on, and is due at 3.
    # At 0 the first is admitted; at 1 both are: cds-lp has spread the first over 8 s, and has 2.625 left of it.
    work = due(coflows((0.0, [(0, 1, 3.0)]), (1.0, [(0, 2, 1.0)]), ports=3), 8.0, 3.0)
    outcome = run_setting(setting_of(scheduler, work), OBSERVED)
    assert (outcome.finish_ns > 0).all()
    assert (outcome.finish_ns <= work.arrays().deadline_ns).all()
    if scheduler == "order-ilp":
        assert outcome.finish_ns.tolist() == [4_000_000_000, 2_000_000_000]
    assert outcome.series.solved[0] == 2


def test_rates_that_begin_late_are_accounted_for() -> None:
    # The first is planned over the 4 s until its deadline; the decision takes 0.5 s, so that 0.35 is left when the
    # other one arrives. Without the account of that 0.225 would be planned, and the first be late.
    work = due(coflows((0.0, [(0, 1, 1.0)]), (3.1, [(0, 2, 1.0)]), ports=3), 4.0, 6.0)
    costs = np.array([(0, 5 * 10**8 if row == 1 else 0, 0, 0) for row in range(9)], COST)
    setting = setting_of("cds-lp", work, costs=Costs("recorded", recorded=costs))
    outcome = run_setting(setting, OBSERVED)
    assert outcome.finish_ns / 1e9 == pytest.approx([4.0, 6.0], abs=1e-5)
    assert (outcome.finish_ns <= work.arrays().deadline_ns).all()


@pytest.mark.parametrize("scheduler", ["cds-lp", "cds-lpa"])
@pytest.mark.parametrize("period_s", [0.0, 0.5, 0.03])
def test_coflows_without_deadlines_have_what_the_plan_leaves(scheduler: str, period_s: float) -> None:
    # Coflow 1 takes half of port 0 (in) until it is due, at 4. Coflow 0 came first and has the other half; coflow 2 has
    # nothing before 4, and the port then. Coflow 3 has its ports alone: its flows end when the larger one can.
    rows = [[(0, 1, 2.0)], [(0, 2, 2.0)], [(0, 3, 1.0)], [(4, 4, 2.0), (4, 5, 1.0)]]
    work = due(coflows(*((0.0, flows) for flows in rows), ports=6), None, 4.0, None, None)
    outcome = run_setting(setting_of(scheduler, work, update_period_s=period_s), OBSERVED)
    assert outcome.finish_ns / 1e9 == pytest.approx([4.0, 4.0, 5.0, 3.0], abs=2e-5)
    assert outcome.finish_ns[1] <= 4e9
    assert outcome.series.admitted.all()


def test_a_reserve_leaves_time_for_costs_that_are_not_known() -> None:
    # It takes 1 and is due at 4; the program takes 0.5, which was not known. Planned up to 4 it has something left
    # then, and is dropped; with a reserve of 1 it is planned up to 3, and ends at 3.5. Of a reserve of 9 half of 4 is
    # used: at 2 a quarter is left, and planned for half of the other 2.
    work = due(coflows((0.0, [(0, 1, 1.0)]), ports=2), 4.0)
    costs = np.array([(0, 5 * 10**8 if row == 1 else 0, 0, 0) for row in range(9)], COST)
    for reserve_s, end_s in ((0.0, NEVER), (1.0, 3.5), (9.0, 3.0)):
        setting = setting_of("cds-lp", work, reserve_s=reserve_s, costs=Costs("recorded", recorded=costs))
        ended_s = run_setting(setting, OBSERVED).finish_ns[0] / 1e9
        assert (ended_s if ended_s > 0 else NEVER) == pytest.approx(end_s, abs=1e-5)
    # Without that much time it is not admitted.
    tight = due(coflows((0.0, [(0, 1, 1.0)]), ports=2), 1.5)
    assert run_setting(setting_of("cds-lp", tight, reserve_s=0.4), OBSERVED).series.admitted.all()
    assert not run_setting(setting_of("cds-lp", tight, reserve_s=0.6), OBSERVED).series.admitted.any()


@pytest.mark.parametrize("seed", range(3))
def test_they_admit_no_less_than_any_heuristic(seed: int) -> None:
    work = deadline_coflows(coflows=25, ports=5, seed=seed, heavy_share=0.4, heavy_weight=3.0)
    weight, deadline = work.arrays().weight, work.arrays().deadline_ns

    def run(name: str) -> tuple[float, float]:
        """The weight that is admitted, and that is in time."""
        outcome = run_setting(setting_of(name, work, speed=1.25e8), OBSERVED)
        in_time = (outcome.finish_ns >= 0) & (outcome.finish_ns <= deadline)
        return float(weight[outcome.series.admitted].sum()), float(weight[in_time].sum())

    bound, best = run("order-ilp")[0], run("cds-lp")
    assert best[0] == best[1] <= bound  # all that it admits is in time in the fabric, too
    assert best[1] >= max(
        run(name)[1] for name in ("dcoflow", "wdcoflow", "cs-mha", "edf", "order-ilp", "cds-lpa")
    )


# Published instances


@pytest.mark.reference
@pytest.mark.skipif(not COFLOWLIB.exists(), reason="no CoflowLib instances beside the repository")
@pytest.mark.parametrize(
    ("archive", "best", "relaxed"),
    [("off_synthetic_m10_c10", 0.614, 0.502), ("off_facebook_m10_c10", 0.800, 0.785)],
)
def test_means_are_those_of_another_program(archive: str, best: float, relaxed: float) -> None:
    path = COFLOWLIB / f"{archive}.zip"
    demands = [demand_of(instance) for instance in read_instances(path)]
    solved = [most_in_time(demand) for demand in demands]
    assert all(one.is_optimal for one in solved)
    assert np.mean([one.admitted.mean() for one in solved]) == pytest.approx(best, abs=0.005)
    # The authors of that program, too, count coflows of which 1 % is not sent.
    shares = [(most_in_time(demand, relaxed=True).share >= 0.99).mean() for demand in demands]
    assert np.mean(shares) == pytest.approx(relaxed, abs=0.005)
    for k in range(0, 100, 20):
        outcome = run_setting(setting_of("order-ilp", read_coflowlib(path, instance=k + 1)), OBSERVED)
        assert outcome.series.admitted.sum() == order_of(demands[k]).value


def demand_of(instance: Instance) -> Demand:
    return Demand(
        instance.coflow,
        instance.ports,
        instance.volume,
        instance.deadline,
        np.ones(len(instance.weight)),
        instance.capacity,
    )
