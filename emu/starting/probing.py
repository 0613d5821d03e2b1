"""My policy: probes wait in the queues of nodes, and the node whose turn comes first gets the task.

Several schedulers decide side by side, each for its own jobs. What else such a class may handle, such as probes that
come back, tasks that end or messages of its own, is in docs/schedulers.md, "A probing scheduler of your own".
"""

import math


class MyPolicy:
    """Batch sampling with late binding; attributes are parameters (`--set probe_ratio=3`)."""

    probe_ratio = 2.0
    """Probes of a job for each of its tasks."""

    def on_arrival(self, job, cluster):
        """Probe random nodes, as many as the ratio says; `job.demand` and `cluster.capacity` have cores and memory."""
        count = math.ceil(self.probe_ratio * job.num_tasks)
        cluster.probe(job, cluster.draw(job, count))
