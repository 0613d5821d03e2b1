"""The workloads of Hawk and Eagle, made of what is published of four traces: Yahoo, Cloudera, Facebook, Google.

Each is data, a `ClusteredTrace`; `workloads.generators.clustered` has the recipe.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypedDict

import numpy as np

from workloads.arrow import column
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.clustered import (
    LEVELS,
    ClassShape,
    ClusteredTrace,
    JobCluster,
    as_measured,
    generate,
)
from workloads.hints import did_you_mean
from workloads.jobs import Float64Array, Int64Array, JobWorkload
from workloads.published_cutoffs import known_trace


class _Classes(TypedDict):
    short_cutoff_s: float
    long_partition: float


def _classes(trace: str) -> _Classes:
    """Return the published cut-off and long partition of a trace."""
    short_cutoff_s, long_partition = known_trace(trace) or (0.0, 0.0)
    return {"short_cutoff_s": short_cutoff_s, "long_partition": long_partition}


# The Yahoo workload of Hawk and Eagle: 24,262 jobs of 8 published clusters, most of them short.

# Jobs, then map and reduce task-seconds of the centroid (Chen et al., MASCOTS 2011).
_YAHOO_CLUSTERS = (
    JobCluster(21981, 412 + 740),
    JobCluster(838, 270376 + 589385),
    JobCluster(91, 983998 + 1425941),
    JobCluster(7, 257567 + 979181),
    JobCluster(35, 4481926 + 1663358),
    JobCluster(5, 33606055 + 31884004),
    JobCluster(1303, 15021 + 13614),
    JobCluster(2, 7729409 + 8305880),
)

# Measured on an excerpt of 2,910 jobs of the trace that Hawk and Eagle used.
YAHOO = ClusteredTrace(
    name="yahoo",
    clusters=_YAHOO_CLUSTERS,
    short=ClassShape(
        num_tasks=(1, 1, 2, 3, 7, 15, 29, 49, 63, 100, 1324),
        mean_task_s=(0.0, 0.5, 1.5, 2.6, 5.6, 13.5, 26.7, 42.5, 54.4, 77.5, 90.6),
        cv=(0.00, 0.00, 0.01, 0.13, 0.22, 0.33, 0.49, 0.62, 0.69, 0.85, 1.24),
    ),
    long=ClassShape(
        num_tasks=(1, 1, 2, 3, 8, 24, 250, 742, 1117, 2068, 3035),
        mean_task_s=(91.7, 94.9, 113.9, 155.5, 334.6, 716.6, 1471.4, 2622.8, 3932.8, 6331.7, 17332.2),
        cv=(0.00, 0.00, 0.00, 0.02, 0.03, 0.05, 0.07, 0.11, 0.12, 0.19, 0.24),
    ),
    **_classes("yahoo"),
    source="clusters: Chen et al., MASCOTS 2011; quantiles: excerpt of the trace of Hawk (ATC 2015)",
    tasks=968_335,
    long_jobs=0.0941,
    long_task_seconds=0.9831,
)
DURATIONS = ("work", "trace")


def yahoo(
    *,
    jobs: int = 24262,
    seed: int = DEFAULT_SEED,
    load: float = 0.9,
    nodes: int = 15000,
    arrivals: str = Arrivals.process,
    burst_ratio: float = Arrivals.burst_ratio,
    burst_jobs: float = Arrivals.burst_jobs,
    period_s: float = Arrivals.period_s,
    amplitude: float = Arrivals.amplitude,
    durations: str = "work",
) -> JobWorkload:
    """Return jobs drawn from the published clusters of Yahoo and the measured quantiles of its trace.

    Parameters
    ----------
    jobs, seed, load, nodes, arrivals, burst_ratio, burst_jobs, period_s, amplitude
        As in `workloads.generators.clustered.generate`.
    durations : str
        ``work``: task-seconds as published, so that tasks last longer than in the excerpt of the trace; or ``trace``:
        durations as measured in the excerpt, so that jobs have less work than published.

    Raises
    ------
    InputError
        A parameter is out of its range.

    Notes
    -----
    At the published size task-seconds are the clusters' 1.586e9, 98.4 % of them in the 9.40 % of jobs
    outside the small cluster (Hawk states 98.31 % and 9.41 %), and the cut-off separates these except for a
    few jobs. Tasks come within about 3 % of the 968,335 of the trace Hawk used. Durations are adapted:
    the clusters have 2.3 times the work a job that the excerpt has, so that the median of the mean duration
    is 55 s in short and 2,200 s in long jobs, where the excerpt has 13.5 s and 717 s. The longest tasks
    outlast the arrivals: about an eighth of the work is done after the last of them.

    With ``durations="trace"`` these medians, and all other quantiles of tasks and mean durations, are the
    excerpt's. Then a job has about 24,000 task-seconds in the mean, where the clusters say 65,357 and the
    excerpt has 28,618: a few jobs of thousands of long tasks make that mean. Long jobs have 98.4 % of them, as
    in the excerpt.
    `workloads.generators.clustered` has the recipe, `closeness` the comparison.
    """
    if durations not in DURATIONS:
        hint = did_you_mean(durations, DURATIONS)
        raise InputError(f"{durations!r} is neither 'work' nor 'trace'{hint}", field="durations")
    return generate(
        YAHOO if durations == "work" else as_measured(YAHOO),
        jobs=jobs,
        seed=seed,
        load=load,
        nodes=nodes,
        arrivals=arrivals,
        burst_ratio=burst_ratio,
        burst_jobs=burst_jobs,
        period_s=period_s,
        amplitude=amplitude,
    )


# The Cloudera-c workload of Hawk and Eagle: 21,030 jobs of 6 published clusters.
#
# What stands in. No excerpt of the trace is public. The quantiles are Yahoo's, the other MapReduce cluster
# of the same studies, with durations relative to the cut-off: 272.783 s here, 90.5811 s there. In short
# jobs durations are those of the workload ``yahoo``, which its clusters have moved towards the cut-off; in
# long jobs they are the excerpt's, as the same move would make tasks that last for days.
#
# Numbers of tasks are adapted: a short job has 17,519 task-seconds, so that it has 64 tasks or more if its tasks
# stay below the cut-off, where Yahoo's have 23. `workloads.generators.clustered` has the recipe.

# Jobs, then map and reduce task-seconds of the centroid (Chen et al., PVLDB 2012, customer c).
_CLOUDERA_CLUSTERS = (
    JobCluster(19_975, 10_933 + 6586),
    JobCluster(477, 1_927_432 + 462_070),
    JobCluster(246, 569_391 + 158_930),
    JobCluster(197, 1_895_403 + 886_347),
    JobCluster(105, 14_865_972 + 369_846),
    JobCluster(23, 9_779_062 + 14_989_871),
    JobCluster(7, 66_839_710 + 758_957),
)

# The power at which Yahoo's short quantiles have the work of Yahoo's small cluster (`clustered` finds it).
_SHORT_POWER = 0.301

CLOUDERA_C = ClusteredTrace(
    name="cloudera-c",
    clusters=_CLOUDERA_CLUSTERS,
    short=YAHOO.short.at_cutoff(YAHOO.short_cutoff_s, _classes("cloudera")["short_cutoff_s"], _SHORT_POWER),
    long=YAHOO.long.at_cutoff(YAHOO.short_cutoff_s, _classes("cloudera")["short_cutoff_s"]),
    **_classes("cloudera"),
    source="clusters: Chen et al., PVLDB 5(12), 2012; quantiles: excerpt of Yahoo's trace, at this cut-off",
    stand_in="no quantiles are published: Yahoo's stand in, durations relative to the cut-off, in short jobs "
    "those of the workload yahoo; numbers of tasks give way to the clusters",
    keeps="durations",
    quantiles="stand-in",
    long_jobs=0.0502,
    long_task_seconds=0.9279,
)

cloudera_c = partial(generate, CLOUDERA_C, jobs=CLOUDERA_C.num_jobs)
cloudera_c.__doc__ = (
    "Return jobs drawn from the published clusters of Cloudera's customer c and the quantiles of Yahoo."
)


# The Facebook 2010 workload of Hawk and Eagle: 10 published clusters, all but 2 % of the jobs tiny.
#
# What stands in. The clusters' numbers of jobs are published and checked. Their task-seconds are recalled
# from the same table and were not checked against the paper's text. Evidence for them: with the
# published jobs they put 99.75 % of task-seconds in long jobs, and Hawk states 99.79 %. The quantiles are
# of 2,000 jobs synthesised by Hawk's recipe, two thirds of them long: there a long job has 9 times the
# work of a short one, in the clusters 19,000 times.
#
# Numbers of tasks are adapted; durations keep the excerpt's quantiles. There are 0.035 times as many tasks as by
# the quantiles in short jobs, and 55 times as many in long ones. A job of 82 task-seconds does not have
# the excerpt's 62 tasks of 35 s, but one or two; one of 1.5 million that ends within an hour has
# thousands. `workloads.generators.clustered` has the recipe.

# Jobs, then map and reduce task-seconds of the centroid (Chen et al., PVLDB 2012); the latter as recalled,
# see above.
_FACEBOOK_CLUSTERS = (
    JobCluster(1_145_663, 48 + 34),
    JobCluster(7911, 60_664),
    JobCluster(779, 3_081_710),
    JobCluster(670, 9_457_592),
    JobCluster(104, 198_436),
    JobCluster(11_491, 1_112_765 + 387_191),
    JobCluster(1876, 1_618_792 + 2_056_439),
    JobCluster(454, 1_795_682 + 818_344),
    JobCluster(169, 2_862_726 + 3_091_678),
    JobCluster(67, 1_545_220 + 18_144_174),
)

# Measured on 2,000 jobs that were synthesised by Hawk's recipe: no trace was published.
FACEBOOK = ClusteredTrace(
    name="facebook",
    clusters=_FACEBOOK_CLUSTERS,
    short=ClassShape(
        num_tasks=(1, 1, 5, 10, 27, 62, 115, 165, 205, 291, 342),
        mean_task_s=(2.5, 4.2, 5.4, 7.3, 16.8, 34.5, 55.2, 67.8, 72.6, 75.9, 76.5),
        cv=(0.00, 0.00, 0.07, 0.08, 0.10, 0.16, 0.32, 0.58, 0.67, 0.79, 0.92),
    ),
    long=ClassShape(
        num_tasks=(1, 1, 7, 12, 31, 64, 113, 168, 204, 311, 612),
        mean_task_s=(76.6, 78.5, 86.0, 98.2, 132.6, 211.9, 377.9, 626.3, 856.6, 1483.7, 3422.6),
        cv=(0.00, 0.00, 0.01, 0.02, 0.02, 0.03, 0.05, 0.06, 0.07, 0.08, 0.10),
    ),
    **_classes("facebook"),
    source="clusters: Chen et al., PVLDB 5(12), 2012; quantiles: synthetic excerpt by the recipe of Hawk "
    "(ATC 2015)",
    stand_in="the centroids' task-seconds are recalled and were not checked against the paper's text: they "
    "put 99.75 % of task-seconds in long jobs, where Hawk states 99.79 %; quantiles are of a synthetic "
    "excerpt, and numbers of tasks give way to the clusters",
    keeps="durations",
    quantiles="synthetic",
    long_jobs=0.0201,
    long_task_seconds=0.9979,
)

# As many task-seconds as `yahoo`, in 4.7 million tasks. The published 1,169,184 jobs are 104 million tasks, for which
# the generator takes 2.5 GiB of memory and a run several times that.
facebook = partial(generate, FACEBOOK, jobs=50_000)
facebook.__doc__ = (
    "Return jobs drawn from the published clusters of Facebook 2010 and the quantiles of Hawk's recipe."
)


# The Google workload of Hawk and Eagle: 506,460 jobs of the 2011 trace, a tenth of them long.
#
# No clusters with task-seconds are published. A job's task-seconds are its number of tasks times its mean
# duration, both from the quantiles of its class, correlated as in the excerpt. That alone puts about 84 %
# of task-seconds in long jobs; their durations are stretched, by a power near 1 about the cut-off, until it
# is the published 83.65 % (the excerpt, with 9.05 % long jobs, has 78.6 %). Below some 10,000 jobs the
# heaviest decide, and the power is further from 1. Variation inside a job ends at sqrt(2), where the
# excerpt's highest percent goes to 5. `workloads.generators.clustered` has the recipe.

# Measured on an excerpt of 10,000 jobs of the trace that Hawk and Eagle used. With these correlations the
# logarithms of tasks and durations have the measured 0.21 and 0.08.
GOOGLE = ClusteredTrace(
    name="google",
    clusters=(JobCluster(506_460 - 50_646, None), JobCluster(50_646, None)),
    short=ClassShape(
        num_tasks=(1, 1, 1, 1, 1, 1, 5, 20, 43, 947, 4362),
        mean_task_s=(11.4, 16.5, 21.7, 28.0, 59.9, 90.2, 184.5, 378.7, 585.0, 988.8, 1128.3),
        cv=(0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.10, 0.17, 0.61, 5.07),
        correlation=0.25,
    ),
    long=ClassShape(
        num_tasks=(1, 1, 1, 1, 1, 1, 6, 90, 212, 1599, 4950),
        mean_task_s=(
            *(1129.8, 1139.1, 1191.4, 1249.1, 1380.8, 1903.3),
            *(3390.9, 9381.1, 14682.7, 46915.7, 326131.2),
        ),
        cv=(0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.05, 0.16, 0.43, 2.10),
        correlation=0.1,
    ),
    **_classes("google"),
    source="jobs and shares: Hawk (ATC 2015); quantiles: excerpt of the trace of Hawk",
    stand_in="no clusters are published: the classes' quantiles and correlations stand in for them, and the "
    "published share of task-seconds in long jobs for their centroids",
    long_jobs=0.1,
    long_task_seconds=0.8365,
)

google = partial(generate, GOOGLE, jobs=GOOGLE.num_jobs)
google.__doc__ = (
    "Return jobs drawn from the measured quantiles and published shares of Google's trace of 2011."
)


# The closeness of a generated workload to the figures of its trace.

TRACES = {trace.name: trace for trace in (YAHOO, CLOUDERA_C, FACEBOOK, GOOGLE)}
"""The traces that have a generator, by the generator's name."""


