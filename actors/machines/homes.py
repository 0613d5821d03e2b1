"""The homes of tasks whose shuffles are pushed: for each task a machine, drawn by the seed.

A home is any machine of its job's manager that is large enough for the task. A draw is a task's own, so that it does
not depend on what is launched when: two schedulers send the same bytes between the same homes.
"""

import numpy as np

from actors.conditions import read_only
from actors.inputs import NO_HOMES
from actors.kernel.compiled import entry
from actors.kernel.inputs import Homes
from actors.kernel.queue import NONE
from actors.kernel.random import HOMES, below, random_bits
from actors.setting import Setting
from workloads.dag_arrays import DagArrays


def make_homes(
    setting: Setting, arrays: DagArrays, demand: np.ndarray, capacity: np.ndarray, first_node: np.ndarray
) -> Homes:
    """Return the homes of tasks of stages that have input from others; none where shuffles are pulled.

    Args:
        demand: [S, R] of a task of each stage; it fits on some machine of its manager.
        capacity: [N, R]
        first_node: [K + 1] where the machines of each manager begin; jobs go to the managers in turn.
    """
    if setting.switch.scheduler == "none" or setting.switch.shuffle != "push":
        return NO_HOMES
    stages, managers = demand.shape[0], first_node.size - 1
    child = np.repeat(np.arange(stages), np.diff(arrays.first_parent))
    pushed = np.zeros(stages, np.int64)
    pushed[child[np.nan_to_num(arrays.parent_bytes) > 0]] = 1
    job = np.repeat(np.arange(arrays.submit_ns.size), np.diff(arrays.first_stage))
    # Machines of a manager that are alike are a run of `machine`.
    manager = np.repeat(np.arange(managers), np.diff(first_node))
    kinds, of_machine, sizes = np.unique(
        np.column_stack([manager, capacity]), axis=0, return_inverse=True, return_counts=True
    )
    home = np.full(arrays.stage_first_task[-1], NONE)
    draw_homes(
        home,
        np.flatnonzero(pushed),
        arrays.stage_first_task,
        demand,
        job % managers,
        np.searchsorted(kinds[:, 0], np.arange(managers + 1)),
        np.ascontiguousarray(kinds[:, 1:]),
        np.append(0, np.cumsum(sizes)),
        np.argsort(of_machine.ravel(), kind="stable"),
        np.zeros(sizes.size, np.int64),
        np.int64(setting.seed),
    )
    return Homes(read_only(pushed), read_only(home), np.full(home.size, NONE))


@entry
def draw_homes(
    home: np.ndarray, stages: np.ndarray, first_task: np.ndarray, demand: np.ndarray, manager: np.ndarray,
    first_kind: np.ndarray, capacity: np.ndarray, begin: np.ndarray, machine: np.ndarray, room: np.ndarray, seed: int,
) -> None:  # fmt: skip
    """Draw the homes of the tasks of some stages.

    Args:
        home: [T] written.
        stages: [n] these stages.
        manager: [S] of each stage's job.
        first_kind: [K + 1] where the kinds of machines of each manager begin.
        capacity: [kinds, R]
        begin: [kinds + 1] where the machines of each begin in `machine`.
        machine: [N] by kind.
        room: [kinds] scratch: of a kind on which a task fits, how many there are; of others 0.
    """
    for stage in stages:
        low, end, count = first_kind[manager[stage]], first_kind[manager[stage] + 1], np.int64(0)
        for kind in range(low, end):
            room[kind] = begin[kind + 1] - begin[kind]
            for r in range(capacity.shape[1]):
                if demand[stage, r] > capacity[kind, r]:
                    room[kind] = 0
            count += room[kind]
        for task in range(first_task[stage], first_task[stage + 1]):
            place, kind = below(random_bits(seed, HOMES, task, np.int64(0)), count), low
            while place >= room[kind]:
                place -= room[kind]
                kind += 1
            home[task] = machine[begin[kind] + place]
