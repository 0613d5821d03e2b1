"""My policy: the tasks of the job that arrived first, each on the first machine that has room.

One resource manager decides what starts when a job arrives or a task ends. What it may use is in docs/schedulers.md,
"A DAG scheduler of your own".
"""

import numpy as np


class MyPolicy:
    """First come, first served, with packing on the first machine that fits."""

    def launch(self, stages, machines, now_s):
        """Return pairs (stage, machine), places in the arrays: each launches the next task of that stage there."""
        free, pairs = machines.free.copy(), []
        for stage in np.flatnonzero(stages.fits):  # stages are in the order in which their jobs arrived
            for _ in range(stages.ready[stage]):
                room = np.flatnonzero((free >= stages.demand[stage]).all(axis=1))
                if room.size == 0:
                    break
                free[room[0]] -= stages.demand[stage]
                pairs.append((stage, room[0]))
        return pairs
