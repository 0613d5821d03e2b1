"""Shortest job first: all of the cluster to one job, and what it cannot use to the next.

1. Jobs are in the order of the lengths of their critical paths, by mean durations of tasks; it does not change.
2. Whenever a machine has room, the first job in that order that has a runnable task which fits there launches it.
   Inside a job, stages go by their level.

`srtf` orders jobs by the work they have left, which changes as tasks end: task-seconds times the mean share of the
cluster that a task holds. **Deviations from the paper.** Carbyne's paper names it for its leftovers alone, and does not
say how resources are weighed: here all alike.

**Deviations from the paper.** The paper's SJF leaves open what is done with what the shortest job cannot use. Here it
goes to the next ones: nothing that fits is left free.
"""

from actors.machines import matching
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import INTRA, ORDERS, PLAN_SHARE, critical_paths
from actors.setting import Setting

# Where the steps stand:
# 1. `critical_paths` and `longest_paths` of actors/schedulers/dags/stage_orders.py
# 2. `choose` and `first_that_fits` of actors/machines/matching.py


def _shortest_first(setting: Setting) -> Parts:
    order = ORDERS[setting.parameters["intra_job"]](setting)
    return Parts(inter=Inter(matching.FIXED, critical_paths(setting)), intra=order)


def _least_left_first(setting: Setting) -> Parts:
    return Parts(inter=Inter(matching.LEAST_LEFT), intra=ORDERS[setting.parameters["intra_job"]](setting))


SJF = dag_scheduler(
    _shortest_first,
    name="sjf",
    title="the job with the shortest critical path first",
    paper="Grandl et al., OSDI 2016, section 5.1",
    rule="the job with the shortest critical path goes first",
    parameters=(INTRA, PLAN_SHARE),
)
SRTF = dag_scheduler(
    _least_left_first,
    name="srtf",
    title="the job with the least work left first",
    paper="Grandl et al., OSDI 2016, section 3.3",
    rule="the job with the least work left goes first",
    parameters=(INTRA, PLAN_SHARE),
)
