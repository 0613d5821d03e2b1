"""How well a live run of coflows keeps time: each coordinator by the wall clock beside its run in virtual time.

How to run: `python -m benchmarks.live_coflows [--repeats 3] [--dilation 1] [SCHEDULER ...]`
Ten coflows on five ports of 128 MB/s arrive within 0.1 s, so that a few milliseconds count; those of coordinators that
use deadlines have tight ones. A run by the wall clock and one in virtual time take turns, in threads of this process.
Printed are medians: coflows served in time over those in virtual time, the mean coflow completion time over that in
virtual time, and the lateness of events at the 99th percentile.
"""

from statistics import median

import numpy as np

from actors.environment import Pace
from actors.hosting.live import emulate_live
from actors.hosting.outcome import Outcome
from actors.hosting.partition import Observe
from actors.hosting.virtual import emulate
from actors.scheduler import needs_global_view, resolve_parameters
from actors.schedulers.registry import find_scheduler, scheduler_names
from actors.setting import Network, Setting, Switch
from benchmarks.measuring import options, setting_of, show
from clusters.cluster import build_cluster
from workloads.arrow import column
from workloads.coflows import CoflowWorkload, make_coflow_workload, with_demands
from workloads.isolation import isolated_s, with_port_speeds

COFLOWS, PORTS, SPEED, DELAY_S = 10, 5, 128e6, 0.001


def workload_of(with_deadlines: bool) -> CoflowWorkload:
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


def main() -> None:
    """Run each coordinator several times by both clocks, and print the ratios."""
    asked = options(__doc__, "schedulers", schedulers=(), repeats=3, dilation=1.0)
    names = asked.schedulers or [
        name
        for name in scheduler_names(family="coflows")
        if not needs_global_view(find_scheduler(name), resolve_parameters(find_scheduler(name), {}))
    ]
    rows = [["", "served, virtual", "live / virtual", "CCT, live / virtual", "lateness, p99, ms"]]
    for name in names:
        workload = workload_of(find_scheduler(name).uses_deadlines)
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


if __name__ == "__main__":
    main()
