"""Fidelity: job times beside those of the Eagle authors' simulator, on the traces as that simulator sees them.

How to run: `python -m claims.eagle [--seeds 5] [--rules messages|peer|both] [--all]`
The folder with `traces/peer/` and `reference/eagle.csv` is `../shared` beside the repository, or EMU_SHARED.

A row is met if the mean over our seeds is within max(5 %, 3 · s · √(1/n + 1/m)) of the peer's mean: s is the peer's
relative spread over its seeds (pooled over the rows of the system where a row has one seed), n and m are our number of
seeds and the peer's. Overloaded rows (GOOG_subtrace below 11,760 nodes) are shown with --all and not judged.
"""

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from actors.hosting.partition import Observe
from actors.hosting.runs import emulate
from benchmarks.measuring import SHARED, Choice, options, setting_of
from workloads.catalogue import load_workload
from workloads.jobs import JobWorkload

STATISTICS = ("p50", "p90", "p99", "mean")
SCHEDULERS = {
    "Sparrow": "sparrow",
    "Hawk": "hawk",
    "Eagle": "eagle",
    "IdealEagle": "ideal-eagle",
    "CLWL": "central-lwl",
    "DLWL": "dist-lwl",
}
# The parameters that give the authors' rules, where the defaults go by messages or by the paper.
PEER_RULES: dict[str, dict[str, object]] = {
    "sparrow": {"replacement": True},
    "hawk": {"replacement": True, "late_binding": True, "instant_stealing": True},
    "eagle": {"replacement": True, "late_binding": True, "live_progress": True},
    "ideal-eagle": {"late_binding": True, "shortest_first": False},
    "central-lwl": {"late_binding": True},
    "dist-lwl": {"late_binding": True, "global_view": True},
}
LEAST_JUDGED_NODES = {"GOOG_subtrace": 11_760, "YH1_sub": 0}


@dataclass(frozen=True)
class Row:
    """One reference figure and ours."""

    trace: str
    nodes: int
    system: str
    job_class: str
    statistic: str
    peer: float
    ours: float
    tolerance: float

    @property
    def error(self) -> float:
        """Our relative difference."""
        return self.ours / self.peer - 1.0

    @property
    def is_met(self) -> bool:
        """Whether the difference is within the tolerance."""
        return abs(self.error) <= self.tolerance


def reference_rows(path: Path) -> dict[tuple[str, int, str, str], list[dict[str, float]]]:
    """(trace, nodes, system, class) -> the statistics of each seed, of the rows with first-in-first-out ties."""
    found = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["tie_rule"] == "fifo":
                key = (row["trace"], int(row["workers"]), row["system"], row["class"])
                found[key].append({name: float(row[name]) for name in STATISTICS})
    return dict(found)


def pooled_spread(reference: dict) -> dict[tuple[str, str, str], float]:
    """(system, class, statistic) -> root mean square of the relative spread over the rows with several seeds."""
    squares = defaultdict(list)
    for (_, _, system, job_class), seeds in reference.items():
        for name in STATISTICS:
            values = [s[name] for s in seeds]
            if len(values) > 1:
                squares[system, job_class, name].append((np.std(values, ddof=1) / np.mean(values)) ** 2)
    return {key: math.sqrt(np.mean(values)) for key, values in squares.items()}


@cache
def workload_of(trace: str) -> JobWorkload:
    """A trace as the authors' simulator sees it."""
    return load_workload(str(SHARED / "traces" / "peer" / f"{trace}.tr"))


