"""Job times against those of the Eagle authors' simulator (claims/eagle.py has the rule and the table).

Every judged figure is met by the parameters that give the authors' rules, and Hawk's by the defaults, too, which go by
messages. The figures that are not met are named here, each with the reason and a check of that reason.
"""

import numpy as np
import pytest
from emulations import run_setting

from actors.hosting.partition import Observe
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Network, Setting
from claims.eagle import SHARED, Row, compare, reference_rows, workload_of
from clusters.cluster import load_cluster

pytestmark = [
    pytest.mark.reference,
    pytest.mark.slow("whole traces"),
    pytest.mark.skipif(
        not (SHARED / "reference" / "eagle.csv").exists(), reason="no reference results beside the repository"
    ),
]

SEEDS = 5
# A mean that a few jobs of thousands of seconds make: see test_the_heavy_tail_…
HEAVY_TAIL = ("YH1_sub", 15_000, "Sparrow", "short", "mean")
# 91 jobs, and which of two tasks that end at the same instant asks first decides: see test_ties_…
TIES = ("GOOG_subtrace", 11_760, "CLWL", "short", "p99")


def name(row: Row) -> tuple[str, int, str, str, str]:
    return row.trace, row.nodes, row.system, row.job_class, row.statistic


@pytest.fixture(scope="module")
def rows() -> dict[bool, dict[tuple, Row]]:
    # By messages Hawk alone is judged: what the authors' rules meet needs no second way.
    return {
        False: {name(row): row for row in compare(SEEDS, peer_rules=False, systems=("Hawk",))},
        True: {name(row): row for row in compare(SEEDS, peer_rules=True)},
    }


def short_jct_s(system: str, trace: str, nodes: int, seed: int = 1, delay_s: float = 0.0005, **given: object):
    workload = workload_of(trace)
    scheduler = find_scheduler(system)
    assert workload.short_cutoff_s is not None
    setting = Setting(
        scheduler,
        resolve_parameters(scheduler, given),
        workload,
        load_cluster("homogeneous", nodes),
        workload.short_cutoff_s,
        (workload.long_partition or 1.0) if scheduler.hybrid else 1.0,
        Network(delay_s),
        seed=seed,
    )
    outcome = run_setting(setting, Observe())
    return ((outcome.finish_ns - workload.arrays().submit_ns) / 1e9)[~outcome.is_long]


def test_all_judged_figures_are_compared(rows):
    # 2 classes and 4 statistics of: YH1_sub at three sizes with 5 systems and IdealEagle at two of them or three,
    # GOOG_subtrace at three sizes with 5 systems.
    runs = {key[:3] for key in rows[True]}
    assert len(rows[True]) == 8 * len(runs)
    assert rows[False].keys() == {key for key in rows[True] if key[2] == "Hawk"}
    assert {"YH1_sub", "GOOG_subtrace"} == {run[0] for run in runs}
    assert {"Sparrow", "Hawk", "Eagle", "IdealEagle", "CLWL", "DLWL"} == {run[2] for run in runs}


def test_the_authors_rules_meet_every_figure_but_the_two_named(rows):
    missed = [
        f"{key}: {row.error:+.1%}, tolerance {row.tolerance:.1%}"
        for key, row in rows[True].items()
        if not row.is_met and key not in (HEAVY_TAIL, TIES)
    ]
    assert not missed, "\n".join(missed)


def test_messages_alone_meet_every_figure_of_hawk(rows):
    assert rows[False]
    assert all(row.is_met for row in rows[False].values())


def test_the_heavy_tail_the_peers_one_seed_is_no_outlier_among_ours():
    peer = reference_rows(SHARED / "reference" / "eagle.csv")["YH1_sub", 15_000, "Sparrow", "short"]
    ours = [short_jct_s("sparrow", "YH1_sub", 15_000, seed, replacement=True).mean() for seed in range(1, 13)]
    assert len(peer) == 1
    assert abs(peer[0]["mean"] - np.mean(ours)) < 3 * np.std(ours, ddof=1) * np.sqrt(1 + 1 / len(ours))


def test_ties_an_immaterial_network_delay_moves_the_figure_as_far():
    peer = reference_rows(SHARED / "reference" / "eagle.csv")["GOOG_subtrace", 11_760, "CLWL", "short"]
    p99_s = [
        np.percentile(
            short_jct_s("central-lwl", "GOOG_subtrace", 11_760, delay_s=delay_s, late_binding=True), 99
        )
        for delay_s in (0.0001, 0.0005, 0.001)
    ]
    assert max(p99_s) / min(p99_s) > 1.09
    assert peer[0]["p99"] == pytest.approx(max(p99_s), rel=0.05)
