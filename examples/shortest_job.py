"""A scheduler of DAG jobs written by a user: the job with the shortest critical path goes first.

Covers: the contract of a user's scheduler of DAG jobs, and how to name it on the command line.

Scenario: one resource manager decides which tasks start on which machines when a job arrives or a task ends. It knows
of every machine what it has launched there and what has been reported as ended, and estimates of durations and demands.

How to run: ``emu run --scheduler examples/shortest_job.py:ShortestFirst --workload query-dags --nodes 100``.
"""

import numpy as np


class ShortestFirst:
    """The job with the shortest critical path first; each task on the first machine that has room."""

    def launch(self, stages, machines, now_s):
        """Return pairs (stage, machine), places in the arrays: each launches the next task of that stage there.

        ``stages`` has, for K stages with tasks that may be launched, ready (how many), fits (whether some machine has
        room for one), demand ([K, R]), job_path_s and more; ``machines`` has, for N machines, free ([N, R]) and more.
        """
        fitting = np.flatnonzero(stages.fits)
        if fitting.size == 0:
            return []
        order = fitting[np.argsort(stages.job_path_s[fitting], kind="stable")]
        demand, left, free = stages.demand[order], stages.ready[order], machines.free.copy()
        some = np.flatnonzero((free >= demand.min(axis=0)).all(axis=1))  # machines with room for anything
        room = (free[some] >= demand[:, None]).all(axis=2)
        pairs = []
        while room.any():
            first, at = divmod(int(room.argmax()), some.size)
            machine = some[at]
            pairs.append((order[first], machine))
            left[first] -= 1
            free[machine] -= demand[first]
            room[:, at] = (free[machine] >= demand).all(axis=1) & (left > 0)
            room[first] &= left[first] > 0
        return pairs
