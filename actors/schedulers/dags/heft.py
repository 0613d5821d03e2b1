"""HEFT: of the runnable tasks of all jobs, the one with the longest path to the end of its job goes first.

1. The upward rank of a stage is the mean duration of its tasks plus the largest upward rank of its children.
2. Whenever a machine has room, the runnable task that fits there with the largest upward rank is launched.

A task holds its machine for the same time wherever it runs, so that the machine where it ends first is one that has
room now; of several it is the first.

**Deviations from the paper.** The paper plans one graph on processors that run one task each, ahead of time, and puts
tasks into gaps of the plan. Here jobs arrive while others run, and machines run many tasks: the order is the paper's,
and tasks are placed when they are runnable (list scheduling). Where the first in the order fits nowhere, the next one
is launched: nothing is reserved. There are no costs of communication. The rank of a task is that of its stage.
"""

from actors.machines import matching
from actors.machines.matching import Values
from actors.schedulers.dags.build import dag_scheduler
from actors.schedulers.dags.parts import Inter, Parts
from actors.schedulers.dags.stage_orders import by_critical_path
from actors.setting import Setting

# Where the steps stand:
# 1. `longest_paths` of actors/schedulers/dags/stage_orders.py
# 2. `choose_packed` and `value_of` of actors/machines/matching.py


def _parts(setting: Setting) -> Parts:
    order = by_critical_path(setting)
    return Parts(
        inter=Inter(matching.DRF),
        intra=order,
        packing=True,
        values=Values(by_alignment=False),
        priority=-order,  # the upward rank
    )


HEFT = dag_scheduler(
    _parts,
    name="heft",
    title="the task with the longest path to the end of its job first, whatever the job",
    paper="Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002, doi 10.1109/71.993206",
    parameters=(),
    rule="the task with the longest path to the end of its job goes first",
)
