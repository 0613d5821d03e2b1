"""The memory that an emulation needs, estimated before it starts.

The peak of processes that emulate was measured for sparrow, eagle and central-lwl with 1,000 to 1,000,000 nodes, 1,000
to 97,000 jobs and 41,000 to 3.9 million tasks: 180 MiB, 40 bytes a task, 150 a node; a Ray worker that has built a
partition of 15,000 nodes holds 265 MiB. Queues that grow under overload are not in it: hence more for tasks. Of coflows
the 706,397 flows of Facebook's trace took 860 MiB.
"""

from pathlib import Path

from actors.setting import Setting
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError

PROCESS_BYTES, BYTES_PER_TASK, BYTES_PER_JOB, BYTES_PER_NODE = 300 << 20, 150, 400, 264
BYTES_PER_FLOW = 850


def needed_bytes(setting: Setting, partitions: int = 1) -> int:
    """Return an upper estimate of the memory that all partitions need.

    Every partition knows all jobs and nodes by their number; tasks lie where they wait. Flows are laid out in each.
    """
    workload = setting.workload
    if isinstance(workload, CoflowWorkload):
        return partitions * (PROCESS_BYTES + BYTES_PER_FLOW * workload.num_flows)
    each = PROCESS_BYTES + BYTES_PER_JOB * workload.num_jobs + BYTES_PER_NODE * setting.cluster.num_nodes
    return partitions * each + BYTES_PER_TASK * workload.num_tasks


def refuse_too_large(setting: Setting, partitions: int, free_bytes: int) -> None:
    """Refuse a run that needs more memory than is free; the error says how many partitions would fit.

    Raises:
        InputError: the partitions do not fit.
    """
    needed = needed_bytes(setting, partitions)
    if needed <= free_bytes:
        return
    one, two = needed_bytes(setting, 1), needed_bytes(setting, 2)
    fit = 1 + (free_bytes - one) // (two - one)
    what = f"need about {needed / 2**30:.1f} GiB and {free_bytes / 2**30:.1f} GiB are free"
    if fit < 1:
        raise InputError(f"--nodes: {setting.cluster.num_nodes:,} nodes {what}, in one partition too")
    raise InputError(f"--partitions: {partitions} partitions {what}; {fit} would fit")


def free_bytes_here() -> int | None:
    """Return the free memory of this machine; None where it is not known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (free,) = (line.split()[1] for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError):
        return None
    return int(free) << 10
