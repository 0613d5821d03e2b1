"""The Cloudera-c workload of Hawk and Eagle: 21,030 jobs of 6 published clusters.

What stands in. No excerpt of the trace is public. The quantiles are Yahoo's, the other MapReduce cluster
of the same studies, with durations relative to the cut-off: 272.783 s here, 90.5811 s there. In short
jobs durations are those of the workload ``yahoo``, which its clusters have moved towards the cut-off; in
long jobs they are the excerpt's, as the same move would make tasks that last for days.

Numbers of tasks are adapted: a short job has 17,519 task-seconds, so that it has 64 tasks or more if its tasks
stay below the cut-off, where Yahoo's have 23. `workloads.generators.clustered` has the recipe.
"""

from __future__ import annotations

from functools import partial

from workloads.generators.clustered import ClusteredTrace, JobCluster, generate
from workloads.generators.yahoo import YAHOO
from workloads.published_cutoffs import known_trace

_CUTOFF_S, _LONG_PARTITION = known_trace("cloudera") or (0.0, 0.0)

# Jobs, then map and reduce task-seconds of the centroid (Chen et al., PVLDB 2012, customer c).
_CLUSTERS = (
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
    clusters=_CLUSTERS,
    short=YAHOO.short.at_cutoff(YAHOO.short_cutoff_s, _CUTOFF_S, _SHORT_POWER),
    long=YAHOO.long.at_cutoff(YAHOO.short_cutoff_s, _CUTOFF_S),
    short_cutoff_s=_CUTOFF_S,
    long_partition=_LONG_PARTITION,
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
