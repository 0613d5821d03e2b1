"""Philae's paper (ATC 2019) beside ours: its speed-ups, what learning costs, its traces, its choices of parameters.

How to run: `python -m claims.philae [SECTION...] [--keep FOLDER]`; without sections, all but the last three
The trace is `traces/FB2010-1Hr-150-0.txt` in `../shared` beside the repository, or EMU_SHARED: 150 ports of 1 Gbps,
intervals of 8 ms, no delay, no costs. A speed-up is the other scheduler's completion time over Philae's: of the means
(average), and P50 and P90 of the ratios coflow by coflow. `--keep` keeps the runs, and goes on from those that are
there. The last three sections:

- ``causes`` `[--claims CLAIM,...]`: what moves these speed-ups: each rule that the paper leaves open, or that its
  simulator has otherwise, in turn, in Philae, in the other scheduler or in both; a claim is a scheduler, or `mantri`.
- ``shuffles`` `[--seeds 5] [--slots 8,10,100] [--networks philae,sebf,fair]`: completion times of jobs around the
  coflows (section 8.2), with tasks that run. The paper takes each of 526 coflows for a job whose shuffle is a share of
  its time (61 % of the jobs below 25 %, and so on), and gives the time of a job under Aalo over that under Philae: 1.16
  in the median, 7.87 at the 90th percentile. Here `emu workload jobs` puts maps and reducers around each coflow with
  such shares, `drf` places them on 150 machines of so many slots, and a reducer fetches over ports of 1 Gbps. Where
  tasks run is the manager's, not the trace's: with few slots a shuffle lies on many machines and comes in waves, with
  many on few machines. Printed are mean and half-width of the 95 % interval over seeds, which draw the shares.
- ``testbed`` `[--price update,...] [--set-at 900] [--grid] [--measured] [--live]`: late schedules (section 9), with a
  coordinator whose work takes time. The paper does not say what a coordinator's work costs. One price (of an update
  received, of a flow's new rate, of a schedule sent, or all of these: update, flow, schedule, all) is set so that Aalo
  misses 16 % of its intervals at 150 ports (`--set-at 900`: 37 % there), and all else is predicted with it. Messages
  take 0.5 ms. 150 ports have intervals of 8 ms; 900 ports, the trace six times, of 48 ms. `--grid` shows how speed-ups
  move with the prices, `--measured` what our own coordinators cost. `--live` runs coordinator and agents by the wall
  clock, each in a Ray actor, with coflows that arrive from `--from` to `--to` seconds, by default two minutes: the
  whole trace takes 75 minutes a run.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import emu
from benchmarks.coflow_runs import EPOCH_S, TRACE, Runs, Setting, cells, quantised, speedup, workload_of
from benchmarks.measuring import Choice, run_sections, show
from emu.families.coflows.metrics import BINS, estimate_error, in_group, learning_share
from emu.families.coflows.tables import job_speedups
from emu.families.coflows.tables import learning as learning_table
from emu.results.metrics import confidence_95
from emu.results.text_tables import TIMES, with_error
from workloads.arrow import column, optional_column
from workloads.catalogue import load_workload
from workloads.transform import time_slice
from workloads.transform.shuffle_jobs import shuffle_jobs

PHILAE, AALO, ORACLE = Setting("philae"), Setting("aalo"), Setting("aalo-oracle")
Paper = tuple[float | None, float | None, float | None]
"""Average, P50 and P90 of the speed-up; None where the paper has no figure."""

# Figure 4(a), section 8.4.
AGAINST: dict[str, tuple[Setting, Paper]] = {
    "aalo": (AALO, (1.51, 1.78, 9.58)),
    "aalo-oracle": (ORACLE, (1.18, 1.40, None)),
    "sebf": (Setting("sebf"), (1.16, None, None)),
    "fifo": (Setting("fifo"), (3.16, 3.00, 77.96)),
    "fair": (Setting("fair"), (5.66, 70.82, 1947)),
    **{
        name: (Setting(name), (None, None, None))
        for name in ("scf", "ncf", "lcf", "sincronia", "aalo-shares", "saath", "pfp")
    },
}
# Table 3, over Aalo.
POLICIES: dict[str, Paper] = {
    "A": (1.40, 1.48, None),
    "B": (None, None, None),
    "C": (None, None, None),
    "D": (1.51, 1.78, 9.58),
}
# Section 8.4 and 8.5: trace, other scheduler, paper.
TRACES: list[tuple[str, str, Paper]] = [
    ("wide", "aalo", (1.54, None, None)),
    ("wide", "aalo-oracle", (1.15, None, None)),
    ("wide", "sebf", (1.12, None, None)),
    *((f"mantri-{seed}", "aalo", (1.36, 1.75, 12.0)) for seed in range(3)),
    *(  # figure 4(d) draws these, too; the text has no figure of them
        (f"{kind}-{seed}", other, (None, None, None))
        for kind in ("mantri", "mantriflows")
        for other in ("aalo-oracle", "sebf", "fifo", "fair")
        for seed in range(3)
    ),
    *((f"skew-{k}", "aalo", (p, None, None)) for k, p in enumerate((1.45, 1.44, 1.44, 1.40, 1.38), 1)),
]
# Table 2, where we have no figures of the paper's: it says that 5 % of the senders give the best reduction.
PILOTS: dict[str, dict[str, object]] = {
    **{f"{n}": {"pilots": "number", "pilot_number": n} for n in (1, 2, 5, 10, 20)},
    **{f"{s:.0%} of senders": {"pilot_share": s} for s in (0.01, 0.05, 0.10, 0.20, 0.50)},
    **{f"{s:.2%} of flows": {"pilots": "flows", "pilot_share": s} for s in (0.001, 0.005, 0.01, 0.05)},
    "5% of senders, random ports": {"pilot_ports": "random"},
}
HEAD = ["average", "paper", "P50", "paper", "P90", "paper"]


def beside(ours: tuple[float, float, float], paper: Paper) -> list[str]:
    """Our figures, each beside the paper's."""
    return [cell for pair in zip(ours, paper, strict=True) for cell in cells(pair)]


