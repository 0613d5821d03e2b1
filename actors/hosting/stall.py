"""A stall: no task has ended for long, such as where the time between failures is far below the duration of a task.

A run is watched between its slices, so that the engine has no work with it. A run stalls when no task has ended for
`LONG` times the duration of the longest, and `MANY_EVENTS` events have been handled meanwhile: a run in which nothing
happens, as between two arrivals that are days apart, does not stall.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.environment import frequent_failures
from actors.failures import durations_ns
from actors.kernel.queue import NEVER
from actors.setting import Setting
from clusters.failures import NODE
from workloads.errors import InputError
from workloads.units import format_duration

NS = 1_000_000_000
LONG = 10
MANY_EVENTS = 1_000


class StallWatch:
    """The watch over one run.

    Args:
        progress: an attribute `stalled` is called with a few words about the stall that lasts, or None.
        tell: called with a note when a stall begins.
    """

    def __init__(self, setting: Setting, progress: Any, tell: Callable[[str], None] | None):
        self.present: str | None = None  # the line about the stall that lasts; None while tasks end
        self.past: str | None = (
            None  # the line about the longest stall, for the end of the run; None without one
        )
        self._setting, self._tell = setting, tell
        self._short = ""
        self._show = getattr(progress, "stalled", None)
        self._arrivals_ns, _ = setting.scheduler.worlds.span_ns(setting)
        self._least_s = math.nan  # of a stall; computed when it is needed
        self._most_s = 0.0
        self._done = self._events = 0
        self._since_s = float(self._arrivals_ns[0]) / NS

    def update(self, tasks_done: int, events: int, virtual_s: float) -> None:
        """Note the progress of the run, before it is shown."""
        before = self.present
        self._look(tasks_done, events, virtual_s)
        if self._tell is not None and before is None and self.present is not None:
            self._tell(f"note: {self._setting.scheduler.name}: {self.present}")
        if self._show is not None:
            self._show(None if self.present is None else self._short)

    def _look(self, tasks_done: int, events: int, virtual_s: float) -> None:
        if tasks_done != self._done:
            self._done, self._events, self._since_s = tasks_done, events, virtual_s
            self.present = None
            return
        if events - self._events < MANY_EVENTS:
            return
        if math.isnan(self._least_s):
            self._least_s = LONG * longest_s(self._setting)
        if self.present is None:
            self._skip_wait(virtual_s)
        lasts_s = virtual_s - self._since_s
        if lasts_s <= self._least_s:
            return
        cause, part = likely_cause(self._setting, virtual_s), self._setting.scheduler.worlds.part
        lasts = f"for {format_duration(lasts_s)}"
        self._short = f"no {part} has ended {lasts}{cause.short}"
        self.present = (
            f"no {part} has ended {lasts} of virtual time; {cause.why}; {tasks_done:,} of"
            f" {self._setting.num_tasks:,} have ended, {events - self._events:,} events were handled since"
        )
        if lasts_s > self._most_s:
            self._most_s = lasts_s
            until = format_duration(virtual_s)
            self.past = f"no {part} ended {lasts} of virtual time, until {until}; {cause.why}"

    def _skip_wait(self, virtual_s: float) -> None:
        """Count from the next arrival if it came so late that all tasks before it may have ended."""
        following = np.searchsorted(self._arrivals_ns, round(self._since_s * NS), side="right")
        if following < self._arrivals_ns.size:
            next_s = float(self._arrivals_ns[following]) / NS
            if self._least_s < next_s - self._since_s and next_s <= virtual_s:
                self._since_s = next_s


def longest_s(setting: Setting) -> float:
    """Return how long the longest task takes, as a straggler and on the slowest node; for coflows the busiest port."""
    _, least_ns = setting.scheduler.worlds.span_ns(setting)
    if setting.dynamics.straggler_share:
        least_ns = int(durations_ns(setting).max())
    slowest = float(setting.cluster.attribute("speed").min()) if setting.machine_speed else 1.0
    return least_ns / NS / slowest


class Cause(NamedTuple):
    """The likely cause of a stall."""

    short: str  # for a line of progress
    why: str  # the setting, its effect, and a better value


def likely_cause(setting: Setting, virtual_s: float) -> Cause:
    """Return which setting of failures is the likely cause of a stall, if one is."""
    dynamics, most_s = setting.dynamics, longest_s(setting)
    if frequent := frequent_failures(dynamics, most_s):
        return Cause(": dynamics.mtbf is too short", f"likely cause: dynamics.mtbf: {frequent}")
    if dynamics.outages is not None:
        listed = dynamics.outages
        down = (listed.kind == NODE) & (listed.fail_s <= virtual_s) & (virtual_s < listed.repair_s)
        if down.any():
            for_good = int(np.isinf(listed.repair_s[down]).sum())
            return Cause(
                f": {int(down.sum()):,} nodes are down",
                f"likely cause: dynamics.failures: {int(down.sum()):,} of {setting.cluster.num_nodes:,} nodes are down,"
                f" {for_good:,} of them for good, and jobs that may use no other nodes wait; an earlier repair_s would"
                " let them run",
            )
    if dynamics.mtbf_s is not None and setting.switch.scheduler != "none":
        return Cause(
            ": machines fail while tasks fetch",
            f"likely cause: dynamics.mtbf: of {setting.cluster.num_nodes:,} machines one fails each"
            f" {format_duration(dynamics.mtbf_s / setting.cluster.num_nodes)}, and each fetch from it begins again; a"
            " longer one, or faster ports (fabric.port_speed), would let fetches end",
        )
    longest = setting.scheduler.worlds.longest.format(format_duration(most_s))
    return Cause("", f"{longest}, and no setting of failures explains it")


def too_late(setting: Setting) -> InputError:
    """Return the error about a run that does not end."""
    return InputError(
        f"virtual time has reached {NEVER / NS:.2g} s, 146 years, and {setting.scheduler.name} has tasks left;"
        " are the workload's times in seconds, and does the cluster have nodes enough?"
        f" {likely_cause(setting, NEVER / NS).why}"
    )
