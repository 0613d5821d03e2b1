"""Fair sharing and shortest flow first: examples worked out by hand, and the published trace.

A port sends a byte in a second, so that bytes are seconds; "2 0>1" is the flow of coflow 2 from port 0 to port 1,
and a log has when it is sent, and at which rate unless that is a byte a second.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded_runs import ALL_TASKS
from coflow_emulations import COSTS, coflows, log_of, setting_of
from emulations import run_setting

from actors.hosting.outcome import Observe
from workloads.readers.coflow_benchmark import read_coflow_benchmark

NS = 1_000_000_000
SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[5] / "shared")
TRACE = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
ROWS = ((0, [(0, 0, 4), (0, 1, 2)]), (1, [(1, 1, 0.5)]))


@pytest.mark.parametrize("late", [{}, {"delay_s": 3.0, "costs": COSTS}])
def test_fair_gives_all_flows_the_same_share_of_their_bottleneck(late: dict[str, Any]) -> None:
    # Flows of coflow 0 have half of port 0 (in) each. At 1 coflow 1 has the other half of port 1 (out), until 2. Of
    # 0>1 there are 2 - 1 B left at 2; nothing changes for it until it ends at 4. Then 0>0 is alone, with 2 B left.
    # No message is needed, so the network delay does not matter.
    log = log_of("fair", coflows(*ROWS, ports=2), **late)
    assert log.sending == {
        "0 0>0": [(0, 4, 0.5), (4, 6)],
        "0 0>1": [(0, 4, 0.5)],
        "1 1>1": [(1, 2, 0.5)],
    }
    assert log.counters == {}


@pytest.mark.parametrize("late", [{}, {"delay_s": 3.0, "costs": COSTS}])
def test_pfp_serves_the_flow_with_the_least_left(late: dict[str, Any]) -> None:
    # 0>1 is shorter than 0>0, until 1>1 comes: 1 B left against 0.5. Then port 0 (in) serves 0>0 meanwhile. At 1.5
    # 0>1 is back, and 0>0 has the rest.
    log = log_of("pfp", coflows(*ROWS, ports=2), **late)
    assert log.sending == {
        "0 0>0": [(1, 1.5), (2.5, 6)],
        "0 0>1": [(0, 1), (1.5, 2.5)],
        "1 1>1": [(1, 1.5)],
    }
    assert log.counters == {}


@pytest.mark.parametrize("scheduler", ["fair", "pfp"])
def test_local_flows_may_be_free(scheduler: str) -> None:
    # Coflow 0 has 0>1 for 2 s, coflow 1 nothing that crosses the switch; 2>2 of coflow 2 does not slow 0>2 down.
    rows = ((0, [(0, 0, 5), (0, 1, 2)]), (1, [(1, 1, 3)]), (7, [(2, 2, 9), (0, 2, 1)]))
    setting = setting_of(scheduler, coflows(*rows, ports=3), local_is_free=True)
    outcome = run_setting(setting, ALL_TASKS)
    assert (outcome.start_ns / NS).tolist() == [0, 1, 7]
    assert (outcome.finish_ns / NS).tolist() == [2, 1, 8]
    assert outcome.tasks is not None
    assert (outcome.tasks["start_ns"] / NS).tolist() == [0, 0, 1, 7, 7]
    assert (outcome.tasks["finish_ns"] / NS).tolist() == [0, 2, 1, 7, 8]
    assert outcome.tasks["node"].tolist() == [0, 0, 1, 2, 0]


@pytest.mark.parametrize("scheduler", ["fair", "pfp"])
def test_there_may_be_nothing_but_free_flows(scheduler: str) -> None:
    setting = setting_of(scheduler, coflows((0, [(0, 0, 5)]), (2, [(1, 1, 3)]), ports=2), local_is_free=True)
    assert (run_setting(setting).finish_ns / NS).tolist() == [0, 2]


def test_flows_between_the_same_ports_are_one() -> None:
    # 0>1 has 3 B and half of port 0 (in) until 6; then 0>0 has 3 B left.
    rows = [(0, [(0, 1, 1), (0, 0, 6), (0, 1, 2)])]
    log = log_of("fair", coflows(*rows, ports=2))
    assert log.sending == {"0 0>0": [(0, 6, 0.5), (6, 9)], "0 0>1": [(0, 6, 0.5)]}
    assert log_of("pfp", coflows(*rows, ports=2)).sending == {"0 0>0": [(3, 9)], "0 0>1": [(0, 3)]}


@pytest.mark.reference
@pytest.mark.skipif(not TRACE.exists(), reason="no traces beside the repository")
@pytest.mark.parametrize(
    ("scheduler", "mean_s", "median_s"), [("fair", 58.790, 2.527), ("pfp", 33.064, 0.188)]
)
def test_the_published_trace(scheduler: str, mean_s: float, median_s: float) -> None:
    # Figures of another program with the same rates, in one loop without messages; a MiB takes a port 8 ms.
    work = read_coflow_benchmark(TRACE)
    outcome = run_setting(setting_of(scheduler, work, speed=(1 << 20) / 0.008), Observe())
    cct_s = (outcome.finish_ns - work.arrays().arrival_ns) / NS
    assert cct_s.mean() == pytest.approx(mean_s, abs=0.001)
    assert np.median(cct_s) == pytest.approx(median_s, abs=0.001)
