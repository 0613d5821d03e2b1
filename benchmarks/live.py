"""The clock `live` at full size: tens of thousands of nodes in Ray actors, paced by the wall clock.

How to run: `python -m benchmarks.live [--nodes 50000] [--seconds 60] [--scheduler sparrow] [--mixed]`
For debugging: `--seconds 10 --nodes 2000 --in-process`
Tasks of 1 s (`--mixed`: 0.1 to 10 s, uniform in the logarithm) in jobs of 10, load 50 % of the slots, dilation 1. The
goal on 2 idle cores: 99 % of all events of 50,000 nodes handled within 1 ms of their time.
"""

import sys
from typing import Any

import numpy as np

from actors.environment import Pace
from actors.hosting.live import emulate_live
from actors.hosting.outcome import Observe
from benchmarks.measuring import options, setting_of, show
from emu.families.jobs.decision_latency import decision_latency_ns
from workloads.jobs import JobWorkload, make_workload

TARGET_S = 0.001
SHORTEST_S, LONGEST_S = 0.1, 10.0
TASKS_PER_JOB = 10


def workload_of(nodes: int, seconds: float, mixed: bool) -> JobWorkload:
    """Return jobs that arrive at random for so many seconds, and load half of the slots."""
    rng = np.random.default_rng(1)
    mean_s = (LONGEST_S - SHORTEST_S) / np.log(LONGEST_S / SHORTEST_S) if mixed else 1.0
    jobs = round(0.5 * nodes * seconds / (mean_s * TASKS_PER_JOB))
    durations = np.ones(jobs * TASKS_PER_JOB)
    if mixed:
        durations = np.exp(rng.uniform(np.log(SHORTEST_S), np.log(LONGEST_S), jobs * TASKS_PER_JOB))
    submit_s = np.sort(rng.uniform(0.0, seconds, jobs))
    name = "log-uniform" if mixed else "one second"
    return make_workload(name, submit_s, np.full(jobs, TASKS_PER_JOB), durations, short_cutoff_s=2.0)


def main() -> int:
    """Run once and print lateness, latency and the verdict."""
    given: dict[str, Any] = {"scheduler": "sparrow", "mixed": False, "in_process": False}
    asked = options(__doc__, seconds=60.0, nodes=50_000, **given)
    workload = workload_of(asked.nodes, asked.seconds, asked.mixed)
    setting = setting_of(asked.scheduler, workload, asked.nodes, long_partition=0.9, seed=0)
    watched = Observe(timeline_period_s=1.0, tasks=True)
    outcome = emulate_live(setting, watched, Pace(), in_process=asked.in_process)
    live, tasks = outcome.live, outcome.tasks
    assert live is not None
    assert tasks is not None
    arrays = workload.arrays()
    submit_ns = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    latency = decision_latency_ns(submit_ns, **tasks, slots=setting.cluster.slots())
    print(
        f"{asked.scheduler}: {asked.nodes:,} nodes, {workload.num_tasks:,} tasks, {outcome.events:,} events"
        f" in {outcome.wall_s:.1f} s, {live['batches_per_s']:,.0f} batches/s"
        f" of {live['messages_per_batch']:.1f} messages by {live['exchange']}"
    )
    shares = ("p50", "p90", "p99", "max")
    spreads = {f"lateness of {name}": spread for name, spread in live["lateness"].items()}
    spreads["message latency"] = live["message_latency"]
    quantiles = np.quantile(latency, (0.5, 0.9, 0.99, 1.0)) / 1e9
    spreads["decision latency"] = dict(zip(shares, quantiles, strict=True))
    rows = [["ms", *shares]]
    for name, spread in spreads.items():
        rows.append([name, *(f"{1000 * spread[q]:.2f}" if q in spread else "" for q in shares)])
    show("", rows)
    for part in live["partitions"]:
        print(
            f"{part['hosts']}: {part['cpu']:.0%} of a core, of which {part['awake']:.0%} awake without work,"
            f" at most {part['backlog_max']} events behind"
        )
    print(live["verdict"])
    for note in live["notes"]:
        print(f"note: {note}")
    return 0 if all(part["lateness"].get("p99", 0.0) <= TARGET_S for part in live["partitions"]) else 1


if __name__ == "__main__":
    sys.exit(main())
