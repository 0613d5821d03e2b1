"""Orders of coflows with deadlines: one machine against all subsets of its jobs, and the independent program's orders.

A port sends a byte per ns, so that bytes are ns.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.fabric.deadline_order import (
    Choices,
    DeadlineOrder,
    collect_lines,
    find_needs,
    list_by_deadline,
    make_choices,
    make_deadline_order,
    reject_fewest,
    reject_least_weight,
)
from actors.fabric.ports import Fabric, build_fabric, merge_parallel
from actors.schedulers.coflows.cs_mha import cs_mha
from actors.schedulers.coflows.dcoflow import REJECT_RULES, Rejection, dcoflow
from tests.oracles import deadline_rules
from workloads.coflows import CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.generators.deadline_coflows import deadline_coflows

SPEED = 1e9
NO_CHOICES = make_choices(np.ones(1), False)
Job = tuple[int, int, int]  # time, deadline, weight
JOBS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 16), st.integers(1, 4)), min_size=1, max_size=8)


def laid_out(workload: CoflowWorkload) -> tuple[Fabric, DeadlineOrder, np.int64]:
    """A fabric whose coflows are all to be ordered, their number, and the arrays for it."""
    arrays = workload.arrays()
    fabric = build_fabric(merge_parallel(arrays)[0], SPEED)
    s, count = make_deadline_order(fabric), np.int64(arrays.arrival_ns.size)
    s.groups[:] = np.arange(count)
    s.time_left[:] = arrays.deadline_ns
    for coflow in s.groups.copy():
        find_needs(fabric, s, coflow)
    return fabric, s, count


def one_machine(jobs: list[Job]) -> tuple[Fabric, DeadlineOrder, np.int64]:
    """Jobs at ingress port 0, each with an egress port of its own; their lines are collected."""
    time, deadline, weight = (np.array(column, float) for column in zip(*jobs, strict=True))
    count = len(jobs)
    workload = make_coflow_workload(
        "machine", np.zeros(count), np.ones(count, int), np.zeros(count, int), np.arange(count), time,
        count, deadline_s=deadline / 1e9, weight=weight,
    )  # fmt: skip
    fabric, s, number = laid_out(workload)
    list_by_deadline(fabric, s, number)
    assert collect_lines(fabric, s, np.int64(0)) == count
    return fabric, s, number


def most_in_time(jobs: list[Job], weights: list[int]) -> int:
    """The most weight of jobs that can all be in time, by all subsets."""

    def in_time(some: tuple[int, ...]) -> bool:
        order = sorted(some, key=lambda j: jobs[j][1])
        ends = np.cumsum([jobs[j][0] for j in order])
        return all(end <= jobs[j][1] for j, end in zip(order, ends, strict=True))

    subsets = (some for n in range(len(jobs) + 1) for some in combinations(range(len(jobs)), n))
    return max(sum(weights[j] for j in some) for some in subsets if in_time(some))


@given(JOBS)
@settings(max_examples=40)
def test_moore_hodgson_rejects_as_few_as_any(jobs: list[Job]) -> None:
    fabric, s, count = one_machine(jobs)
    rejected = reject_fewest(fabric, s, count)
    assert s.late.sum() == rejected == len(jobs) - most_in_time(jobs, [1] * len(jobs))


@given(JOBS)
@settings(max_examples=40)
def test_the_dynamic_program_rejects_as_little_weight_as_any(jobs: list[Job]) -> None:
    fabric, s, count = one_machine(jobs)
    choices = make_choices(fabric.coflows.weight, True)
    assert reject_least_weight(fabric, s, choices, count) == s.late.sum()
    weight = [job[2] for job in jobs]
    assert sum(weight) - fabric.coflows.weight[s.late].sum() == most_in_time(jobs, weight)


def test_one_machine_by_hand() -> None:
    # In the order of deadlines 2 and 3 take 5, but the second is due at 4: it is rejected; 2 and 2 take 4, 4 more 8.
    jobs = [(2, 2, 1), (3, 4, 5), (2, 5, 1), (4, 9, 1)]
    fabric, s, count = one_machine(jobs)
    assert reject_fewest(fabric, s, count) == 1
    assert s.late.tolist() == [False, True, False, False]
    # Its weight is 5: the dynamic program rejects the first in its place; the others end at 3, 5 and 9.
    fabric, s, count = one_machine(jobs)
    assert reject_least_weight(fabric, s, make_choices(fabric.coflows.weight, True), count) == 1
    assert s.late.tolist() == [True, False, False, False]


def test_the_dynamic_program_needs_whole_weights_and_room() -> None:
    with pytest.raises(InputError, match=r"coflow 1 has the weight 1\.5: .* needs whole weights"):
        make_choices(np.array([1.0, 1.5]), True)
    with pytest.raises(
        InputError, match=r"needs a bit for each of 1,000 coflows and .* use reject=moore-hodgson"
    ):
        make_choices(np.full(1000, 1e8), True)
    assert make_choices(np.array([1.0, 1.5]), False).weight.size == 0


def instance_of(workload: CoflowWorkload) -> deadline_rules.Instance:
    """The same coflows for the independent program."""
    arrays = workload.arrays()
    coflow = np.repeat(np.arange(arrays.arrival_ns.size), np.diff(arrays.first_flow))
    ports = workload.num_ports
    return deadline_rules.Instance(
        arrays.weight,
        arrays.deadline_ns.astype(float),
        coflow,
        arrays.size_bytes,
        np.stack([arrays.ingress, ports + arrays.egress], axis=1),
        np.ones(2 * ports),
    )


def some_coflows(seed: int) -> CoflowWorkload:
    """Coflows that all arrive at once, for ports of a byte per ns; many cannot be in time."""
    return deadline_coflows(coflows=25, ports=6, seed=seed, mean_flow_bytes=1e6, port_speed_bps=8 * SPEED)


OWN_NAMES = {"min_all": "min-all", "min_negative": "min-negative", "min_congested": "min-congested",
             "moore_hodgson": "moore-hodgson"}  # fmt: skip


def rejection(rule: str, *, weighted: bool = False, from_back: bool = False) -> Rejection:
    return Rejection(REJECT_RULES.index(rule), 0.7, weighted, from_back)


@pytest.mark.parametrize("rule", OWN_NAMES)
def test_dcoflow_s_order_is_that_of_the_independent_program(rule: str) -> None:
    for seed in range(20):
        workload = some_coflows(seed)
        fabric, s, count = laid_out(workload)
        admitted = dcoflow(fabric, s, NO_CHOICES, rejection(OWN_NAMES[rule]), count)
        assert s.groups[:admitted].tolist() == deadline_rules.dcoflow(instance_of(workload), rule)
        assert sorted(s.groups) == list(range(count))


def test_cs_mha_s_order_is_that_of_the_independent_program() -> None:
    for seed in range(20):
        workload = some_coflows(seed)
        fabric, s, count = laid_out(workload)
        admitted = cs_mha(fabric, s, count)
        assert s.groups.tolist() == deadline_rules.cs_mha(instance_of(workload))
        assert s.late[s.groups[admitted:]].all()
        assert not s.late[s.groups[:admitted]].any()


def late_in_order(fabric: Fabric, s: DeadlineOrder, order: list[int]) -> list[int]:
    """Coflows that would be late in an order, by the load of their ports up to them."""
    lines, load, late = fabric.lines, np.zeros(fabric.speed.size), []
    for coflow in order:
        own = np.flatnonzero(lines.group == coflow)
        np.add.at(load, lines.port[own], s.need[own])
        if load[lines.port[own]].max() > s.time_left[coflow] * (1 + 1e-9):
            late.append(coflow)
    return late


@pytest.mark.parametrize("from_back", [False, True])
@pytest.mark.parametrize("rule", REJECT_RULES)
def test_what_is_admitted_is_in_time_by_the_estimate(rule: str, from_back: bool) -> None:
    """As are all that were not rejected in advance: nothing else need be examined."""
    for seed in range(10):
        fabric, s, count = laid_out(some_coflows(seed))
        choices: Choices = make_choices(fabric.coflows.weight, rule == "dynamic-programming")
        admitted = dcoflow(
            fabric, s, choices, rejection(rule, weighted=seed % 2 == 1, from_back=from_back), count
        )
        assert 0 < admitted < count
        assert late_in_order(fabric, s, s.groups[:admitted].tolist()) == []
        if not from_back:  # then none of the others could be put behind those before it
            order, kept = s.order[:count].tolist(), set(s.groups[:admitted].tolist())
            for place, coflow in enumerate(order):
                if coflow not in kept:
                    ahead = [k for k in order[:place] if k in kept]
                    assert late_in_order(fabric, s, [*ahead, coflow]) == [coflow]


def test_a_weight_decides_which_of_two_equal_coflows_is_rejected() -> None:
    # Both take 2 of port 0 and are due at 3; the measure of either is 2 (3 - 4) = -2, over its weight.
    for weights, kept in (([1.0, 3.0], 1), ([3.0, 1.0], 0)):
        workload = make_coflow_workload(
            "two", [0.0, 0.0], [1, 1], [0, 0], [0, 1], [2.0, 2.0], 2, deadline_s=[3e-9, 3e-9], weight=weights
        )
        fabric, s, count = laid_out(workload)
        assert dcoflow(fabric, s, NO_CHOICES, rejection("min-negative", weighted=True), count) == 1
        assert s.groups[0] == kept
        fabric, s, count = laid_out(workload)
        assert dcoflow(fabric, s, NO_CHOICES, rejection("min-negative"), count) == 1
        assert s.groups[0] == 1  # without weights the first to arrive is rejected


def test_coflows_without_deadlines_are_always_admitted() -> None:
    workload = make_coflow_workload(
        "three", [0.0] * 3, [1] * 3, [0] * 3, [0, 1, 2], [9.0, 2.0, 2.0], 3, deadline_s=[np.nan, 3e-9, 3e-9]
    )
    fabric, s, count = laid_out(workload)
    s.time_left[0] = np.inf
    assert dcoflow(fabric, s, NO_CHOICES, rejection("min-negative"), count) == 2
    assert s.groups.tolist() == [2, 0, 1]  # the other that is admitted comes first
    assert cs_mha(fabric, s, count) == 2
    assert s.groups[1] == 0