def against(runs: Runs) -> None:
    """Philae against every other scheduler (figure 4(a))."""
    base_s = runs.cct_s(PHILAE)
    rows = [
        ["philae against", *HEAD, "mean CCT, s"],
        ["(philae itself)", *["-"] * 6, *cells([base_s.mean()])],
    ]
    for name, (setting, paper) in AGAINST.items():
        other_s = runs.cct_s(setting)
        rows.append([name, *beside(speedup(base_s, other_s), paper), *cells([other_s.mean()])])
    show("Speed-up of Philae, all coflows", rows)


def policies(runs: Runs) -> None:
    """Policies A to D against Aalo (table 3)."""
    rows = [["policy", *HEAD, "mean CCT, s"]]
    for name, paper in POLICIES.items():
        own_s = runs.cct_s(PHILAE.but({"policy": name}))
        rows.append([name, *beside(speedup(own_s, runs.cct_s(AALO)), paper), *cells([own_s.mean()])])
    show("Speed-up of Philae's policies over Aalo", rows)


def traces(runs: Runs) -> None:
    """Philae on derived traces (sections 8.4, 8.5)."""
    rows = [["trace, against", *HEAD, "coflows"]]
    for trace, other, paper in TRACES:
        base_s = runs.cct_s(PHILAE.but(workload=trace))
        found = speedup(base_s, runs.cct_s(Setting(other, workload=trace)))
        rows.append([f"{trace}, {other}", *beside(found, paper), f"{len(base_s)}"])
    show("Speed-up of Philae on derived traces", rows)


