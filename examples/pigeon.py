"""Pigeon in plain Python: distributors spread tasks over groups of workers, each of which has a master.

    emu compare --schedulers sparrow,eagle,examples/pigeon.py:Pigeon --workload yahoo --nodes 2000 \\
        --set workload_options.jobs=2000

1. A job arrives at a distributor, which knows nothing of workers: it hands the job's tasks over to the masters, as many
   to each as to the others, and goes on in turn with the next job.
2. A master gives a high-priority task (of a short job) to an idle worker of its group, to a reserved one only if all
   others are busy. A low-priority task never goes to a reserved worker. Tasks without a worker wait at the master, in a
   queue of their priority.
3. A worker whose task has ended gets the next task from its master. With weighted fair queueing that is one of high
   priority, and after `weight` of these in a row one of low priority, if one waits. A reserved worker gets tasks of
   high priority alone.

**Deviations from the paper.** Workers of a group are neighbours by number. A worker with several slots is as many
workers, all of them reserved or none. A group of one worker reserves none.

References: Wang, Li, Lei, Che, Jiang, Sun: Pigeon: an Effective Distributed, Hierarchical Datacenter Job Scheduler,
SoCC 2019, https://doi.org/10.1145/3357223.3362728
"""

from collections import deque

from emu import Cluster, Job


class Pigeon:
    """Two layers: distributors hand tasks over to masters, and each master knows its group of workers (SoCC 2019)."""

    schedulers = 10
    """Distributors."""
    coordinators = 100
    """Masters, one for each group."""
    reserved = 0.02
    """Share of the workers of a group that are for high-priority tasks alone."""
    weight = 10
    """High-priority tasks in a row after which a low-priority task has its turn."""
    look_again_s = 10.0
    """How often a master looks whether a worker that has failed is up."""

    def start(self, num_nodes: int, seed: int, cluster: Cluster) -> None:
        """Make the state of a distributor, or that of a master whose workers are all idle."""
        groups = min(self.coordinators, num_nodes)
        self.masters = cluster.coordinators[:groups]
        self.next_master = seed % groups
        if cluster.scheduler not in self.masters:
            return
        group = self.masters.index(cluster.scheduler)
        first, end = (num_nodes * g // groups for g in (group, group + 1))
        kept = round(self.reserved * (end - first))
        self.first_general = first + (max(kept, 1) if self.reserved and end - first > 1 else 0)
        slots = cluster.slots
        self.idle_reserved = [n for n in range(first, self.first_general) for _ in range(slots[n])]
        self.idle = [n for n in range(self.first_general, end) for _ in range(slots[n])]
        self.high: deque[Job] = deque()  # a job for each task that waits
        self.low: deque[Job] = deque()
        self.in_a_row = 0

    def on_arrival(self, job: Job, cluster: Cluster) -> None:
        """Step 1, at a distributor: hand over the tasks, an equal share to each master."""
        each, more = divmod(job.num_tasks, len(self.masters))
        for i in range(len(self.masters) if each else more):
            master = self.masters[(self.next_master + i) % len(self.masters)]
            cluster.hand_over(job, master, each + (i < more))
        self.next_master += more

    def on_tasks(self, job: Job, count: int, cluster: Cluster) -> None:
        """Step 2, at a master: give tasks to idle workers; the others wait."""
        workers = [self.idle.pop() for _ in range(min(count, len(self.idle)))]
        if not job.is_long:
            more = min(count - len(workers), len(self.idle_reserved))
            workers += [self.idle_reserved.pop() for _ in range(more)]
        if workers:
            cluster.place(job, workers)
        (self.low if job.is_long else self.high).extend([job] * (count - len(workers)))

    def on_freed(self, job: Job, node: int, start_s: float, finish_s: float, cluster: Cluster) -> None:
        """Step 3, at a master: a worker is idle."""
        self.give_work(node, cluster)

    def give_work(self, node: int, cluster: Cluster) -> None:
        """Give a worker the task whose turn it is."""
        is_reserved = node < self.first_general
        takes_low = self.low and not is_reserved
        if self.high and not (takes_low and self.in_a_row >= self.weight):
            self.in_a_row += 1
            cluster.place(self.high.popleft(), [node])
        elif takes_low:
            self.in_a_row = 0
            cluster.place(self.low.popleft(), [node])
        else:
            (self.idle_reserved if is_reserved else self.idle).append(node)

    def on_lost(self, job: Job, node: int, cluster: Cluster) -> None:
        """A task was lost with its worker: look at times whether that is repaired."""
        cluster.wake(self.look_again_s, node)

    def on_wake(self, number: int, cluster: Cluster) -> None:
        """Give a worker that is up again its next task."""
        if cluster.is_down(number):
            cluster.wake(self.look_again_s, number)
        else:
            self.give_work(number, cluster)