def closeness(workload: JobWorkload) -> dict[str, Any] | None:
    """Return the figures of a generated workload beside those of the trace, as plain numbers and lists.

    Parameters
    ----------
    workload : JobWorkload
        Known as generated by its metadata, also when it comes from a Parquet folder.

    Returns
    -------
    dict or None
        None if no trace generator made it. ``jobs`` and ``tasks`` are numbers, ``long_jobs`` and
        ``long_task_seconds`` shares (0..1), each with the ``published`` figure (None if there is none) and
        the ``generated`` one; of shares there are two, ``by_cluster`` (the job was drawn from a cluster of
        long jobs; None if jobs or tasks were changed since) and ``by_cutoff`` (its mean task duration is
        above the cut-off). ``task_seconds_per_job`` is given by the clusters (``published``, None where their work is
        not) and of the workload. ``holds`` and ``gives`` say in words which figures are the trace's and which gave
        way. ``classes`` holds, for ``short`` and ``long`` jobs by the cut-off, quantiles at
        ``quantiles`` (%) of ``num_tasks`` and ``mean_task_s`` (s): ``table``, those the generator draws from,
        and ``generated``. What the table is ``table`` says at the top: ``measured`` on the trace,
        ``synthetic`` or a ``stand-in``.

    Examples
    --------
    >>> from workloads.generators.published import yahoo
    >>> found = closeness(yahoo(jobs=1000))
    >>> found["long_jobs"]["published"], found["long_jobs"]["by_cluster"]
    (0.0941, 0.094)
    """
    trace = TRACES.get(workload.metadata.get("origin", "").removeprefix("generator "))
    if trace is None:
        return None
    num_tasks, mean_s = column(workload.jobs, "num_tasks"), column(workload.jobs, "mean_task_s")
    is_long = mean_s > trace.short_cutoff_s
    work_s = num_tasks * mean_s
    by_cutoff = float(is_long.mean()), float(work_s[is_long].sum() / work_s.sum())
    by_cluster = _by_cluster(workload)
    holds, gives = _balance(trace, workload)
    return {
        "trace": trace.name,
        "source": trace.source,
        "stand_in": trace.stand_in or None,
        "table": trace.quantiles,
        "jobs": {"published": trace.num_jobs, "generated": workload.num_jobs},
        "tasks": {"published": trace.tasks, "generated": workload.num_tasks},
        "task_seconds_per_job": {
            "published": trace.mean_work() if trace.has_centroids else None,
            "generated": float(work_s.mean()),
        },
        "holds": holds,
        "gives": gives,
        **{
            share: {"published": getattr(trace, share), "by_cluster": cluster, "by_cutoff": cutoff}
            for share, cluster, cutoff in zip(
                ("long_jobs", "long_task_seconds"), by_cluster, by_cutoff, strict=True
            )
        },
        "quantiles": (LEVELS * 100).round().astype(int).tolist(),
        "classes": {
            "short": _class(trace.short, num_tasks[~is_long], mean_s[~is_long]),
            "long": _class(trace.long, num_tasks[is_long], mean_s[is_long]),
        },
    }


