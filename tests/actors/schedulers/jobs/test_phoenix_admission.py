"""Phoenix: where the probes of a job go that asks for a contended resource, and what it does without.

In the examples worked out by hand a message takes 1 s, as in test_phoenix.py. How long nodes expect a task to wait is
in test_queueing_estimates.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulations import constrained, digest, log_of, run_setting, setting_of
from hard_settings import check_constraints_of
from phoenix_examples import BY_CRV, asking, nodes_of
from splitmix import draw

from actors.kernel.random import DRAW_ORDER, PROBES
from actors.setting import Setting
from clusters.cluster import build_cluster
from workloads.jobs import make_workload


def contended_setting(seed: int, text: str, **settings: Any) -> Setting:
    """Forty jobs that all ask for this on twelve nodes in racks of three, four and five."""
    rng = np.random.default_rng(seed)
    tasks = rng.integers(1, 4, 40)
    submit_s, durations_s = np.cumsum(rng.exponential(1.0, 40)), rng.uniform(1, 12, tasks.sum())
    workload = constrained(make_workload("contended", submit_s, tasks, durations_s), text)
    cluster = build_cluster("twelve", [1] * 12, rack=[0] * 3 + [1] * 4 + [2] * 5)
    given = {"heartbeat_s": 1, "crv_threshold": 0} | settings
    return setting_of("phoenix", workload, cluster, cutoff_s=1e6, seed=seed, **given)


@pytest.mark.parametrize("seed", range(10))
def test_a_level_that_is_tried_and_not_used_changes_nothing(seed: int) -> None:
    """The rack that was chosen first stays, and so do the nodes: the result is that without `negotiate`."""
    text = "cores >= 1 and same-rack soft 1000 and spread-nodes"
    outcome = run_setting(contended_setting(seed, text))
    assert outcome.counters["admissions"] > 5
    assert "jobs_relaxed" not in outcome.counters
    check_constraints_of(contended_setting(seed, text), outcome)
    assert digest(outcome) == digest(run_setting(contended_setting(seed, text, negotiate=False)))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_tried_with_success_holds(seed: int) -> None:
    setting = contended_setting(seed, "cores >= 1 and same-rack soft 1.01 and spread-nodes soft 1.02")
    outcome = run_setting(setting)
    dropped = check_constraints_of(setting, outcome)
    assert {least for _, least, _ in dropped} >= {0, 1}
    assert outcome.counters["jobs_relaxed"] == sum(least > 0 for _, least, _ in dropped)


def test_a_job_that_is_relaxed_from_the_start_and_further_counts_once() -> None:
    # No node has 64 cores. What all do without from the start is the cheaper one; some do without their rack, too.
    setting = contended_setting(
        0, "cores >= 64 soft 1.001 and cores >= 1 and same-rack soft 1.01 and spread-nodes"
    )
    outcome = run_setting(setting)
    assert {least for _, least, _ in check_constraints_of(setting, outcome)} == {1, 2}
    assert outcome.counters["admissions"] > 5
    assert outcome.counters["jobs_relaxed"] == 40


# On node 0, the only one with eight cores, a task runs from 3 to 63, and one waits behind it: from 8 on cores are
# contended. At 20 a job of two tasks comes that may use the others, which have never had anything to do.
EQUALS = asking((0, [60], "cores >= 8"), (1, [1], "cores >= 8"), (20, [1, 1], "cores = 4"))


def drawn_first(seed: int, nodes: int, drawn: int, count: int) -> set[int]:
    """The places of the first `count` nodes of so many that are drawn of `nodes`."""
    places: list[int] = list(range(nodes)) if drawn == nodes else []
    for i in range(len(places), drawn):  # Floyd's method
        last = nodes - drawn + i
        place = draw(seed, PROBES, 2, i, last + 1)
        places.append(last if place in places else place)
    for i in range(drawn - 1, 0, -1):  # and Fisher's and Yates's
        j = draw(seed, DRAW_ORDER, 2, i, i + 1)
        places[i], places[j] = places[j], places[i]
    return set(places[:count])


@pytest.mark.parametrize("candidates", [2, 100])
def test_of_nodes_that_wait_equally_long_those_drawn_first_are_taken(candidates: int) -> None:
    taken = []
    for seed in range(30):
        log = log_of(
            "phoenix",
            EQUALS,
            nodes_of(8, *[4] * 6),
            crv_threshold=0.5,
            seed=seed,
            candidates=candidates,
            **BY_CRV,
        )
        assert log.counters["admissions"] == 1
        nodes = {node - 1 for task, node, start, _ in log.tasks if task.startswith("2.") and start == 23}
        assert nodes == drawn_first(seed, 6, min(2 * candidates, 6), 2)
        taken += nodes
    assert set(taken) == set(range(6))