def learning(runs: Runs) -> None:
    """What learning costs, and how good estimates are (section 8.2, figures 1 and 3)."""
    own, aalo = runs(PHILAE), runs(AALO)
    error = estimate_error(own.coflows)
    wide = np.isfinite(error)
    rows = [
        ["relative error of estimated sizes", "coflows", "mean", "std"],
        ["paper, all", "", "0.06", "0.15"],
    ]
    rows += [["paper, best 99%", "", "0.05", "0.12"], ["paper, best 95%", "", "0.03", "0.07"]]
    all_of = np.where(wide, error, 0.0)
    for name, values in (("wide", np.sort(error[wide])), ("all, thin ones as known", np.sort(all_of))):
        for share in (1.0, 0.99, 0.95):
            best = values[: round(share * len(values))]
            rows.append([f"{name}, best {share:.0%}", f"{len(best)}", *cells([best.mean(), best.std()], 3)])
    show("Estimates", rows)

    rows = [["share of the CCT that learning took", "ours", "paper"]]
    for name, result, below, paper in (("philae", own, 0.01, "63 %"), ("aalo", aalo, 0.22, "63 %")):
        taken = np.nan_to_num(learning_share(result.coflows))
        had_to = taken > 0
        rows.append([f"{name}: all coflows, share below {below:.0%}", f"{(taken < below).mean():.1%}", paper])
        rows.append([f"{name}: those that had to be learned", f"{(taken[had_to] < below).mean():.1%}", paper])
    late = np.nan_to_num(learning_share(aalo.coflows))
    rows.append(
        [
            "aalo: moved beyond the first queue, share above 20%",
            f"{(late[late > 0] > 0.2).mean():.1%}",
            "40 %",
        ]
    )
    pair = {"philae": [own], "aalo": [aalo]}
    ratios = learning_table(pair, 0.0).means(pair)["aalo"]
    rows.append(
        [
            "median of the ratio of latencies, aalo over philae",
            *cells([ratios[f"time {TIMES} P50"][0]]),
            "19.0",
        ]
    )
    rows.append(["median of the ratio of bytes", *cells([ratios[f"bytes {TIMES} P50"][0]]), "20.0"])
    for name, kept in (("latencies", "learned_s"), ("bytes", "learned_bytes")):
        medians = [np.median(v[v > 0]) for v in (optional_column(r.coflows, kept) for r in (aalo, own))]
        rows.append([f"ratio of median {name}", *cells([medians[0] / medians[1]]), ""])
    show("Learning", rows)


def worst(runs: Runs) -> None:
    """The skew of the coflows whose sizes were estimated worst, by two measures of an error (section 8.2)."""
    coflows = runs(PHILAE).coflows
    error = np.nan_to_num(estimate_error(coflows))
    times = optional_column(coflows, "estimated_bytes") / optional_column(coflows, "size_bytes")
    arrays = workload_of("facebook").arrays()
    flows = np.split(arrays.size_bytes, arrays.first_flow[1:-1])
    skew = np.array([one.std() / one.mean() for one in flows])
    off = np.nan_to_num(np.abs(np.log(times)))  # a tenth is as wrong as ten times
    rows = [["worst 1% by", "skew of flow lengths", "estimate over size"]]
    measures = {"relative error": error, "factor": off, "(the most skewed)": skew}
    for name, measure in measures.items():
        chosen = np.argsort(measure)[::-1][: round(0.01 * len(flows))]
        rows.append([name, *(", ".join(cells(values[chosen])) for values in (skew, times))])
    show("Standard deviation of flow lengths over their mean; paper: 4.6 to 6.8 in the worst 1 %", rows)


def jobs(runs: Runs) -> None:
    """Completion times of jobs that shuffle by a coflow each (section 9.2)."""
    found = []
    for seed in range(20):
        first, other = runs(PHILAE), runs(AALO)
        first.summary["seed"] = seed
        found.append(np.percentile(job_speedups(first, other, 0.0), [50, 90]))
    p50, p90 = np.mean(found, axis=0)
    low, high = np.min(found, axis=0), np.max(found, axis=0)
    rows = [["jobs, over Aalo", "ours", "20 draws of shares", "paper"]]
    rows.append(["P50", *cells([p50], 3), f"{low[0]:.3f} to {high[0]:.3f}", "1.16"])
    rows.append(["P90", *cells([p90]), f"{low[1]:.2f} to {high[1]:.2f}", "7.87"])
    show("Job completion", rows)