def render_closeness(found: dict[str, Any]) -> str:
    """Return what `closeness` found as a text table for a terminal."""
    lines = [
        f"generated beside the trace {found['trace']}",
        f"  {'':<26}{'published':>12}{'generated':>12}{'by cut-off':>12}",
        *(_line(name, found[name]["published"], found[name]["generated"]) for name in ("jobs", "tasks")),
    ]
    for share, label in (("long_jobs", "long jobs"), ("long_task_seconds", "their task-seconds")):
        f = found[share]
        lines.append(_line(label, f["published"], f["by_cluster"], f["by_cutoff"]))
    lines.append(
        _line("task-seconds a job", *(round(x) if x else x for x in found["task_seconds_per_job"].values()))
    )
    for name, shape in found["classes"].items():
        lines.append(f"  {name + ' jobs, quantile (%)':<26}" + "".join(f"{q:>9}" for q in found["quantiles"]))
        for figure, label in (("num_tasks", "tasks per job"), ("mean_task_s", "mean task (s)")):
            for origin, values in zip((found["table"], "generated"), shape[figure].values(), strict=True):
                cells = "".join(f"{x:>9.4g}" if x < 1e4 else f"{x:>9,.0f}" for x in values)
                lines.append(f"    {label + ', ' + origin:<24}{cells}")
    lines += [f"  holds: {found['holds']}", f"  gives: {found['gives']}", f"  source: {found['source']}"]
    if found["stand_in"]:
        lines.append(f"  stands in: {found['stand_in']}")
    return "\n".join(lines) + "\n"


