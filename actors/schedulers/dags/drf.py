"""Dominant resource fairness between jobs, breadth-first inside a job.

1. Each job's share is that of DRF in closed form: with v_j the demand of its mean task over the cluster's capacity,
   divided by its largest element, x v_j, where x is the same for all jobs and as large as resources allow. It changes
   when a job arrives or ends.
2. Of the jobs with a task that fits on a machine and into the job's share, the one with the smallest dominant share
   launches it. Inside a job, stages go by their level, as in Tez.
3. What is left goes to jobs in the same order, beyond their shares (`leftover`). With "over-share" it goes first to
   the job that is furthest over its share: the one with the largest max over resources of what it holds less its
   share, over all there is; among equals the one that arrived first. As each task takes it further over, a job gets all
   that it can use before the next one gets any. The public simulator of Carbyne's authors does so under DRF.

Every end of a task takes O(jobs and their runnable stages).

A job that holds nothing may launch a task larger than its share.

`fair-dags` is the same with an equal part of every resource, and so of the slots, for each job. **Deviations from the
paper.** Tasks do not wait for machines that hold their data (delay scheduling): workloads do not say where data is.

`cpm` is `drf` with the critical path first inside a job: the stage with the longest path from its start to the end of
the job, by mean durations of tasks (Kelley and Walker, 1959; the alternative inside jobs of Carbyne's section 2.1).
**Deviations from the paper.** The paper plans one project without a limit of resources; here its longest paths order
the stages that may run.

**Deviations from the paper.** In the paper shares result from tasks that go, one by one, to the job with the smallest
dominant share. Step 3 does so; step 2 bounds what a job may hold before that, by the closed form.
"""

from functools import partial

from actors.machines import matching
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import LEFTOVER, LEFTOVERS, SMALLEST_SHARE, Inter, Parts, with_leftovers
from actors.schedulers.dags.stage_orders import INTRA, ORDERS, PLAN_SHARE
from actors.setting import Setting

# Where the steps stand:
# 1. `divide` of actors/machines/matching.py, called by `divide_again` of actors/machines/bands.py
# 2. `choose`, `is_own`, `first_that_fits` and `dominant_share` of actors/machines/matching.py; `by_level` of
#    actors/schedulers/dags/stage_orders.py
# 3. `fill`, `place_of` and `over_share` of actors/machines/matching.py


def _parts(setting: Setting, by: int = matching.DRF, intra: str = "") -> Parts:
    parameters = setting.parameters
    return Parts(
        inter=Inter(by),
        intra=ORDERS[intra or parameters["intra_job"]](setting),
        leftover=LEFTOVERS[parameters["leftover"]],
    )


DRF = dag_scheduler(
    _parts,
    name="drf",
    title="dominant resource fairness between jobs, breadth-first inside a job",
    paper="Ghodsi et al., NSDI 2011; closed form: Parkes, Dolev and Shah, EC 2012, doi 10.1145/2229012.2229075",
    parameters=(INTRA, PLAN_SHARE, LEFTOVER),
    rule=with_leftovers(SMALLEST_SHARE),
)
FAIR = dag_scheduler(
    partial(_parts, by=matching.FAIR),
    name="fair-dags",
    title="an equal part of every resource for each job, breadth-first inside a job",
    paper="Zaharia et al., EuroSys 2010, doi 10.1145/1755913.1755940",
    parameters=(INTRA, PLAN_SHARE, LEFTOVER),
    rule=with_leftovers(SMALLEST_SHARE),
)
CPM = dag_scheduler(
    partial(_parts, intra="critical-path"),
    name="cpm",
    title="dominant resource fairness between jobs, critical path first inside a job",
    paper="Kelley and Walker, Eastern Joint IRE-AIEE-ACM Conference 1959, doi 10.1145/1460299.1460318",
    parameters=(LEFTOVER,),
    rule=with_leftovers(SMALLEST_SHARE),
)