def bins(runs: Runs) -> None:
    """Speed-up over Aalo by width and size (table 4, figure 5)."""
    own = runs(PHILAE)
    base_s, other_s = runs.cct_s(PHILAE), runs.cct_s(AALO)
    rows = [["bin", "coflows", "average", "P50", "P90", "faster", "equal (1%)", "slower", "mean CCT, s"]]
    for name, what in BINS.items():
        mask = in_group(own.coflows, name)
        ratio = other_s[mask] / base_s[mask]
        shares = ((ratio > 1.01).mean(), (np.abs(ratio - 1) <= 0.01).mean(), (ratio < 0.99).mean())
        figures = cells(speedup(base_s[mask], other_s[mask]))
        rows.append([f"{name}: {what}", f"{mask.sum()}", *figures, *(f"{s:.0%}" for s in shares)])
        rows[-1] += cells([base_s[mask].mean()])
    show(
        "Speed-up over Aalo by bin; paper: all of bins 1 and 3 are faster, most of the slower ones are in bin 2",
        rows,
    )


def pilots(runs: Runs) -> None:
    """How many pilots (table 2)."""
    rows = [["pilots", "error", "average", "P50", "P90", "pilots in all", "mean CCT, s"]]
    for name, given in PILOTS.items():
        result = runs(PHILAE.but(given))
        own_s = optional_column(result.coflows, "cct_s")
        error = result.summary["coflows"]["estimates"]["mean"]
        count = f"{result.counters.get('pilots', 0):,}"
        rows.append([name, *cells([error], 3), *cells(speedup(own_s, runs.cct_s(AALO))), count])
        rows[-1] += cells([own_s.mean()])
    show("Pilots: mean error over wide coflows, and speed-up over Aalo", rows)


def sensitivity(runs: Runs) -> None:
    """Thin limit, first limit, growth of the limits (figure 7)."""
    rows = [["thin limit", "average", "P50", "P90"]]
    for limit in (0, 1, 3, 5, 7, 10, 15, 20):
        own_s = runs.cct_s(PHILAE.but({"thin_limit": limit}))
        rows.append([f"{limit}", *cells(speedup(own_s, runs.cct_s(AALO)))])
    show("Figure 7(a): speed-up over Aalo by thin limit; paper: average level, P50 rises up to 7", rows)
    for name, values, paper in (
        ("first_limit_bytes", [m << 20 for m in (2, 4, 8, 10, 16, 32, 64)], "within 8 % of that at 10 MB"),
        ("factor", [2.0, 4.0, 8.0, 10.0, 16.0, 32.0, 64.0], "small factors are better"),
    ):
        rows = [
            [name, "over aalo with 10 MB, 10", "over aalo with the same", "P50 with the same", "mean CCT, s"]
        ]
        for value in values:
            own_s = runs.cct_s(PHILAE.but({name: value}))
            same = speedup(own_s, runs.cct_s(AALO.but({name: value})))
            default = speedup(own_s, runs.cct_s(AALO))[0]
            rows.append([f"{value:,}", *cells([default, same[0], same[1], own_s.mean()])])
        show(f"Figure 7(b, c): average speed-up by {name}; paper: {paper}", rows)


# What moves the speed-ups.

NOT_CONSERVING = {"work_conservation": False}
SOME_STARVE = {"least_intervals": 0}
"""Slots as Philae's authors simulate them: queues whose slot comes to less than an interval have none."""
STEPPED = {**SOME_STARVE, "decide": "interval"}
AUTHORS = {**NOT_CONSERVING, **STEPPED, "count_itself": True}
"""Philae's parameters nearest to what its authors simulate, under policy D; `STEPPED` are those of every policy."""
PEER_PORT = {"fabric_port_speed": 134_217_000 * 8}
QUEUED = ("aalo", "aalo-oracle")


class Rule(NamedTuple):
    """What differs from the settings of the claim."""

    name: str
    philae: Mapping[str, Any] = {}
    other: Mapping[str, Any] = {}
    workload: str = "facebook"
    keys: Mapping[str, Any] = {}
    step_s: float = 0.0  # completion times are rounded up to multiples of it
    only_wide: bool = False  # thin coflows are not counted
    from_arrival: bool = False  # coflows that begin early are timed from their arrival in the trace


def both(name: str, given: Mapping[str, Any]) -> Rule:
    """A rule of both schedulers."""
    return Rule(name, given, given)


