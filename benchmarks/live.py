"""The clock `live`: how well its events keep time.

How to run: `python -m benchmarks.live [SECTION...]`
For debugging: `--seconds 10 --nodes 2000 --in-process`. Sections:

- ``tasks`` (the default) `[--nodes 50000] [--seconds 60] [--scheduler sparrow] [--mixed]`: many thousand nodes in
  Ray actors, paced by the wall clock. Tasks of 1 s (`--mixed`: 0.1 to 10 s, uniform in the logarithm) in jobs of 10,
  load 50 % of the slots, dilation 1. The goal on 2 idle cores: 99 % of all events of 50,000 nodes handled within 1 ms
  of their time; the program ends with 1 if it is missed.
- ``coflows`` `[--repeats 3] [--dilation 1] [--coordinators fifo,…]`: each coordinator by the wall clock beside its run
  in virtual time. Ten coflows on five ports of 128 MB/s arrive within 0.1 s, so that a few milliseconds count; those of
  coordinators that use deadlines have tight ones. A run by the wall clock and one in virtual time take turns, in
  threads of this process. Printed are medians: coflows served in time over those in virtual time, the mean coflow
  completion time over that in virtual time, and the lateness of events at the 99th percentile.
"""

import argparse
import sys
from statistics import median
from typing import Any

import numpy as np

from actors.environment import Pace
from actors.hosting.live import emulate_live
from actors.hosting.outcome import Observe, Outcome
from actors.hosting.runs import emulate
from actors.scheduler import needs_global_view, resolve_parameters
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Network, Setting, Switch
from benchmarks.measuring import run_sections, setting_of, show
from clusters.cluster import build_cluster
from emu.families.jobs.decision_latency import decision_latency_ns
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload, with_demands
from workloads.isolation import isolated_s, with_port_speeds
from workloads.jobs import JobWorkload, make_workload

TARGET_S = 0.001
SHORTEST_S, LONGEST_S = 0.1, 10.0
TASKS_PER_JOB = 10
COFLOWS, PORTS, SPEED, DELAY_S = 10, 5, 128e6, 0.001


def tasks_of(nodes: int, seconds: float, mixed: bool) -> JobWorkload:
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


def tasks(asked: argparse.Namespace) -> None:
    """Run once and print lateness, latency and the verdict."""
    workload = tasks_of(asked.nodes, asked.seconds, asked.mixed)
    setting = setting_of(asked.scheduler, workload, asked.nodes, long_partition=0.9, seed=0)
    watched = Observe(timeline_period_s=1.0, tasks=True)
    outcome = emulate_live(setting, watched, Pace(), in_process=asked.in_process)
    live, launched = outcome.live, outcome.tasks
    assert live is not None
    assert launched is not None
    arrays = workload.arrays()
    submit_ns = np.repeat(arrays.submit_ns, np.diff(arrays.first_task))
    latency = decision_latency_ns(submit_ns, **launched, slots=setting.cluster.slots())
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
    if any(part["lateness"].get("p99", 0.0) > TARGET_S for part in live["partitions"]):
        sys.exit(1)


def coflows_of(with_deadlines: bool) -> CoflowWorkload:
    """Return narrow and wide coflows of about a megabyte a flow; deadlines are 1 to 1.4 times what they take alone."""
    rng = np.random.default_rng(7)
    width = np.where(rng.random(COFLOWS) < 0.5, rng.integers(1, 5, COFLOWS), rng.integers(8, 15, COFLOWS))
    pairs = np.concatenate([rng.choice(PORTS * PORTS, k, replace=False) for k in width])
    size = rng.lognormal(13, 1, pairs.size).round() + 1
    arrival = np.cumsum(rng.exponential(0.008, COFLOWS))
    made = make_coflow_workload("brief", arrival, width, pairs // PORTS, pairs % PORTS, size, PORTS)
    if not with_deadlines:
        return made
    alone_s = isolated_s(with_port_speeds(made, SPEED))
    due_s = column(made.coflows, "arrival_s") + alone_s * rng.uniform(1.0, 1.4, COFLOWS) + 4 * DELAY_S
    return with_demands(made, deadline_s=due_s)


def served_and_mean(setting: Setting, outcome: Outcome) -> tuple[int, float]:
    """Return how many coflows were served, in time where they have a deadline, and their mean completion time, s."""
    arrays = setting.workload.arrays()
    served = outcome.finish_ns >= 0
    if setting.scheduler.uses_deadlines:
        served &= outcome.finish_ns <= arrays.deadline_ns
    took_ns = (outcome.finish_ns - arrays.arrival_ns)[served]
    return int(served.sum()), float(took_ns.mean()) / 1e9 if served.any() else float("nan")


def coflows(asked: argparse.Namespace) -> None:
    """Run each coordinator several times by both clocks, and print the ratios."""
    names = asked.coordinators or [
        name
        for name in scheduler_names(family="coflows")
        if not needs_global_view(find_scheduler(name), resolve_parameters(find_scheduler(name), {}))
    ]
    rows = [["", "served, virtual", "live / virtual", "CCT, live / virtual", "lateness, p99, ms"]]
    for name in names:
        workload = coflows_of(find_scheduler(name).uses_deadlines)
        more = {"short_cutoff_s": float("inf"), "network": Network(delay_s=DELAY_S), "switch": Switch(SPEED)}
        setting, found = setting_of(name, workload, build_cluster("ports", [1] * PORTS), seed=0, **more), []
        for _ in range(asked.repeats):
            virtual = served_and_mean(setting, emulate(setting, Observe(), in_process=True))
            outcome = emulate_live(setting, Observe(), Pace(dilation=asked.dilation), in_process=True)
            assert outcome.live is not None
            live = served_and_mean(setting, outcome)
            late_s = max(spread["p99"] for spread in outcome.live["lateness"].values())
            found.append((live[0] / max(virtual[0], 1), live[1] / virtual[1], 1000 * late_s))
        share, longer, late_ms = map(median, zip(*found, strict=True))
        rows.append([name, str(virtual[0]), f"{share:.2f}", f"{longer:.3f}", f"{late_ms:.2f}"])
    show("", rows)


def main() -> None:
    """Measure the sections that are asked for."""
    given: dict[str, Any] = {"scheduler": "sparrow", "mixed": False, "in_process": False, "coordinators": ()}
    sections = {"tasks": tasks, "coflows": coflows}
    run_sections(__doc__, sections, ["tasks"], seconds=60.0, nodes=50_000, repeats=3, dilation=1.0, **given)


if __name__ == "__main__":
    main()
