"""DAGPS (Graphene): stages go in the order of a plan of their job alone, which places troublesome stages first.

1. Before the run each job is planned alone, in a part of the cluster (`plan_share`), by `actors.machines.dagps_plan`:
   stages with long tasks and stages that pack badly are placed first, and all others around them. The order in which
   the last tasks of stages begin there is the job's order: the priority of a stage falls from 1 to 1 / stages along it.
2. Whenever a machine has room, the value of each runnable task that fits there is its priority, times the alignment of
   its demand and what the machine has free, less the work that its job has left, as in `tetris`.
3. The task with the largest value is launched. But a job goes first if it has got less than an equal part of all
   launches, by at least the part `unfairness` of the cluster; of several the one that lacks most.

To plan a job takes O(thresholds, stages and batches of tasks); thresholds are 11 x 11 at most.

**Deviations from the paper.** The rules of the online step are recalled from the paper, and were not compared with it.
There is no overbooking of disk and network, and no preference for machines that have the input beyond `remote_penalty`.
Plans are made for one machine as large as a part of the cluster, and not for several. The order is that of stages, by
their last tasks, where the paper's is of tasks; a job alone in one space that follows it takes as long as its plan,
within 1 % on average (`claims/dagps.py`).
"""

from dataclasses import replace

from actors.machines import matching
from actors.machines.matching import Values
from actors.scheduler import Parameter
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import PLAN_SHARE, by_dagps_plan, priorities
from actors.schedulers.dags.tetris import REMAINING_WEIGHT, REMOTE_PENALTY, WEIGHT
from actors.setting import Setting

# Where the steps stand:
# 1. `plan_jobs` of actors/machines/dagps_plan.py, called by `make_job_plans` of actors/schedulers/dags/stage_orders.py;
#    `dagps_orders` and `priorities` of actors/schedulers/dags/stage_orders.py
# 2. `value_of`, `alignment` and `weight_of_work` of actors/machines/matching.py
# 3. `choose_packed` and `deficit` of actors/machines/matching.py


def _parts(setting: Setting) -> Parts:
    parameters, order = setting.parameters, by_dagps_plan(setting)
    return Parts(
        inter=Inter(matching.DRF),
        intra=order,
        packing=True,
        values=Values(
            remaining_weight=parameters["remaining_weight"],
            renewed=parameters["weight"] == "launch",
            remote_penalty=parameters["remote_penalty"],
            unfairness=parameters["unfairness"],
        ),
        priority=priorities(setting, order),
    )


DAGPS = dag_scheduler(
    _parts,
    name="dagps",
    title="troublesome stages first, packed with a bound on unfairness",
    paper="Grandl, Kandula, Rao, Akella and Kulkarni (Graphene), OSDI 2016",
    rule="tasks go by the plan of their job, by how they suit a machine and by their job's work left",
    parameters=(
        replace(PLAN_SHARE, needs=()),
        REMAINING_WEIGHT,
        WEIGHT,
        Parameter(
            "unfairness",
            0.1,
            "number",
            "what a job lacks of an equal part of all launches, as a part of the cluster, from which on it goes first",
            0,
            1e6,
        ),
        REMOTE_PENALTY,
    ),
)