PHILAE_RULES = [
    Rule("philae: count_itself", {"count_itself": True}),
    Rule("philae: no work conservation", NOT_CONSERVING),
    Rule("philae: decides at intervals", {"decide": "interval"}),
    Rule("philae: decides at every end of a flow too", {"decide": "flow-ends"}),
    Rule("philae: as its authors simulate", AUTHORS),
    Rule("philae: policy A", {"policy": "A"}),
    Rule("philae: size_correction", {"size_correction": True}),
    Rule("philae: strict priority", {"starvation": "strict"}),
    Rule("only wide coflows counted", only_wide=True),
]
COMMON_RULES = [
    Rule("CCT rounded up to 8 ms", step_s=0.008),
    Rule("coflows begin up to 10.24 s early", workload="early-facebook"),
    Rule("the same, and timed from their arrival", workload="early-facebook", from_arrival=True),
    Rule("ports of 134,217 bytes/ms", keys=PEER_PORT),
    Rule("ports of 500 Mbps", keys={"fabric_port_speed": "500 Mbps"}),
    Rule("ports of 250 Mbps", keys={"fabric_port_speed": "250 Mbps"}),
]
OF_MESSAGES = Rule("messages take 0.5 ms", keys={"network_delay": "0.5 ms"})
QUEUE_RULES = [
    both("both: strict priority", {"starvation": "strict"}),
    Rule("other: strict priority", other={"starvation": "strict"}),
    both("both: no slots of less than an interval", SOME_STARVE),
    both("both: slots of 16 intervals", {"slot_intervals": 16}),
    both("both: slots of 2560 intervals", {"slot_intervals": 2560}),
    both("both: slots half as long a queue", {"share": 2}),
    both("both: first limit 10^7 bytes", {"first_limit_bytes": 10_000_000}),
    Rule("other: intervals of 1 ms", other={"interval_s": 0.001}),
    Rule("other: intervals of 100 ms", other={"interval_s": 0.1, "slot_intervals": 20}),
    Rule("other: intervals of 1 s", other={"interval_s": 1.0, "slot_intervals": 2}),
]
RULES_OF: dict[str, list[Rule]] = {
    "sebf": [Rule("other: greedy rates", other={"rates": "greedy"})],
    "fifo": [
        Rule("other: greedy rates", other={"rates": "greedy"}),
        Rule("philae: policy C", {"policy": "C"}),
    ],
}


MANTRI_RULES = [
    Rule("as the paper", workload="mantri-0"),
    Rule("philae: pilots at 30 % of the senders", {"pilot_share": 0.3}, workload="mantri-0"),
    Rule("philae: 1 % of the flows", {"pilots": "flows", "pilot_share": 0.01}, workload="mantri-0"),
    Rule("philae: pilots at random ports", {"pilot_ports": "random"}, workload="mantri-0"),
    Rule("philae: policy A", {"policy": "A"}, workload="mantri-0"),
    Rule("both: strict priority", {"starvation": "strict"}, {"starvation": "strict"}, "mantri-0"),
    Rule("another draw of the skew", workload="mantri-1"),
    Rule("another draw of the skew", workload="mantri-2"),
    Rule("flows vary, not senders, 0", workload="mantriflows-0"),
    Rule("flows vary, not senders, 1", workload="mantriflows-1"),
    Rule("flows vary, not senders, 2", workload="mantriflows-2"),
]
CLAIMS: dict[str, tuple[Setting, Paper]] = {
    **{name: AGAINST[name] for name in ("aalo", "aalo-oracle", "sebf", "fifo", "fair")},
    "mantri": (AALO, (1.36, 1.75, 12.0)),
}


def rules_for(other: str) -> list[Rule]:
    """What is tried on a claim."""
    if other == "mantri":
        return MANTRI_RULES
    own = QUEUE_RULES if other in QUEUED else RULES_OF.get(other, [])
    coordinated = [] if other == "fair" else [OF_MESSAGES]
    return [Rule("as the paper"), *PHILAE_RULES, *own, *COMMON_RULES, *coordinated]


