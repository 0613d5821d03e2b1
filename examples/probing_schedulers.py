"""Schedulers that probe, in plain Python: Sparrow, Hawk, and a variant of Eagle, each a class of a few lines.

    emu compare --schedulers sparrow,examples/probing_schedulers.py:Sparrow,examples/probing_schedulers.py:Hawk \\
        --workload yahoo --nodes 2000 --set workload_options.jobs=2000

What the kernel does for them: a probe waits in its node's queue, the node asks for a task when its turn comes, and gets
one as long as the job has one left.
"""

import math

import numpy as np


class Sparrow:
    """Batch sampling with late binding (SOSP 2013); task by task what the built-in `sparrow` does."""

    probe_ratio = 2.0

    def on_arrival(self, job, cluster):
        """Probe more nodes than the job has tasks."""
        count = math.ceil(self.probe_ratio * job.num_tasks)
        cluster.probe(job, cluster.draw(job, count))


class Hawk(Sparrow):
    """Long jobs centrally on the nodes with the least work, short ones by probes, with work stealing (ATC 2015)."""

    central = True
    steal_attempts = 10

    def start(self, num_nodes, seed):
        """Begin with idle nodes."""
        self.work_s = np.zeros(num_nodes)

    def on_arrival(self, job, cluster):
        """Place a long job, probe for a short one."""
        if not job.is_long:
            super().on_arrival(job, cluster)
            return
        nodes = []
        long_partition = self.work_s[cluster.first_long :]
        for _ in range(job.num_tasks):
            node = int(np.argmin(long_partition))
            long_partition[node] += job.estimate_s
            nodes.append(cluster.first_long + node)
        cluster.place(job, nodes)

    def on_done(self, job, node, start_s, finish_s, cluster):
        """Take a task that has ended out of the work of its node."""
        if job.is_long:
            self.work_s[node] -= job.estimate_s


class RefusesBehindLong(Hawk):
    """Eagle's idea without its shared bits: a node with long work sends a short job's probe back (SoCC 2016)."""

    refuse_behind_long = True
    most_times = 3

    def on_rejected(self, job, node, times, cluster):
        """Probe another node; after some times one of the nodes for short jobs alone, which never refuse."""
        another = cluster.draw_again(job)
        if times >= self.most_times and cluster.first_long > 0:
            another %= cluster.first_long
        cluster.probe(job, [another], times)
