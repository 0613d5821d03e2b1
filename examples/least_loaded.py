"""A central scheduler written by a user: each job goes to the nodes that have the least work left.

Covers: the contract of a user's scheduler, and how to name it on the command line and in Python.

Scenario: one scheduler decides for all nodes when a job arrives. It knows of every node what it has sent
there and what the node has reported done, and that estimated, not exactly.

How to run: ``emu run --scheduler examples/least_loaded.py:LeastLoaded --workload yahoo --nodes 15000``, or
``emu.run(LeastLoaded, "yahoo", 15_000)``.
"""

import numpy as np


class LeastLoaded:
    """The tasks of a job go to the nodes with the least estimated work left, one each."""

    def place(self, job, nodes):
        """Return the ids of ``job.num_tasks`` nodes; with more tasks than nodes, it goes around again.

        ``job`` has job_id, submit_s, num_tasks, estimate_s and is_long; ``nodes`` has, for N nodes,
        work_left_s (float64, estimated), tasks (assigned and not ended) and slots.
        """
        emptiest_first = np.argsort(nodes.work_left_s, kind="stable")
        return np.resize(emptiest_first, job.num_tasks)