def figures(runs: Runs, rule: Rule, other: Setting) -> tuple[float, float, float]:
    """Philae's speed-up over another scheduler under a rule."""
    pair = (PHILAE.but(rule.philae), other.but(rule.other))
    first_s, other_s = (runs.cct_s(s.but(workload=rule.workload, **rule.keys)) for s in pair)
    if rule.step_s:
        first_s, other_s = quantised(first_s, rule.step_s), quantised(other_s, rule.step_s)
    if rule.from_arrival:
        begun_s, arrival_s = (
            column(workload_of(w).coflows, "arrival_s") for w in (rule.workload, "facebook")
        )
        assert (arrival_s - begun_s).max() <= EPOCH_S + 1e-9
        ended = (first_s > arrival_s - begun_s) & (other_s > arrival_s - begun_s)
        first_s, other_s = ((s - (arrival_s - begun_s))[ended] for s in (first_s, other_s))
    if rule.only_wide:
        wide = column(workload_of(rule.workload).coflows, "width") > 7
        first_s, other_s = first_s[wide], other_s[wide]
    return speedup(first_s, other_s)


def claim(runs: Runs, name: str) -> None:
    """Print what moves a speed-up."""
    setting, paper = CLAIMS[name]
    rows = [["rule", "average", "P50", "P90"], ["(the paper)", *cells(paper)]]
    rows += [[rule.name, *cells(figures(runs, rule, setting))] for rule in rules_for(name)]
    show(f"{name}: what moves Philae's speed-up over {setting.scheduler}", rows)


def causes(runs: Runs, asked: argparse.Namespace) -> None:
    """What moves each claim."""
    for name in asked.claims or CLAIMS:
        claim(runs, name)


# Jobs around the coflows.

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


def shuffles(runs: Runs, asked: argparse.Namespace) -> None:
    """Completion times of jobs around the coflows."""
    rows = [["slots", "under Aalo over", "P50", "P90", "means"]]
    for slots in asked.slots:
        rows += [line(slots, network, asked.seeds) for network in asked.networks]
    show("completion times of the jobs around 526 coflows (paper, Philae: P50 1.16, P90 7.87)", rows)


# The testbed.

DELAY = "0.5 ms"
NEAR = 0.01  # what is missed, beside the paper's
PRICES: dict[str, tuple[str, ...]] = {
    "update": ("cost_per_update",),
    "flow": ("cost_per_flow",),
    "schedule": ("cost_per_schedule",),
    "all": ("cost_per_update", "cost_per_flow", "cost_per_schedule"),
}
GRID_US = (0, 10, 20, 40, 80)
# By ports and scheduler: missed intervals, agents heard, intervals without new rates. Section 9.3.
PAPER_INTERVALS: dict[tuple[int, str], tuple[float | None, float | None, float | None]] = {
    (150, "aalo"): (0.16, None, None),
    (150, "philae"): (0.01, None, None),
    (900, "aalo"): (0.37, 429, None),
    (900, "philae"): (0.10, 49, 0.66),
}
PAPER_SPEEDUP: dict[str, tuple[float | None, float | None, float | None]] = {
    "150": (1.50, 1.63, 8.00),
    "900": (2.72, None, 9.78),
    "wide": (1.52, None, None),
}


def priced(
    scheduler: str, price: str, us: float, ports: int = 150, wide: bool = False, **keys: Any
) -> Setting:
    """A run of the testbed with a price in microseconds."""
    workload = "wide" if wide else "facebook" if ports == 150 else f"ports-{ports}"
    costs = {"cost_model": "fixed", **dict.fromkeys(PRICES[price], f"{us:.4g} us")} if us > 0 else {}
    return Setting(
        scheduler, {"interval_s": 0.008 * ports / 150}, workload, {"network_delay": DELAY, **costs, **keys}
    )


def coordinator(runs: Runs, setting: Setting) -> dict[str, float]:
    """What was missed and heard in an interval, and how busy the coordinator was."""
    found: dict[str, float] = runs(setting).summary["coordinator"]
    return found


def calibrate(runs: Runs, price: str, ports: int) -> float | None:
    """The price, us, at which Aalo misses as many of its intervals as in the paper; None: none does."""
    aim, low, high = aim_at(ports), 1.0, 512.0
    while True:
        us = float(f"{math.sqrt(low * high):.3g}")
        missed = coordinator(runs, priced("aalo", price, us, ports))["missed"]
        print(f"  {price}: {us:g} us, {missed:.1%} missed", flush=True)
        if abs(missed - aim) <= NEAR or (high < 512 and high / low < 1.02):
            return us
        if high / low < 1.02:
            return None
        low, high = (us, high) if missed < aim else (low, us)


