"""Completion times of jobs around the coflows of Facebook's trace: Philae's paper, section 8.2, with tasks that run.

    python -m claims.philae_jobs [--seeds 5] [--slots 8,10,100] [--networks philae,sebf,fair]

The paper takes each of 526 coflows for a job whose shuffle is a share of its time (61 % of the jobs below 25 %, and so
on), and gives the time of a job under Aalo over that under Philae: 1.16 in the median, 7.87 at the 90th percentile.
Here `emu workload jobs` puts maps and reducers around each coflow with such shares, `drf` places them on 150 machines
of so many slots, and a reducer fetches over ports of 1 Gbps. Where tasks run is the manager's, not the trace's: with
few slots a shuffle lies on many machines and comes in waves, with many on few machines. Printed are mean and half-width
of the 95 % interval over seeds, which draw the shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import emu
from benchmarks.measuring import SHARED, options, show
from emu.results.metrics import confidence_95
from emu.results.text_tables import with_error
from workloads.arrow import optional_column
from workloads.catalogue import load_workload
from workloads.transform.shuffle_jobs import shuffle_jobs

TRACE = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
SPEED_BPS, MACHINES = 1e9, 150


def jct_s(jobs: Any, slots: int, network: str) -> np.ndarray:
    """Return the completion times of jobs, in order."""
    keys: Any = {"slots": slots, "network_scheduler": network, "fabric_port_speed": SPEED_BPS}
    result = emu.run("drf", jobs, MACHINES, in_process=True, network_delay=0.0, **keys)
    return optional_column(result.jobs, "jct_s")


def line(slots: int, network: str, seeds: int) -> list[str]:
    """Return a line of the table: completion times under Aalo over those under another network, job by job."""
    coflows = load_workload(str(TRACE))
    found: list[tuple[float, float, float]] = []
    for seed in range(1, seeds + 1):
        jobs = shuffle_jobs(coflows, port_speed_bps=SPEED_BPS, seed=seed)
        aalo, other = (jct_s(jobs, slots, name) for name in ("aalo", network))
        p50, p90 = np.percentile(aalo / other, (50, 90))
        found.append((p50, p90, aalo.mean() / other.mean()))
    figures = (with_error(*confidence_95(list(of)), digits=3) for of in zip(*found, strict=True))
    return [f"{slots}", network, *figures]


def main() -> None:
    """Run the benchmark."""
    asked = options(__doc__, seeds=5, slots=(8, 10, 100), networks=("philae", "sebf", "fair"))
    rows = [["slots", "under Aalo over", "P50", "P90", "means"]]
    for slots in asked.slots:
        rows += [line(slots, network, asked.seeds) for network in asked.networks]
    show("completion times of the jobs around 526 coflows (paper, Philae: P50 1.16, P90 7.87)", rows)


if __name__ == "__main__":
    main()
