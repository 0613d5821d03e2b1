"""The memory that an emulation needs, estimated before it starts.

A process that emulates takes 180 MiB at its peak, a Ray worker that has built a partition of 15,000 nodes 265 MiB.
"""

from actors.setting import Setting
from workloads.errors import InputError

PROCESS_BYTES = 300 << 20


def needed_bytes(setting: Setting, partitions: int = 1) -> int:
    """Return an upper estimate of the memory that all partitions need, from the family's estimate of its worlds."""
    each, shared = setting.scheduler.worlds.needed_bytes(setting)
    return partitions * (PROCESS_BYTES + each) + shared


def refuse_too_large(setting: Setting, partitions: int, free_bytes: int) -> None:
    """Refuse a run that needs more memory than is free; the error states how many partitions would fit."""
    needed = needed_bytes(setting, partitions)
    if needed <= free_bytes:
        return
    one, two = needed_bytes(setting, 1), needed_bytes(setting, 2)
    fit = 1 + (free_bytes - one) // (two - one)
    what = f"need about {needed / 2**30:.1f} GiB and {free_bytes / 2**30:.1f} GiB are free"
    if fit < 1:
        raise InputError(f"--nodes: {setting.cluster.num_nodes:,} nodes {what}, in one partition too")
    raise InputError(f"--partitions: {partitions} partitions {what}; {fit} would fit")