def aim_at(ports: int) -> float:
    """The share of its intervals that Aalo misses in the paper."""
    missed = PAPER_INTERVALS[ports, "aalo"][0]
    assert missed is not None
    return missed


def predict(runs: Runs, price: str, us: float, ports: list[int]) -> None:
    """Everything else with that price."""
    rows = [["", "missed", "paper", "agents heard", "paper", "without new rates", "paper", "mean CCT, s"]]
    speed = [["trace", "average", "paper", "P50", "paper", "P90", "paper"]]
    for count in ports:
        pair = [runs.cct_s(priced(name, price, us, count)) for name in ("philae", "aalo")]
        for name, cct_s in zip(("philae", "aalo"), pair, strict=True):
            found = coordinator(runs, priced(name, price, us, count))
            missed, heard, without = PAPER_INTERVALS[count, name]
            row = [f"{name}, {count} ports", f"{found['missed']:.1%}", share(missed)]
            row += [
                *cells([found["agents_heard"], heard], 1),
                f"{found['without_rates']:.1%}",
                share(without),
            ]
            rows.append([*row, *cells([cct_s.mean()])])
        speed.append(ratios(f"{count} ports", pair, str(count)))
    wide = [runs.cct_s(priced(name, price, us, wide=True)) for name in ("philae", "aalo")]
    speed.append(ratios("wide-only, 150 ports", wide, "wide"))
    show(f"Intervals, {us:g} us for each {price}", rows)
    show(f"Speed-up of Philae over Aalo, {us:g} us for each {price}", speed)


def ratios(name: str, pair: list[Any], paper: str) -> list[str]:
    """A row of speed-ups beside the paper's."""
    both = zip(speedup(*pair), PAPER_SPEEDUP[paper], strict=True)
    return [name, *(cell for one in both for cell in cells(one))]


def share(value: float | None) -> str:
    """A share as text."""
    return "-" if value is None else f"{value:.0%}"


def grid(runs: Runs) -> None:
    """How speed-ups at 150 ports move with each price."""
    rows = [["price, us", "aalo misses", "philae misses", "average", "P50", "P90", "aalo, s", "philae, s"]]
    for price in PRICES:
        for us in GRID_US:
            pair = [priced(name, price, us) for name in ("philae", "aalo")]
            cct_s = [runs.cct_s(setting) for setting in pair]
            missed = [coordinator(runs, setting)["missed"] for setting in pair]
            rows.append([f"{price} {us}", f"{missed[1]:.1%}", f"{missed[0]:.1%}", *cells(speedup(*cct_s))])
            rows[-1] += cells([cct_s[1].mean(), cct_s[0].mean()])
    show("150 ports", rows)


def measured(runs: Runs, ports: list[int]) -> None:
    """The same with what our own coordinators' handlers take."""
    rows = [["", "missed", "agents heard", "without new rates", "mean CCT, s", "average", "P50", "P90"]]
    for count in ports:
        pair = [priced(name, "all", 0, count, cost_model="measured") for name in ("philae", "aalo")]
        cct_s = [runs.cct_s(setting) for setting in pair]
        for setting, own_s in zip(pair, cct_s, strict=True):
            found = coordinator(runs, setting)
            row = [
                f"{setting.scheduler}, {count} ports",
                f"{found['missed']:.2%}",
                *cells([found["agents_heard"]], 1),
            ]
            rows.append(
                [*row, f"{found['without_rates']:.1%}", *cells([own_s.mean(), *speedup(cct_s[0], own_s)])]
            )
    show("Costs as measured of our own coordinators; speed-up of Philae", rows)