def our_statistics(
    trace: str, nodes: int, system: str, seeds: int, peer_rules: bool
) -> dict[tuple[str, str], float]:
    """(class, statistic) -> the mean over seeds 1 to `seeds`; one seed is enough for what draws nothing."""
    workload, scheduler = workload_of(trace), SCHEDULERS[system]
    given = PEER_RULES[scheduler] if peer_rules else {}
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    finish_ns = set()
    for seed in range(1, seeds + 1):
        setting = setting_of(scheduler, workload, nodes, given, seed=seed)
        outcome = emulate(setting, Observe(), in_process=True)
        finish_ns.add(outcome.finish_ns.tobytes())
        if len(finish_ns) < seed:
            break
        jct_s = (outcome.finish_ns - workload.arrays().submit_ns) / 1e9
        for job_class, chosen in (("short", ~outcome.is_long), ("long", outcome.is_long)):
            values = jct_s[chosen]
            for name, value in zip(
                STATISTICS, (*np.percentile(values, [50, 90, 99]), values.mean()), strict=True
            ):
                sums[job_class, name].append(float(value))
    return {key: float(np.mean(values)) for key, values in sums.items()}


def compare(
    seeds: int, peer_rules: bool, judged_only: bool = True, systems: Collection[str] = tuple(SCHEDULERS)
) -> Iterator[Row]:
    """Every figure of the reference beside ours, of these systems."""
    reference = reference_rows(SHARED / "reference" / "eagle.csv")
    spread = pooled_spread(reference)
    runs = sorted({key[:3] for key in reference})
    for trace, nodes, system in runs:
        if system not in systems or (judged_only and nodes < LEAST_JUDGED_NODES[trace]):
            continue
        ours = our_statistics(trace, nodes, system, seeds, peer_rules)
        for job_class in ("short", "long"):
            values = reference[trace, nodes, system, job_class]
            for name in STATISTICS:
                peer = [v[name] for v in values]
                s = spread.get((system, job_class, name), 0.0)
                if len(peer) > 1:
                    s = float(np.std(peer, ddof=1) / np.mean(peer))
                tolerance = max(0.05, 3 * s * math.sqrt(1 / seeds + 1 / len(peer)))
                figures = float(np.mean(peer)), ours[job_class, name], tolerance
                yield Row(trace, nodes, system, job_class, name, *figures)


def render(rows: list[Row]) -> str:
    """A Markdown table: a line for each run and class, a cell for each statistic."""
    lines = [
        "| trace | nodes | system | class | p50 | p90 | p99 | mean |",
        "|---|--:|---|---|--:|--:|--:|--:|",
    ]
    for i in range(0, len(rows), len(STATISTICS)):
        group = rows[i : i + len(STATISTICS)]
        r = group[0]
        cells = [
            f"{r.ours:.1f} / {r.peer:.1f} ({r.error:+.1%}){'' if r.is_met else ' **off**'}" for r in group
        ]
        lines.append(f"| {r.trace} | {r.nodes:,} | {r.system} | {r.job_class} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table; exit code 1 if a judged row is off."""
    asked = options(__doc__, seeds=5, rules=Choice(("both", "messages", "peer")), all=False)
    if not (SHARED / "reference" / "eagle.csv").exists():
        print(f"no reference results in {SHARED}; name the folder with EMU_SHARED", file=sys.stderr)
        return 2
    wanted = {"messages": (False,), "peer": (True,), "both": (False, True)}[asked.rules]
    off = 0
    for peer_rules in wanted:
        rows = list(compare(asked.seeds, peer_rules, judged_only=not asked.all))
        judged = [r for r in rows if r.nodes >= LEAST_JUDGED_NODES[r.trace]]
        missed = [r for r in judged if not r.is_met]
        rules = "the rules of the authors' simulator" if peer_rules else "by messages (the defaults)"
        print(f"\n## {rules}: seconds, ours / peer\n")
        print(render(rows))
        print(f"\n{len(judged) - len(missed)} of {len(judged)} judged figures within their tolerance")
        for r in missed:
            print(
                f"  off: {r.trace} {r.nodes} {r.system} {r.job_class} {r.statistic}:"
                f" {r.error:+.1%}, tolerance {r.tolerance:.1%}"
            )
        off += len(missed)
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
