"""At a switch of one port a scheduler of coflows is a single server, of which the theory is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from coflow_emulations import setting_of
from emulations import run_setting
from switch_runs import serve

from actors.hosting.outcome import Observe
from actors.kernel.compiled import config
from workloads.coflows import CoflowWorkload, make_coflow_workload

NS = 1_000_000_000
Rates = Callable[[np.ndarray, np.ndarray], np.ndarray]


def by_least(key: np.ndarray) -> np.ndarray:
    """All for the first of those that have the least."""
    rates = np.zeros(key.size)
    rates[np.argmin(key)] = 1.0
    return rates


# Rates of those that are there, in order of arrival, by their size and by what they have left.


def shared(size: np.ndarray, left: np.ndarray) -> np.ndarray:
    return np.full(size.size, 1.0 / size.size)


def first(size: np.ndarray, left: np.ndarray) -> np.ndarray:
    return by_least(np.arange(size.size))


def shortest(size: np.ndarray, left: np.ndarray) -> np.ndarray:
    return by_least(size)


def shortest_remaining(size: np.ndarray, left: np.ndarray) -> np.ndarray:
    return by_least(left)


def least_served(size: np.ndarray, left: np.ndarray) -> np.ndarray:
    return by_least(size - left)


def served(arrival: np.ndarray, size: np.ndarray, rule: Rates, step: float = np.inf) -> np.ndarray:
    """When each ends at a server of a byte in a second, which thinks again after each `step` seconds."""
    return serve(arrival, size, lambda there, left: rule(size[there], left), step)


def single(
    count: int, load: float, seed: int = 1, mean: float = 10.0
) -> tuple[CoflowWorkload, np.ndarray, np.ndarray]:
    """Coflows of one flow, of different whole numbers of bytes; with their arrivals (s) and sizes."""
    rng = np.random.default_rng(seed)
    size = np.maximum(rng.exponential(100 * mean, count).round(), 1.0) / 100
    arrival = np.cumsum(rng.exponential(mean / load, count)).round(3)
    work = make_coflow_workload("one port", arrival, [1] * count, [0] * count, [0] * count, size, 1)
    return work, arrival, size


def ends_s(scheduler: str, work: CoflowWorkload, **parameters: Any) -> np.ndarray:
    return run_setting(setting_of(scheduler, work, **parameters), Observe()).finish_ns / NS


ONE_QUEUE = {"queues": 1, "starvation": "strict"}
THEORY: tuple[tuple[str, dict[str, Any], Rates], ...] = (
    ("fair", {}, shared),
    ("pfp", {}, shortest_remaining),
    ("fifo", {}, first),
    ("fifo", {"rates": "greedy"}, first),
    ("ncf", {}, first),  # all are as narrow
    ("scf", {}, shortest),
    ("lcf", {}, shortest),
    ("lcf", {"rates": "greedy"}, shortest),
    ("sebf", {}, shortest_remaining),
    ("sebf", {"rates": "greedy"}, shortest_remaining),
    ("sincronia", {}, shortest_remaining),
    ("philae", {}, first),  # all are thin, and meet all others
    ("philae", {"thin_limit": 0}, first),  # a flow is its coflow's pilot
)


@pytest.mark.parametrize(("scheduler", "parameters", "theory"), THEORY)
def test_one_port_is_a_single_server(scheduler: str, parameters: dict[str, Any], theory: Rates) -> None:
    work, arrival, size = single(80, load=0.9)
    expected = served(arrival, size, theory)
    # Ends are in whole ns, and move those after them.
    assert np.abs(ends_s(scheduler, work, **parameters) - expected).max() < 1e-6


@pytest.mark.parametrize("scheduler", ["aalo", "aalo-oracle"])
def test_aalo_with_one_queue_is_first_in_first_out_from_interval_to_interval(scheduler: str) -> None:
    work, arrival, size = single(80, load=0.9)
    expected, free = [], 0.0
    for at, bytes_left in zip(arrival, size, strict=True):
        free = np.ceil(max(at, free) / 0.25 - 1e-9) * 0.25 + bytes_left
        expected.append(free)
    assert np.abs(ends_s(scheduler, work, interval_s=0.25, **ONE_QUEUE) - expected).max() < 1e-6


FINE = {"queues": 64, "first_limit_bytes": 20, "factor": 1.1, "starvation": "strict"}


def test_aalo_with_many_queues_serves_whom_it_has_served_least() -> None:
    # A queue is as wide as a tenth of what those in it have been served, and in it the first goes first.
    work, arrival, size = single(60, load=0.8, mean=1000.0)
    found = ends_s("aalo", work, interval_s=5.0, **FINE) - arrival
    expected, in_order = (served(arrival, size, rule, 10.0) - arrival for rule in (least_served, first))
    assert found.mean() == pytest.approx(expected.mean(), rel=0.03)
    assert np.median(np.abs(found / expected - 1)) < 0.05
    assert abs(in_order.mean() / expected.mean() - 1) > 0.1  # it is not that all rules are the same


def test_aalo_oracle_with_many_queues_is_shortest_first() -> None:
    work, arrival, size = single(60, load=0.8, mean=1000.0)
    found = ends_s("aalo-oracle", work, interval_s=0.5, **FINE) - arrival
    expected, in_order = (served(arrival, size, rule) - arrival for rule in (shortest, first))
    assert found.mean() == pytest.approx(expected.mean(), rel=0.03)
    assert abs(in_order.mean() / expected.mean() - 1) > 0.1


@pytest.mark.slow("long runs, for a mean")
@pytest.mark.parametrize("spread", ["equal", "exponential"])
def test_fair_has_the_mean_of_processor_sharing_whatever_the_sizes_are(spread: str) -> None:
    # M/G/1-PS: a flow of size x takes x / (1 - load) in the mean, and nothing else of the distribution matters.
    count, load = (1_000, 0.5) if config.DISABLE_JIT else (10_000, 0.5)
    rng = np.random.default_rng(5)
    size = np.full(count, 10.0) if spread == "equal" else rng.exponential(10.0, count) + 1e-3
    arrival = np.cumsum(rng.exponential(10.0 / load, count))
    work = make_coflow_workload("M/G/1", arrival, [1] * count, [0] * count, [0] * count, size, 1)
    found = ends_s("fair", work) - work.arrays().arrival_ns / NS
    assert (found / size).mean() == pytest.approx(1 / (1 - load), rel=0.1)
