"""Completion times of coflows against those of the public simulators (claims/coflow_simulators.py has the whole table).

Each scheduler runs at its peer's port speed, with the parameters nearest to its peer's rules. Where a difference
remains it is bounded here, and docs/results/coflows.md says what it comes from.
"""

import numpy as np
import pytest
from emulations import run_setting

from actors.hosting.outcome import Observe
from benchmarks.coflow_runs import Runs, workload_of
from claims.coflow_simulators import PEERS, REFERENCE, Beside, compare, peer_cct_s
from tests.actors.coflow_emulations import setting_of

pytestmark = [
    pytest.mark.reference,
    pytest.mark.slow("whole traces"),
    pytest.mark.skipif(not REFERENCE.exists(), reason="no reference results beside the repository"),
]


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs()


def beside(runs: Runs, simulator: str, algorithm: str) -> Beside:
    return compare(runs, simulator, algorithm, "cctexact")


def test_the_rows_of_the_reference_that_are_judged_have_a_scheduler():
    assert {("philae+patch", "D"), ("philae+patch", "aalo"), ("coflowsim", "SEBF")} <= set(PEERS)


def test_aalo_takes_what_it_takes_in_the_peer(runs):
    found = beside(runs, "philae+patch", "aalo")
    for name, tolerance in {"mean": 0.02, "p90": 0.05, "p99": 0.05}.items():
        assert found.ours[name] == pytest.approx(found.peer[name], rel=tolerance)
    assert np.median(found.ratio) == pytest.approx(1.0, abs=0.05)


def test_philae_takes_what_it_takes_in_its_authors_simulator(runs):
    found = beside(runs, "philae+patch", "D")
    for name, tolerance in {"mean": 0.08, "p99": 0.05}.items():
        assert found.ours[name] == pytest.approx(found.peer[name], rel=tolerance)
    assert np.median(found.ratio) == pytest.approx(1.0, abs=0.05)
    # The p90 in seconds lies at a gap: 8.6 or 9.4 as one coflow of 526 is on this side of it or on that one. So coflows
    # are counted that take longer than the peer's percentiles: under strict priority, policy B, Aalo or SEBF 11 to 53
    # more or fewer do at one of these.
    percentiles = [75, 80, 85, 90, 95, 99]
    peer_s = peer_cct_s("philae+patch_D_cctexact")
    ours_s = found.ratio * peer_s
    for limit_s in np.percentile(peer_s, percentiles):
        assert abs(int((ours_s > limit_s).sum()) - int((peer_s > limit_s).sum())) <= 7
    assert (ours_s > np.percentile(peer_s, 90)).mean() == pytest.approx(0.1, abs=0.004)


def test_greedy_sebf_takes_what_it_takes_in_the_peer(runs):
    found = beside(runs, "philae+patch", "SEBF")
    assert found.ours["mean"] == pytest.approx(found.peer["mean"], rel=0.02)
    assert found.ours["p99"] == pytest.approx(found.peer["p99"], rel=0.02)


def test_sebf_is_coflowsims_coflow_by_coflow(runs):
    found = beside(runs, "coflowsim", "SEBF")
    assert np.median(found.ratio) == pytest.approx(1.0, abs=0.01)
    assert (np.abs(found.ratio - 1) <= 0.1).mean() > 0.9


def test_shifted_arrivals_are_those_of_the_peer():
    early_s, arrival_s = (
        workload_of(name).coflows["arrival_s"].to_numpy() for name in ("early-facebook", "facebook")
    )
    assert ((arrival_s - early_s) >= 0).all()
    assert (arrival_s - early_s).max() <= 10.24
    assert np.allclose(early_s / 10.24, np.round(early_s / 10.24))


@pytest.mark.parametrize(
    ("scheduler", "mean_s", "median_s"), [("fair", 58.790, 2.527), ("pfp", 33.064, 0.188)]
)
def test_without_messages_another_program_has_the_same_figures(scheduler, mean_s, median_s):
    # It has the same rates, in one loop; a MiB takes a port 8 ms.
    work = workload_of("facebook")
    outcome = run_setting(setting_of(scheduler, work, speed=(1 << 20) / 0.008), Observe())
    cct_s = (outcome.finish_ns - work.arrays().arrival_ns) / 1e9
    assert cct_s.mean() == pytest.approx(mean_s, abs=0.001)
    assert np.median(cct_s) == pytest.approx(median_s, abs=0.001)
