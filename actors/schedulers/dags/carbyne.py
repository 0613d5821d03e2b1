"""Carbyne: jobs launch only what must start now for them to end in time, and leave the rest of their shares to all.

1. Each job's share is that of DRF (as `drf`).
2. A job is planned in its share when other tasks of it can run than before, when a planned task is due, or when the
   share has changed so much that its plan may be another (`replan`). First, how long it takes if its tasks are packed
   into the share from now on; then, with precedence reversed, each task as late as possible, such that the job ends at
   the same time. What starts now in that plan must start now; all else is left to others (Pseudocode 1, lines 17 to
   22). With probability 1 - `altruism` a plan is not made, and the job launches what fits into its share.
3. What must start goes first, of the job with the smallest dominant share.
4. What is left goes to jobs in the order of the work that they have left, and of one job the largest task that fits
   (lines 26 to 31); or to the task that fits best, whatever its job (`leftover`).

With `packing` "dagps" plans and leftovers follow the order of `dagps` inside a job; backward they follow it from its
end, where the stage goes first of which the first tasks end last.

With `completion` "renewed" each plan computes the end of the job again, as in the pseudocode. Packing is a heuristic:
where the plan backward takes less time than the plan forward, nothing must start, and the same holds for the next plan.
Such a job gets only what is left over, which leaves more to short jobs. With "kept" a later plan does not end later,
unless the job's share falls: where the plan backward does not end in time, the job keeps the plan that it has. Then
altruism ends no job later than its share alone would, as Theorem 3.1 says of jobs that are there from the start, if the
share is divisible and durations are as estimated, with `leftover` "none" or where all tasks take as long. Else a task
that was begun with what was left over, and is not taken back, may still run when a planned one must start; and with
`altruism` between 0 and 1 a job departs from its plan.

A plan of a job takes O(stages + edges + batches of like tasks x stages that can run at a time). Tasks of a stage are
alike: those that start together in a plan are one batch, as long as the stage's estimate; running tasks of a stage are
taken to end when the one that was launched last does.

**Deviations from the paper.** The paper plans all jobs again, and draws which of them are altruistic, when any job
arrives or ends and when any task ends; that is `replan` "events", whose cost grows with the product of jobs and tasks.
Step 3 goes by job; the paper's implementation packs the tasks of all jobs that must start, by how well they fit and by
priorities that their jobs give (section 4.2). A share that is smaller than the largest task of the job has room for
that one in its plan. Plans are made in the share as one machine, and not per machine; so tasks that must start may find
no room, and then go first as soon as there is some. With `packing` "dagps" a job's order is made once, for the part
`plan_share` of the cluster, and not again for each share; plans pack in that order, and do not take DAGPS' times. Disk
and network rates are not reduced while a task waits for nothing else ("fungible" demands of the authors' simulator).
That simulator never makes the reverse plan by default (its LEVEL_OF_OPTIMISM is 0: `altruism` 0). Inside a job
leftovers are packed, the largest task that fits first, as section 3.3 says ("packing as many unscheduled tasks as
possible"); the paper's implementation (section 4.2) requests what a job may launch beyond what it must breadth-first,
as in Tez: `leftover_tasks` "in-order".
"""

from dataclasses import replace

from actors.machines import matching
from actors.scheduler import Parameter
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import LEFTOVERS, Altruism, Inter, Parts, with_leftovers
from actors.schedulers.dags.stage_orders import INTRA, ORDERS, PLAN_SHARE, dagps_orders, priorities
from actors.setting import Setting

# Where the steps stand: `begin_band` and `plan_jobs` of actors/machines/bands.py do 1 and 2, then `fill` of
# actors/machines/matching.py does 3 and 4.
# 1. `divide` of actors/machines/matching.py
# 2. `plan`, `forward`, `backward`, `follow` and `pack` of actors/machines/carbyne_plan.py
# 3. `choose` and `is_own` of actors/machines/matching.py
# 4. `choose`, `place_of` and `first_that_fits` of actors/machines/matching.py


def _parts(setting: Setting) -> Parts:
    """Return the parts."""
    parameters = setting.parameters
    as_dagps = parameters["packing"] == "dagps"
    order, backward = dagps_orders(setting) if as_dagps else (ORDERS[parameters["intra_job"]](setting), None)
    return Parts(
        inter=Inter(matching.DRF),
        intra=order,
        leftover=LEFTOVERS[parameters["leftover"]],
        priority=priorities(setting, order) if as_dagps else None,
        altruism=Altruism(
            parameters["altruism"],
            keeps_promises=parameters["completion"] == "kept",
            plans_with_events=parameters["replan"] == "events",
        ),
        backward=backward,
        leftovers_in_order=as_dagps or parameters["leftover_tasks"] == "in-order",
    )


CARBYNE = dag_scheduler(
    _parts,
    name="carbyne",
    title="altruistic scheduling: DRF between jobs, latest starts inside a job, leftovers by least work left",
    paper="Grandl et al., OSDI 2016",
    plans=True,
    refuses=(
        ({"completion": "renewed", "leftover": "none"}, "jobs may wait for ever without a leftover part"),
    ),
    rule=with_leftovers(
        "what a job's plan must start goes first, of the job that holds the smallest dominant share"
    ),
    parameters=(
        Parameter(
            "altruism",
            1.0,
            "share",
            "probability that a job yields what it need not use, at each of its plans",
            0,
            1,
        ),
        Parameter(
            "packing",
            "tetris",
            "choice",
            "order of tasks in a job's plans: how well they fit, or DAGPS' order, which leftovers follow, too",
            choices=("tetris", "dagps"),
        ),
        replace(INTRA, needs=("packing=tetris",)),
        PLAN_SHARE,
        Parameter(
            "completion",
            "renewed",
            "choice",
            "when a job must end: as each new plan says, or at the latest as plans said since its share fell last",
            choices=("renewed", "kept"),
            needs=("altruism",),
        ),
        Parameter(
            "replan",
            "changes",
            "choice",
            "when jobs are planned again: one whose plan may be another, or all with every arrival and end",
            choices=("changes", "events"),
            needs=("altruism",),
        ),
        Parameter(
            "leftover",
            "srtf",
            "choice",
            "order in which jobs get what is left over",
            choices=tuple(LEFTOVERS),
        ),
        Parameter(
            "leftover_tasks",
            "largest",
            "choice",
            "which task of a job gets what is left over first: the largest that fits, or as `intra_job` says; with "
            "`packing=dagps` always the latter, as in dagps",
            choices=("largest", "in-order"),
            needs=("leftover=srtf",),
        ),
    ),
)
