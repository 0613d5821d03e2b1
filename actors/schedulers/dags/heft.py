"""HEFT: of all jobs' runnable tasks the one from which the longest path leads to its job's end goes first.

1. The upward rank of a stage is the mean duration of its tasks plus the largest upward rank of its children.
2. Whenever a machine has room, the runnable task that fits there with the largest upward rank is launched.

A task holds its machine for the same time wherever it runs, so that the machine where it ends first is one that has
room now; of several it is the first.

**Deviations from the paper.** The paper plans one graph on processors that run one task each, ahead of time, and puts
tasks into gaps of the plan. Here jobs arrive while others run, and machines run many tasks: the order is the paper's,
and tasks are placed when they are runnable (list scheduling). Where the first in the order fits nowhere, the next one
is launched: nothing is reserved. There are no costs of communication. The rank of a task is that of its stage.
"""

from functools import partial

import numpy as np

from actors.machines.resource_manager import advance
from actors.machines.worlds import DAG_WORLDS
from actors.scheduler import Scheduler
from actors.schedulers.dags.build import HEARTBEAT, MANAGERS, build
from actors.setting import Setting


def _upward_ranks(setting: Setting, order: np.ndarray) -> np.ndarray:
    return -order


HEFT = Scheduler(
    name="heft",
    title="the task with the longest path to the end of its job first, whatever the job",
    paper="Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002, doi 10.1109/71.993206",
    parameters=(HEARTBEAT, MANAGERS),
    worlds=DAG_WORLDS,
    build=partial(
        build, inter="drf", packing=True, intra="critical-path", priority=_upward_ranks, by_alignment=False
    ),
    advance=advance,
    about=__doc__ or "",
)
