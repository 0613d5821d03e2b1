"""Philae's paper (ATC 2019) beside ours: its speed-ups, what learning costs, its traces, its choices of parameters.

How to run: `python -m claims.philae [SECTION...] [--keep FOLDER]`; without sections, all of them
The trace is `traces/FB2010-1Hr-150-0.txt` in `../shared` beside the repository, or EMU_SHARED: 150 ports of 1 Gbps,
intervals of 8 ms, no delay, no costs. A speed-up is the other scheduler's completion time over Philae's: of the means
(average), and P50 and P90 of the ratios coflow by coflow. `--keep` keeps the runs, and goes on from those that are
there. `claims.philae_causes` has what moves these ratios.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.coflow_runs import Runs, Setting, cells, speedup, workload_of
from benchmarks.measuring import run_sections, show
from emu.families.coflows.metrics import BINS, estimate_error, in_group, learning_share
from emu.families.coflows.tables import job_speedups
from emu.families.coflows.tables import learning as learning_table
from emu.results.text_tables import TIMES
from workloads.arrow import optional_column

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
    for name, column in (("latencies", "learned_s"), ("bytes", "learned_bytes")):
        medians = [np.median(v[v > 0]) for v in (optional_column(r.coflows, column) for r in (aalo, own))]
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


SECTIONS: dict[str, Callable[[Runs], None]] = {
    section.__name__: section
    for section in (against, policies, traces, learning, worst, jobs, bins, pilots, sensitivity)
}


def main() -> None:
    """Run the benchmark."""
    run_sections(__doc__, SECTIONS, arguments=lambda asked: (Runs(asked.keep),), keep=Path)


if __name__ == "__main__":
    main()
