"""The keys that runs of DAG jobs have: most are those of jobs."""

from __future__ import annotations

from actors.environment import Estimates, Switch
from emu.configuration.key import Key
from emu.families.coflows.keys import KEYS as OF_COFLOWS
from emu.families.jobs.keys import KEYS as OF_JOBS

MAX_MIN_FAIR = "fair"
"""The network without a coordinator."""

_SAME = {
    "cluster",
    "slots",
    "cluster_seed",
    "machines",
    "without",
    "load_by",
    "short_cutoff",
    "long_partition",
    "infeasible",
    "priorities",
    "slowdown_threshold",
    "network.spread",
    "network.cross_rack_delay",
    "estimates.error",
    "estimates.size",
    "cost.per_job",
    "cost.per_task",
}

KEYS = (
    *(key for key in OF_JOBS if key.name in _SAME or key.name.startswith(("dynamics.", "preemption."))),
    *(key for key in OF_COFLOWS if key.name == "fabric.port_speed" or key.name.startswith("cost.per_")),
    Key(
        "network.scheduler",
        "text",
        Switch.scheduler,
        "Who divides the network among the flows that carry input of tasks between machines: `none`, input takes no "
        f"time; `{MAX_MIN_FAIR}`, all flows share the ports of machines max-min fairly, as TCP nearly does; or a "
        "coordinator, for which the flows of a shuffle are a coflow: a scheduler of coflows that needs neither "
        "deadlines nor a view of all flows, one of one's own (`path.py:Class`), or a variant of one. Where it is "
        "given, schedulers of jobs run DAG jobs stage by stage.",
        option="--network",
    ),
    Key(
        "network.registration",
        "choice",
        Switch.registration,
        "When the flows of a shuffle are registered: when all tasks of the parent have ended, `barrier`; or as each of "
        "them ends, `pipelined`, for which tasks of the child may be launched when all tasks of the parent have been.",
        choices=("barrier", "pipelined"),
    ),
    Key(
        "network.shuffle",
        "choice",
        Switch.shuffle,
        "Whether a task is launched and then fetches what others send it, `pull`; or that is sent, when they have "
        "ended, to a machine that is drawn for the task, `push`, where it is launched when all has come.",
        choices=("pull", "push"),
    ),
    Key(
        "network.waves",
        "choice",
        Switch.waves,
        "A shuffle is fetched in waves, by tasks that are launched at one time. To a coordinator the waves of a "
        "shuffle are one coflow, `together`, or each wave is one, `apart`.",
        choices=("together", "apart"),
    ),
    Key(
        "network.skew",
        "number",
        Switch.skew,
        "How unevenly the tasks of a stage share what its parents send over an all-to-all edge: parts in proportion to "
        "1, 1/2^s, 1/3^s, … in the order of the tasks, from one on that is drawn; 0: all have the same.",
        low=0,
    ),
    Key(
        "network.input",
        "choice",
        Switch.input,
        "From where tasks read their parts of their job's input: `outside`, it takes no time; `share`, a part is on "
        "its task's machine with the probability `network.local_share`, else on any other; `replicas`, each part lies "
        "on some machines. From another machine it comes over the network.",
        choices=("outside", "share", "replicas"),
    ),
    Key(
        "network.local_share",
        "share",
        Switch.local_share,
        "Share of the tasks that have their part of the job's input on their machine.",
        needs=("network.input=share",),
    ),
    Key(
        "network.replicas",
        "integer",
        Switch.replicas,
        "On how many machines each part of jobs' input lies, at most all.",
        low=1,
        needs=("network.input=replicas",),
    ),
    Key(
        "network.replica_placement",
        "choice",
        Switch.replica_placement,
        "On which machines parts lie: on any, `random`; or as in HDFS, `racks`: one on any machine, the second in "
        "another rack, the third in that rack too, others anywhere. In a cluster of one rack both are the same.",
        choices=("random", "racks"),
        needs=("network.input=replicas",),
    ),
    Key(
        "network.locality_wait",
        "duration",
        Switch.locality_wait_s,
        "How long a job waits for machines that have parts of its input, since it was first passed over on one that "
        "has none, as in delay scheduling; then it launches anywhere. 0: tasks go in order, wherever their parts lie.",
        needs=("network.input=replicas",),
    ),
    Key(
        "estimates.demands",
        "flag",
        Estimates.demands,
        "Whether the demands of tasks are misestimated as their durations are: what a scheduler places is not what "
        "tasks use.",
        needs=("estimates.size",),
        describes=True,
    ),
    Key(
        "overuse",
        "choice",
        "ignored",
        "What happens where the tasks that run on a machine need more of a resource than it has, as schedulers do not "
        "see it (`sees`) or misestimate demands: nothing, `ignored`; or they slow each other down, `slows`: a resource "
        "is shared in proportion to demands, and a task is as fast as the scarcest of those that it needs allows.",
        choices=("ignored", "slows"),
    ),
    Key(
        "fairness.window",
        "duration",
        60.0,
        "Length of the windows of time over which Jain's fairness index is computed.",
        low=1e-3,
    ),
)
