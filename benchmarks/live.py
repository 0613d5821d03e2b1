"""The clock `live` at full size: 15,000 nodes in Ray actors, paced by the wall clock.

How to run: `python -m benchmarks.live [--scheduler sparrow] [--seconds 60]`
For debugging: `--seconds 10 --nodes 2000 --in-process`
Tasks of 0.1 to 10 s, uniform in the logarithm, in jobs of 10, load 50 % of the slots, dilation 1. Target on 2 cores:
99 % of all events handled within 20 ms of their time.
"""

import argparse
import json
import sys

import numpy as np

from actors.hosting.live import emulate_live
from actors.hosting.outcome import Observe
from actors.scheduler import resolve_parameters
from actors.schedulers.registry import find_scheduler
from actors.setting import Setting
from clusters.cluster import load_cluster
from emu.families.jobs.decision_latency import decision_latency_ns
from workloads.jobs import JobWorkload, make_workload

TARGET_S = 0.020
SHORTEST_S, LONGEST_S = 0.1, 10.0
TASKS_PER_JOB = 10


def log_uniform(nodes: int, load: float, seconds: float, seed: int = 1) -> JobWorkload:
    """Jobs that arrive at random for so many seconds, and load so many slots."""
    rng = np.random.default_rng(seed)
    mean_s = (LONGEST_S - SHORTEST_S) / np.log(LONGEST_S / SHORTEST_S)
    jobs = round(load * nodes * seconds / (mean_s * TASKS_PER_JOB))
    durations = np.exp(rng.uniform(np.log(SHORTEST_S), np.log(LONGEST_S), jobs * TASKS_PER_JOB))
    submit_s = np.sort(rng.uniform(0.0, seconds, jobs))
    return make_workload("log-uniform", submit_s, np.full(jobs, TASKS_PER_JOB), durations, short_cutoff_s=2.0)


def main() -> int:
    """Run once and print lateness, latency and the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scheduler", default="sparrow")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--dilation", type=float, default=1.0)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--json", action="store_true", help="print all measurements")
    options = parser.parse_args()
    workload = log_uniform(options.nodes, options.load, options.seconds)
    scheduler = find_scheduler(options.scheduler)
    cluster = load_cluster("homogeneous", options.nodes)
    setting = Setting(
        scheduler,
        resolve_parameters(scheduler, {}),
        workload,
        cluster,
        workload.short_cutoff_s or np.inf,
        0.9,
    )
    outcome = emulate_live(
        setting,
        Observe(timeline_period_s=1.0, tasks=True),
        partitions=options.partitions,
        dilation=options.dilation,
        in_process=options.in_process,
    )
    live, tasks = outcome.live, outcome.tasks
    assert live is not None
    assert tasks is not None
    arrays = workload.arrays()
    submit_ns = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    latency = decision_latency_ns(submit_ns, **tasks, slots=cluster.slots())
    print(
        f"{scheduler.name}: {options.nodes:,} nodes, {workload.num_tasks:,} tasks, {outcome.events:,} events"
        f" in {outcome.wall_s:.1f} s, {live['calls_per_s']:,.0f} Ray calls/s"
        f" of {live['messages_per_call']:.0f} messages"
    )
    print(f"{'ms':26s} {'p50':>8s} {'p90':>8s} {'p99':>8s} {'max':>8s}")
    rows = {f"lateness of {name}": spread for name, spread in live["lateness"].items()}
    rows["message latency"] = live["message_latency"]
    shares = ("p50", "p90", "p99", "max")
    rows["decision latency"] = dict(
        zip(shares, np.quantile(latency, (0.5, 0.9, 0.99, 1.0)) / 1e9, strict=True)
    )
    for name, spread in rows.items():
        print(f"{name:26s} " + " ".join(f"{1000 * spread[q]:8.2f}" for q in shares if q in spread))
    for part in live["partitions"]:
        print(f"{part['hosts']}: {part['cpu']:.0%} of a core, at most {part['backlog_max']} events behind")
    print(live["verdict"])
    for note in live["notes"]:
        print(f"note: {note}")
    if options.json:
        print(json.dumps(live, indent=1))
    return 0 if all(part["lateness"].get("p99", 0.0) <= TARGET_S for part in live["partitions"]) else 1


if __name__ == "__main__":
    sys.exit(main())
