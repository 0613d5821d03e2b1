"""The part of docs/reference/results.md on runs of DAG jobs."""

from __future__ import annotations

HEAD = """\
# Runs of DAG jobs

A run of DAG jobs has `jobs.parquet` and `tasks.parquet` with more columns than a run of jobs, another
`timeline.parquet`, and tables of the use of resources and of fairness. Its `summary.json` has the part `jobs` of a run
of jobs, without constraints, and the part `dags`.
"""
SUMMARY = """\
## summary.json of DAG jobs

| key | meaning |
|---|---|
| `jobs` | as of jobs; ideal times are lengths of critical paths |
| `dags.stages` | stages of all jobs |
| `dags.bound_s` | lower bound of the makespan: the longer of the time that all machines need for all work, and of the \
time until the last job ends if each has all machines to itself |
| `dags.used` | by resource, the share of the capacity of all machines that tasks held, in the mean from the first \
arrival to the last end |
| `dags.fairness` | `mean`, `min` and `max` over the windows of `fairness.parquet` of `jain` |
| `dags.fairness_running` | the same of `jain_running` |
| `dags.leftover_share` | share of the tasks that the leftover part launched: above the share of their job |
| `offered_load` | work over capacity while jobs arrive, of the resource of which it is most |

## Comparisons of DAG jobs

A comparison has what [one of jobs](#comparisons) has, and the factors of improvement of the first scheduler over each
other (`speedup`): `average` is the other's mean completion time over that of the first; `p50`, `p75` and `p95` are
percentiles of the same ratio job by job. With several seeds they are taken seed by seed, and their mean and interval
are given.
"""
