"""My policy: each task goes to the node with the least work left.

One scheduler decides for all nodes when a job arrives. What it may use is in docs/schedulers.md, "A central scheduler
of your own".
"""

import numpy as np


class MyPolicy:
    """The tasks of a job on the nodes with the least work left; attributes are parameters (`--set most=2`)."""

    most = 1
    """Tasks of a job that may go to the same node before another is used."""

    def place(self, job, nodes):
        """Return the ids of ``job.num_tasks`` nodes."""
        emptiest_first = np.argsort(nodes.work_left_s, kind="stable")
        return np.resize(np.repeat(emptiest_first, self.most), job.num_tasks)
