"""How close the generators of published traces come to the published figures, over seeds; coflows too.

How to run: `python -m benchmarks.generators [--seeds 10] [--quantiles]`
For debugging: `--seeds 1 --jobs 2000`
Every generator makes the published number of jobs, `facebook` its default, or `--jobs`; `--quantiles` are of the first
seed. Ends with 1 if a target is missed:
the number of jobs exact, the share of long jobs within 0.3 points by cluster, the share of their task-seconds
within 2 points in the mean over the seeds; coflows exact, their flows, the wide and the skewed within 10 % in the mean.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.measuring import options, show
from workloads.arrow import column
from workloads.generators.coflows import MEGABYTE, synthetic_coflows
from workloads.generators.published import closeness, cloudera_c, facebook, google, render_closeness, yahoo
from workloads.jobs import JobWorkload
from workloads.transform.coflows import flow_skew
from workloads.transform.load import fabric_bytes_per_s, offered_bytes_per_s

GENERATORS: tuple[Callable[..., JobWorkload], ...] = (yahoo, cloudera_c, facebook, google)
MAX_JOBS_OFF, MAX_WORK_OFF = 0.003, 0.02  # shares
COLUMNS = ("jobs", "tasks", "long jobs", "by cut-off", "their work", "by cut-off", "load", "seconds")

COFLOW_COLUMNS = ("coflows", "flows", "wide", "skewed", "senders", "receivers", "median MB", "TB", "load")
TRACE = [526, 706_397, 269, 142, 20.44, 20.17, 25, 37.26, 0.548]  # FB2010-1Hr-150-0.txt
MAX_COFLOWS_OFF = 0.1  # share


def row(make: Callable[..., JobWorkload], seed: int, jobs: int | None) -> tuple[dict, list[float]]:
    """Return what was found for one seed, and the figures of its line."""
    begin = time.perf_counter()
    workload = make(seed=seed) if jobs is None else make(seed=seed, jobs=jobs)
    took_s = time.perf_counter() - begin
    found = closeness(workload)
    assert found is not None
    shares = [found[s][by] for s in ("long_jobs", "long_task_seconds") for by in ("by_cluster", "by_cutoff")]
    load = float(workload.metadata["offered_load"].split()[0])
    return found, [workload.num_jobs, workload.num_tasks, *shares, load, took_s]


def measure(make: Callable[..., JobWorkload], seeds: int, jobs: int | None, quantiles: bool) -> bool:
    """Print the table of one generator; whether it meets the targets."""
    formats = ("{:,.0f}", "{:,.0f}", *("{:.2%}",) * 4, "{:.3f}", "{:.2f}")
    drawn = [row(make, seed, jobs) for seed in range(seeds)]
    found = drawn[0][0]
    share, work = (found[s]["published"] for s in ("long_jobs", "long_task_seconds"))
    counts = [found[c]["published"] for c in ("jobs", "tasks")]
    figures = {"published": [*counts, share, share, work, work, None, None]}
    mean = show_seeds(found["trace"], COLUMNS, formats, figures, [figures for _, figures in drawn])
    if quantiles:
        print(render_closeness(found), end="")
    wanted_jobs = jobs or (drawn[0][1][0] if make is facebook else counts[0])
    met = (
        all(figures[0] == wanted_jobs and abs(figures[2] - share) <= MAX_JOBS_OFF for _, figures in drawn)
        and abs(mean[4] - work) <= MAX_WORK_OFF
    )
    print("met" if met else "missed")
    return met


def show_seeds(
    head: str,
    columns: Sequence[str],
    formats: Sequence[str],
    first: Mapping[str, Sequence[float | None]],
    drawn: Sequence[Sequence[float]],
) -> list[float]:
    """Print published figures, those of each seed and their mean, which is returned."""
    mean = [sum(figures) / len(drawn) for figures in zip(*drawn, strict=True)]
    lines = {**first, **{f"seed {seed}": figures for seed, figures in enumerate(drawn)}, "mean": mean}
    rows = [["", *columns]]
    for label, figures in lines.items():
        cells = ["-" if f is None else form.format(f) for form, f in zip(formats, figures, strict=True)]
        rows.append([label, *cells])
    show(head, rows)
    return mean


def coflow_row(seed: int) -> list[float]:
    """Return the figures of the line of coflows for one seed."""
    made = synthetic_coflows(seed=seed)
    width, senders, receivers, size = (
        column(made.coflows, name) for name in ("width", "senders", "receivers", "size_bytes")
    )
    many = [
        made.num_coflows,
        made.num_flows,
        np.count_nonzero(width > 7),
        np.count_nonzero(flow_skew(made) > 1),
    ]
    load = offered_bytes_per_s(made) / fabric_bytes_per_s(made, 1e9)
    return [*many, senders.mean(), receivers.mean(), np.median(size) / MEGABYTE, size.sum() / 1e12, load]


def measure_coflows(seeds: int) -> bool:
    """Print the table of the coflows; whether they meet the targets."""
    formats = (*("{:,.0f}",) * 4, *("{:,.2f}",) * 4, "{:.3f}")
    drawn = [coflow_row(seed) for seed in range(seeds)]
    mean = show_seeds("coflow benchmark", COFLOW_COLUMNS, formats, {"trace": TRACE}, drawn)
    off = [abs(have / want - 1) for have, want in zip(mean[:4], TRACE[:4], strict=True)]
    met = off[0] == 0 and max(off) <= MAX_COFLOWS_OFF
    print("met" if met else "missed")
    return met


def main() -> int:
    """Measure all generators."""
    asked = options(__doc__, seeds=10, jobs=int, quantiles=False)
    met = [measure(make, asked.seeds, asked.jobs, asked.quantiles) for make in GENERATORS]
    met.append(measure_coflows(asked.seeds))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
