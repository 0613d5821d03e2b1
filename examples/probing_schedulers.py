"""Schedulers that probe, in plain Python: Sparrow, Hawk, a variant of Eagle, and the power of two choices.

    emu compare --schedulers sparrow,examples/probing_schedulers.py:Sparrow,examples/probing_schedulers.py:Hawk \\
        --workload yahoo --nodes 2000 --set workload_options.jobs=2000

What the kernel does for them: a probe waits in its node's queue, the node asks for a task when its turn comes, and gets
one as long as the job has one left.
"""

import math

import numpy as np

from emu import Cluster, Job, NodeView


class Sparrow:
    """Batch sampling with late binding (SOSP 2013); task by task what the built-in `sparrow` does."""

    probe_ratio = 2.0

    def on_arrival(self, job: Job, cluster: Cluster) -> None:
        """Probe more nodes than the job has tasks."""
        count = math.ceil(self.probe_ratio * job.num_tasks)
        cluster.probe(job, cluster.draw(job, count))


class Hawk(Sparrow):
    """Long jobs centrally on the nodes with the least work, short ones by probes, with work stealing (ATC 2015)."""

    central = True
    steal_attempts = 10

    def start(self, num_nodes: int, seed: int) -> None:
        """Begin with idle nodes."""
        self.work_s = np.zeros(num_nodes)

    def on_arrival(self, job: Job, cluster: Cluster) -> None:
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

    def on_done(self, job: Job, node: int, start_s: float, finish_s: float, cluster: Cluster) -> None:
        """Take a task that has ended out of the work of its node."""
        if job.is_long:
            self.work_s[node] -= job.estimate_s


class RefusesBehindLong(Hawk):
    """Eagle's idea without its shared bits: a node with long work sends a short job's probe back (SoCC 2016)."""

    refuse_behind_long = True
    most_times = 3

    def on_rejected(self, job: Job, node: int, times: int, cluster: Cluster) -> None:
        """Probe another node; after some times one of the nodes for short jobs alone, which never refuse."""
        another = cluster.draw_again(job)
        if times >= self.most_times and cluster.first_long > 0:
            another %= cluster.first_long
        cluster.probe(job, [another], times)


class TwoChoices:
    """Each task goes to that of two random nodes that has less work, by their answers (Mitzenmacher, TPDS 2001)."""

    choices = 2

    def start(self, num_nodes: int, seed: int) -> None:
        """Begin without a question."""
        self.answers: dict[int, tuple[Job, list[NodeView]]] = {}
        self.asked = 0

    def on_arrival(self, job: Job, cluster: Cluster) -> None:
        """Ask two nodes for each task."""
        for _ in range(job.num_tasks):
            self.answers[self.asked] = job, []
            cluster.ask(cluster.draw(job, self.choices), self.asked)
            self.asked += 1

    def on_load(self, node: NodeView, number: int, cluster: Cluster) -> None:
        """Place a task when both nodes have answered."""
        job, answers = self.answers[number]
        answers.append(node)
        if len(answers) == self.choices:
            del self.answers[number]
            cluster.place(job, [min(answers, key=lambda n: n.work_left_s).node_id])
