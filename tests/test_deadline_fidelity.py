"""Schedulers with deadlines on CoflowLib's instances: beside an independent program, and its means.

The program has two means for an archive: with the flows of a coflow in the order of the file, which is that of the
authors' code and the default here, and of their ports; the latter stops a flow that runs for another one of its coflow,
which `flow_order=ports` does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulations import run_setting

from actors.hosting.outcome import Observe, Outcome
from tests.actors.coflow_emulations import setting_of
from tests.oracles import deadline_rules
from tests.test_deadline_rules import MEASURED
from workloads.coflows import CoflowWorkload
from workloads.readers.coflowlib import list_coflowlib, read_coflowlib

COFLOWLIB = Path(__file__).parents[2] / "shared" / "traces" / "coflowlib"
pytestmark = [
    pytest.mark.reference,
    pytest.mark.slow("whole traces"),
    pytest.mark.skipif(not COFLOWLIB.exists(), reason="no CoflowLib instances beside the repository"),
]
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "dcoflow min_all": ("dcoflow", {"reject": "min-all"}),
    "dcoflow min_negative": ("dcoflow", {}),
    "dcoflow min_congested": ("dcoflow", {"reject": "min-congested"}),
    "dcoflow moore_hodgson": ("dcoflow", {"reject": "moore-hodgson"}),
    "cs-mha": ("cs-mha", {}),
    "sincronia": ("sincronia", {"reorder": "arrivals", "weights": False, "flow_order": "workload"}),
}
# Of `sebf-deadline`, from another program: the baseline that DCoflow's authors call Varys.
NO_ADMISSION = {
    "off_synthetic_m10_c10": 0.431,
    "off_synthetic_m10_c40": 0.206,
    "off_facebook_m10_c10": 0.699,
    "off_facebook_m10_c40": 0.262,
}


def instances(archive: str, most: int = 1000) -> list[CoflowWorkload]:
    path = COFLOWLIB / f"{archive}.zip"
    return [read_coflowlib(path, instance=k + 1) for k in range(min(len(list_coflowlib(path)), most))]


def outcome_of(name: str, workload: CoflowWorkload) -> Outcome:
    scheduler, parameters = OURS.get(name, (name, {}))
    return run_setting(setting_of(scheduler, workload, **parameters), Observe())


def is_met(outcome: Outcome, workload: CoflowWorkload) -> np.ndarray:
    found: np.ndarray = (outcome.finish_ns >= 0) & (outcome.finish_ns <= workload.arrays().deadline_ns)
    return found


def met(outcome: Outcome, workload: CoflowWorkload) -> float:
    return float(is_met(outcome, workload).mean())


@pytest.mark.parametrize("archive", [name for name in MEASURED if "facebook" in name])
def test_means_off_line_are_those_of_another_program(archive: str) -> None:
    """Of Facebook's coflows, where ports have equal loads: rounding decides which is the bottleneck."""
    workloads = instances(archive)
    assert len(workloads) == 100
    for name, expected in zip(OURS, MEASURED[archive], strict=True):
        if expected is None:
            continue
        mean = np.mean([met(outcome_of(name, workload), workload) for workload in workloads])
        assert mean == pytest.approx(expected, abs=0.005), name


@pytest.mark.parametrize("archive", [name for name in MEASURED if "synthetic" in name])
def test_the_same_coflows_are_admitted_and_in_time_as_by_the_independent_program(archive: str) -> None:
    """In each of 20 instances; over all 100, the independent program's means are those of another one."""
    theirs = deadline_rules.read_instances(COFLOWLIB / f"{archive}.zip")
    workloads = instances(archive, 20)
    for name in OURS:
        for workload, instance in zip(workloads, theirs[:20], strict=True):
            outcome, order = outcome_of(name, workload), deadline_rules.ORDERS[name](instance)
            in_time = (
                deadline_rules.finish_times(instance, order) <= instance.deadline + deadline_rules.ROUNDING
            )
            assert np.array_equal(is_met(outcome, workload), in_time), name
            if name.startswith("dcoflow"):
                assert np.flatnonzero(outcome.series.admitted).tolist() == sorted(order)


@pytest.mark.parametrize("archive", NO_ADMISSION)
def test_means_without_admission_are_those_of_another_program(archive: str) -> None:
    found = [met(outcome_of("sebf-deadline", workload), workload) for workload in instances(archive)]
    assert np.mean(found) == pytest.approx(NO_ADMISSION[archive], abs=0.005)


@pytest.mark.parametrize("archive", NO_ADMISSION)
def test_varys_admits_what_has_room_beside_those_before(archive: str) -> None:
    """All are there at time 0: each needs of a port its time there, divided by its deadline."""
    theirs = deadline_rules.read_instances(COFLOWLIB / f"{archive}.zip")
    for workload, instance in zip(instances(archive, 20), theirs[:20], strict=True):
        reserved, expected = np.zeros(instance.capacity.size), []
        for share in (instance.times() / instance.deadline).T:
            expected.append(bool((reserved + share <= 1 + 1e-9).all()))
            reserved += share * expected[-1]
        outcome = outcome_of("varys-deadline", workload)
        assert outcome.series.admitted.tolist() == expected
        assert met(outcome, workload) == np.mean(expected)


@pytest.mark.parametrize(
    ("name", "mean"), [("dcoflow min_all", 0.316), ("dcoflow min_negative", 0.341), ("cs-mha", 0.240)]
)
def test_means_on_line_are_those_of_another_program(name: str, mean: float) -> None:
    """Of 8 instances of 40, whose means differ from those of all by 0.002."""
    found = [met(outcome_of(name, w), w) for w in instances("on_synthetic_nobatch_m10_c2000_l10", 8)]
    assert np.mean(found) == pytest.approx(mean, abs=0.005)