def breakdown(runs: Runs, ports: list[int]) -> None:
    """The coordinator's CPU time in an interval, by part (table 6), as measured of our own handlers.

    Updates of agents that report at every interval are counted and are not messages here: what it would take to
    receive them is not in these times, but in the number of agents heard.
    """
    rows = [
        ["us an interval", "in all", "flows' ends", "new rates", "arrivals", "agents heard", "rates sent"]
    ]
    for count in ports:
        for name in ("philae", "aalo"):
            setting = priced(name, "all", 0, count, cost_model="measured")
            result, found = runs(setting), coordinator(runs, setting)
            assert result.costs is not None
            costs_us = optional_column(result.costs, "cost_ns") / 1e3
            kinds = np.array(result.costs["message"].to_pylist())
            parts = [costs_us[kinds == kind].sum() for kind in ("FLOW_DONE", "DECIDE", "REGISTER")]
            figures = [part / found["intervals"] for part in (costs_us.sum(), *parts)]
            sent = result.counters["rates"] / found["intervals"]
            rows.append([f"{name}, {count} ports", *cells([*figures, found["agents_heard"], sent])])
    show("CPU time of our own coordinators", rows)


def by_the_wall_clock(ports: list[int], from_s: float, to_s: float) -> None:
    """The same coordinators in the clock `live`, beside `virtual` with costs as measured."""
    rows = [["", "intervals", "missed", "agents heard", "without new rates", "handlers, us", "process, us"]]
    rows[0] += ["memory, MB", "late p50, ms", "p99", "max", "mean CCT, s", "virtual", "CCT ratio P50", "P99"]
    for count in ports:
        workload = time_slice(workload_of("facebook" if count == 150 else f"ports-{count}"), from_s, to_s)
        for name in ("philae", "aalo"):
            setting = priced(name, "all", 0, count)
            asked: dict[str, Any] = {"parameters": dict(setting.parameters), "fabric_port_speed": "1 Gbps"}
            asked |= setting.keys
            virtual = emu.run(name, workload, in_process=True, **asked, cost_model="measured")
            live = emu.run(name, workload, clock="live", **asked)
            both_s = [optional_column(result.coflows, "cct_s") for result in (live, virtual)]
            found, measured = live.summary["coordinator"], live.summary["live"]
            of_coordinator = measured["partitions"][-1]
            row = [f"{name}, {count} ports", f"{found['intervals']:,}", f"{found['missed']:.2%}"]
            row += [*cells([found["agents_heard"]], 1), f"{found['without_rates']:.1%}"]
            process_us = of_coordinator["cpu"] * setting.parameters["interval_s"] * 1e6
            row += cells([found["work_s"] * 1e6, process_us, of_coordinator["peak_rss_mb"]], 1)
            row += cells([1000 * measured["lateness"]["schedulers"][q] for q in ("p50", "p99", "max")])
            row += cells([own_s.mean() for own_s in both_s])
            rows.append([*row, *cells(np.percentile(both_s[0] / both_s[1], [50, 99]).tolist(), 4)])
            print(f"{row[0]}: {measured['verdict']}", flush=True)
    show("By the wall clock; CPU time of the coordinator in an interval, and lateness of its events", rows)


def testbed(runs: Runs, asked: argparse.Namespace) -> None:
    """A coordinator whose work takes time."""
    for price in asked.price:
        us = calibrate(runs, price, asked.set_at)
        if us is None:
            print(f"no price of {price} makes Aalo miss {aim_at(asked.set_at):.0%} of its intervals")
        else:
            predict(runs, price, us, asked.ports)
    if asked.grid:
        grid(runs)
    if asked.measured:
        measured(runs, asked.ports)
        breakdown(runs, asked.ports)
    if asked.live:
        by_the_wall_clock(asked.ports, getattr(asked, "from"), asked.to)


SECTIONS: dict[str, Callable[[Runs, argparse.Namespace], None]] = {
    section.__name__: lambda runs, asked, section=section: section(runs)
    for section in (against, policies, traces, learning, worst, jobs, bins, pilots, sensitivity)
}
MORE = {"causes": causes, "shuffles": shuffles, "testbed": testbed}


def main() -> None:
    """Run the sections that are asked for."""
    given: dict[str, Any] = {"claims": (), "seeds": 5, "slots": (8, 10, 100)}
    given |= {"networks": ("philae", "sebf", "fair"), "price": (), "set_at": Choice((150, 900))}
    given |= {"grid": False, "measured": False, "live": False, "from": 300.0, "to": 420.0}
    given |= {"ports": (150, 900), "keep": Path}
    run_sections(__doc__, SECTIONS | MORE, tuple(SECTIONS), lambda asked: (Runs(asked.keep), asked), **given)


if __name__ == "__main__":
    main()
