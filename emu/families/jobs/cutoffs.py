"""Where short jobs end: the cut-off that is given, that of the workload, or a share of the jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workloads.hints import in_words
from workloads.units import format_duration, parse_share

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from emu.configuration.config import Config
    from workloads.dags import DagWorkload
    from workloads.jobs import JobWorkload

DEFAULT = "90%"
"""The share of the jobs that are short where neither the user nor the workload states a cut-off."""
AUTO = "auto"
"""The value of the key that asks for a cut-off also where no scheduler needs one."""
_TIES = 0.005  # the share of jobs from which a note mentions ties


class Classes(NamedTuple):
    """What divides jobs and nodes.

    Attributes
    ----------
    short_cutoff_s : float
        Mean task duration up to which a job is short; infinity: all are.
    long_partition : float
        Share of the nodes that long jobs may use.
    notes : tuple of str
        On a cut-off that follows from a share of the jobs.
    """

    short_cutoff_s: float
    long_partition: float
    notes: tuple[str, ...] = ()


def classes_of(
    config: Config, workload: JobWorkload | DagWorkload, schedulers: Sequence[Scheduler]
) -> Classes:
    """Return short cut-off and long partition: the user's, else the workload's.

    Without both, all jobs are short, and long jobs may use all nodes; where a scheduler treats short and long jobs
    apart, or the cut-off is asked for by ``auto``, the `DEFAULT` share of the jobs is short.
    """
    given, own = config["short_cutoff"], workload.short_cutoff_s
    partition = config["long_partition"] if config["long_partition"] is not None else workload.long_partition
    partition = 1.0 if partition is None else partition
    if given not in (None, AUTO):
        if not isinstance(given, str):
            return Classes(given, partition)
        cutoff_s = cutoff_of_share(workload, given)
        return Classes(cutoff_s, partition, (_note_on_share(workload, given, cutoff_s),))
    if own is not None:
        return Classes(own, partition)
    hybrid = [scheduler.name for scheduler in schedulers if scheduler.hybrid]
    if given is None and not hybrid:
        return Classes(math.inf, partition)
    cutoff_s = cutoff_of_share(workload, DEFAULT)
    return Classes(cutoff_s, partition, (_note_on_default(workload, hybrid, cutoff_s),))


def cutoff_of_share(workload: JobWorkload | DagWorkload, share: str) -> float:
    """Return a quantile of the jobs' mean task durations, in seconds; a job with exactly this duration is short."""
    level = parse_share(share, "short_cutoff")
    cutoff_ns = math.floor(np.quantile(workload.arrays().mean_ns, level))  # classes are compared in ns
    cutoff_s = cutoff_ns / 1e9
    return cutoff_s if cutoff_s * 1e9 >= cutoff_ns else math.nextafter(cutoff_s, math.inf)


def _note_on_share(workload: JobWorkload | DagWorkload, given: str, cutoff_s: float) -> str:
    """Return a note on a cut-off that is a share of the jobs, with the share that is short if it differs."""
    short = _short_share(workload, cutoff_s)
    differs = short >= parse_share(given, "short_cutoff") + _TIES
    more = f", and all others of that duration: {short:.1%} are short" if differs else ""
    return (
        f"jobs are short up to a mean task duration of {format_duration(cutoff_s)}: {given} of the jobs{more}"
    )


def _note_on_default(workload: JobWorkload | DagWorkload, hybrid: Sequence[str], cutoff_s: float) -> str:
    """Return a note on a cut-off that was chosen, as neither the user nor the workload states one."""
    why = f", which {in_words(hybrid)} need{'s' if len(hybrid) == 1 else ''}" if hybrid else ""
    short = f"{_short_share(workload, cutoff_s):.1%} of the jobs"
    return (
        f"{workload.name} states no cut-off of short jobs{why}: jobs are short up to a mean task duration of "
        f"{format_duration(cutoff_s)} ({short}), as by --short-cutoff {DEFAULT}"
    )


def _short_share(workload: JobWorkload | DagWorkload, cutoff_s: float) -> float:
    return float(np.mean(workload.arrays().mean_ns <= cutoff_s * 1e9))