def _balance(trace: ClusteredTrace, workload: JobWorkload) -> tuple[str, str]:
    """Return which figures of a workload are the trace's, and which gave way to them, in words."""
    if " durations=trace" in workload.metadata.get("parameters", ""):
        return "tasks per job and mean task durations, as measured", "task-seconds, published of the clusters"
    if not trace.has_centroids:
        return (
            "tasks per job, mean task durations of short jobs, and the published share of task-seconds in long jobs",
            "mean task durations of long jobs",
        )
    if trace.keeps == "tasks":
        return "task-seconds as published, tasks per job as measured", "mean task durations"
    return f"task-seconds as published, mean task durations ({trace.quantiles})", "tasks per job"


def _by_cluster(workload: JobWorkload) -> tuple[float | None, float | None]:
    """Return the shares of long jobs and of their task-seconds as drawn, unless the work is another since."""
    drawn = workload.metadata
    if drawn.get("task_seconds") != f"{float(column(workload.tasks, 'duration_s').sum()):.6g}":
        return None, None
    return float(drawn["long_by_cluster"]), float(drawn["long_task_seconds"])


def _class(shape: ClassShape, num_tasks: Int64Array, mean_s: Float64Array) -> dict[str, Any]:
    def beside(table: tuple[float, ...], generated: Float64Array | Int64Array) -> dict[str, Any]:
        quantiles = np.quantile(generated, LEVELS).tolist() if len(generated) else []
        return {"table": list(table), "generated": quantiles}

    return {
        "jobs": len(num_tasks),
        "num_tasks": beside(shape.num_tasks, num_tasks),
        "mean_task_s": beside(shape.mean_task_s, mean_s),
    }


def _line(label: str, *figures: float | None) -> str:
    cells = ("-" if f is None else f"{f:.2%}" if isinstance(f, float) else f"{f:,}" for f in figures)
    return f"  {label:<26}" + "".join(f"{cell:>12}" for cell in cells)
