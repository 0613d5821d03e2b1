"""Tetris: the task whose demand fits best what a machine has free, of jobs with little work left.

1. Whenever a machine has room, the value of each runnable task that fits there is the alignment of its demand and what
   the machine has free: their dot product, each relative to the machine's capacity.
2. On a machine that has run no task of the parents of the task's stage, so that all of its input is remote, the value
   falls by the share `remote_penalty`. Where parts of jobs' input lie on machines (`network.input=replicas`) it does
   not fall on those that have the part of a runnable task of the stage, which is launched before others of the stage,
   and falls for stages without parents, too.
3. The work that is left of the task's job (task-seconds times the mean share of the cluster that they hold) is taken
   from the value, in units in which the means of both are alike, times `remaining_weight`: that of the values of all
   tasks launched so far (1 before the first), and that of the work of the jobs that are there. The first changes with
   each launch, the second as tasks end and jobs arrive. Both are found before each launch, as in the paper (section
   3.3). With `weight` "pass" they are found once for what stages whose tasks have become runnable launch at one
   instant on all machines, which matters where many do at once; on machines where a task has ended, or whose heartbeat
   has come, they are found before each launch all the same.
4. The task with the largest value is launched. With `fairness` f only the jobs that hold the least of the cluster may
   launch, ceil((1 - f) J) of the J jobs with runnable tasks; the others wait, even if machines have room for them.

Every end of a task takes O(jobs and their runnable stages).

`tetris-fair` is the same with fairness. Carbyne's authors compare with a fairness near 1 (OSDI 2016, section 5.5),
where only the job that holds the least may launch; Tetris' authors recommend 0.25. Deviations are those of `tetris`.

**Deviations from the paper.** No remote penalty by default, where the paper has 10 %: without a network input has no
places, and that tasks read where their parents ran is an assumption. Barriers get no preference. The paper does not
say over which tasks alignment is averaged; here it is over those launched so far.
"""

from dataclasses import replace

from actors.machines import matching
from actors.machines.matching import Values
from actors.scheduler import Parameter
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import by_level
from actors.setting import Setting

# Where the steps stand:
# 1. `alignment` and `value_of` of actors/machines/matching.py
# 2. `is_remote` and `value_of` of actors/machines/matching.py
# 3. `weight_of_work` and `note_launch` of actors/machines/matching.py
# 4. `choose_packed`, `choose_fresh` and `bound_rank` of actors/machines/matching.py

REMAINING_WEIGHT = Parameter(
    "remaining_weight", 1.0, "number", "weight of the work that a job has left, against alignment", 0, 1e6
)
WEIGHT = Parameter(
    "weight",
    "launch",
    "choice",
    "when the unit of the work that a job has left is found: before each launch, or once for all that stages with new "
    "runnable tasks launch on all machines",
    choices=("launch", "pass"),
    needs=("remaining_weight",),
)
REMOTE_PENALTY = Parameter(
    "remote_penalty",
    0.0,
    "share",
    "share of a task's value that is lost on machines that have none of the input of its stage, where places are known",
    0,
    1,
)
FAIRNESS = Parameter(
    "fairness",
    0.0,
    "share",
    "share of the jobs with runnable tasks, those that hold most, that may not launch",
    0,
    1,
)


def _parts(setting: Setting) -> Parts:
    parameters = setting.parameters
    return Parts(
        inter=Inter(matching.DRF),
        intra=by_level(setting),
        packing=True,
        values=Values(
            remaining_weight=parameters["remaining_weight"],
            renewed=parameters["weight"] == "launch",
            remote_penalty=parameters["remote_penalty"],
            fairness=parameters["fairness"],
        ),
    )


TETRIS = dag_scheduler(
    _parts,
    name="tetris",
    title="multi-resource packing, combined with the least work left",
    paper="Grandl et al., SIGCOMM 2014, doi 10.1145/2619239.2626334",
    parameters=(REMAINING_WEIGHT, WEIGHT, FAIRNESS, REMOTE_PENALTY),
    rule="the task goes first that suits a machine best, with a preference for jobs with little work left",
)
TETRIS_FAIR = dag_scheduler(
    _parts,
    name="tetris-fair",
    title="multi-resource packing of the jobs that hold the least of the cluster",
    paper="Grandl et al., SIGCOMM 2014, doi 10.1145/2619239.2626334",
    parameters=(REMAINING_WEIGHT, WEIGHT, replace(FAIRNESS, default=0.25), REMOTE_PENALTY),
    rule="of the jobs that hold the least, the task goes first that suits a machine best",
)
