"""The Google workload of Hawk and Eagle: 506,460 jobs of the 2011 trace, a tenth of them long.

No clusters with task-seconds are published. A job's task-seconds are its number of tasks times its mean
duration, both from the quantiles of its class, correlated as in the excerpt. That alone puts about 84 %
of task-seconds in long jobs; their durations are stretched, by a power near 1 about the cut-off, until it
is the published 83.65 % (the excerpt, with 9.05 % long jobs, has 78.6 %). Below some 10,000 jobs the
heaviest decide, and the power is further from 1. Variation inside a job ends at sqrt(2), where the
excerpt's highest percent goes to 5. `workloads.generators.clustered` has the recipe.
"""

from __future__ import annotations

from functools import partial

from workloads.generators.clustered import ClassShape, ClusteredTrace, JobCluster, generate
from workloads.published_cutoffs import known_trace

_CUTOFF_S, _LONG_PARTITION = known_trace("google") or (0.0, 0.0)

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
    short_cutoff_s=_CUTOFF_S,
    long_partition=_LONG_PARTITION,
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
