"""A run to its end: in slices of wall time, with checkpoints, and again from the newest one when a process dies.

Between two slices progress is shown and a checkpoint written, also a last one after Ctrl-C.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from actors.compiling.kernel_cache import fingerprints_of, kept_fingerprints
from actors.hosting.checkpoint import Checkpoint, Checkpoints, Position, Refused
from actors.hosting.child import in_child, pickle_by_value
from actors.hosting.groups import Here, OnRay
from actors.hosting.interrupts import Lost, interrupt, interrupts_deferred
from actors.hosting.outcome import Observe, Outcome
from actors.hosting.partition import Asked, Partition, Progress, Report, Tell
from actors.hosting.snapshot import Snapshot
from actors.hosting.stall import StallWatch
from actors.setting import Setting
from workloads.doing import Step, doing
from workloads.units import format_duration

SLICE_S = 0.25
MOST_RESTARTS = 3  # in a row, without a checkpoint in between
PAUSE_S = 1.0  # for a cluster to notice which other processes are gone
COMPILING = "compiling the kernel (first run of this scheduler on this machine; later runs load it)"
INNER_SHARE = 0.7
"""Of the time that compiling takes, what the functions take that a loop calls; the rest is the loop itself, which comes
last, with all of them in it: 0.7 of sparrow's 264."""
# The notice of how long the decisions of a user's own scheduler take:
FIRST_S = 3.0  # of a run, after which the mean time of a decision is clear enough
LONG_S = 30.0  # no notice of a run that is expected to be shorter
GROWTH = 2.0  # another notice when the expected time has grown by this factor

Attempt = Callable[[Checkpoint | None], Outcome]


def emulate(setting: Setting, observe: Observe, **hosting: Any) -> Outcome:
    """Run an emulation with the clock `virtual`: one partition holds all actors, and runs as fast as it can.

    `hosting`: as `run_to_end`.
    """
    return run_to_end(Session, setting, observe, **hosting)


class Session:
    """The partitions of one run, in this process or in the child that drives Ray: here one, with all actors.

    Args:
        groups: `Here` or `OnRay` of `actors.hosting.groups`.
    """

    def __init__(self, groups: Any, setting: Setting, observe: Observe):
        self.group, self._is_done = groups(Partition, setting, observe), False

    def is_warm(self) -> bool:
        """Return whether all partitions can load their loop from disk."""
        return bool(self.group.is_warm())

    def start(self) -> None:
        """Compile the loop, or load it."""
        self.group.ask("start")

    def run(self, most_s: float) -> Progress:
        """Continue for about `most_s` seconds, or to the end."""
        progress: Progress = self.group.ask("run", most_s)[0]
        return progress

    def snapshots(self) -> list[Snapshot]:
        """Return the state of all partitions, between two calls of `run`."""
        snapshots: list[Snapshot] = self.group.ask("snapshot")
        return snapshots

    def restore(self, start: Checkpoint) -> None:
        """Go back to a checkpoint."""
        self.group.ask("restore", start.snapshots[0])

    def outcome(self) -> Outcome:
        """Return the result, when `run` has said that it is done."""
        outcome: Outcome = self.group.ask("outcome")[0]
        self._is_done = True
        return outcome

    def close(self) -> None:
        """End the partitions."""
        self.group.close(self._is_done)


def run_to_end(
    kind: Callable[..., Session],
    setting: Setting,
    observe: Observe,
    *arguments: Any,
    in_process: bool,
    address: str | None = None,
    progress: Report | None = None,
    tell: Tell | None = None,
    checkpoints: Checkpoints | None = None,
    begin: Callable[[Any], None] = lambda session: None,
) -> Outcome:
    """Run a session to its end, however often a process dies that it needs.

    Args:
        kind: makes the session, of a kind of groups, the setting, what is observed, and the other arguments.
        in_process: run in this process; ray is not imported.
        address: an existing Ray cluster; None starts one on this machine.
        progress: called now and then with tasks done, events handled and virtual seconds. An attribute `share_done` is
            called first, with the share of the run that is done, if a user's own scheduler decides, as the tasks done
            do not show it then. An attribute `stalled` is called with a few words about the stall that lasts
            (`actors.hosting.stall`), or None.
        tell: called with a line the user should see, such as that the first run compiles; a line that begins with
            "note: " is printed also without a terminal.
        checkpoints: to continue from, and to write; with them a run survives the loss of its actor.
        begin: called with a session that has started.

    Raises:
        Lost: Ray's processes of this emulation have died too often.
    """
    given = (Here if in_process else OnRay, setting, observe, *arguments)

    def attempt(start: Checkpoint | None) -> Outcome:
        with hosted(setting, kind, *given, in_process=in_process, address=address) as session:
            with getting_ready(setting, session.is_warm(), tell):
                session.start()
            begin(session)
            if start is not None:
                with doing("restoring the checkpoint"):
                    session.restore(start)
            return run_in_slices(session, setting, checkpoints, progress, tell)

    return recover(attempt, checkpoints)


@contextmanager
def hosted(
    setting: Setting, kind: Callable[..., Any], *arguments: Any, in_process: bool, address: str | None
) -> Iterator[Any]:
    """Yield what `kind` makes of the arguments, here or in the child that drives Ray; close it at the end."""
    if in_process:
        with closing(kind(*arguments)) as made:
            yield made
    else:
        pickle_by_value(setting.scheduler)
        with in_child(kind, *arguments, address=address) as made:
            yield made


def run_in_slices(
    session: Any,
    setting: Setting,
    checkpoints: Checkpoints | None,
    progress: Report | None,
    tell: Tell | None,
) -> Outcome:
    """Run a session that has started to its end, and fetch the result."""
    slice_s = SLICE_S if checkpoints is None else min(SLICE_S, checkpoints.period_s)
    notice, stall = DecisionTime(setting.scheduler.name, tell), StallWatch(setting, progress, tell)
    with interrupts_deferred() as interrupted:
        while True:
            state = session.run(slice_s)
            notice.update(state.asked)
            stall.update(state.tasks_done, state.at.events, state.at.virtual_s)
            if progress is not None:
                if state.asked is not None and hasattr(progress, "share_done"):
                    progress.share_done(state.asked.share_done)
                progress(state.tasks_done, state.at.events, state.at.virtual_s)
            pause(checkpoints, interrupted(), session.snapshots, state.at, stall.present)
            if state.done:
                with doing("collecting the results"):
                    outcome: Outcome = session.outcome()
                return replace(outcome, stall=stall.past)


def recover(attempt: Attempt, checkpoints: Checkpoints | None) -> Outcome:
    """Run to the end; continue from the newest checkpoint each time that a process is lost.

    `attempt` runs from a checkpoint, or from the beginning; it raises `Lost` when a process is lost, and `Refused` if
    the arrays of the checkpoint are not those of this run. Without checkpoints the first loss ends the run, else more
    than MOST_RESTARTS losses without a checkpoint in between.
    """
    if checkpoints is None:
        return attempt(None)
    start = checkpoints.load()
    if start is not None:
        checkpoints.restarts = start.at.restarts + 1
    losses, saved = 0, checkpoints.saved
    while True:
        try:
            outcome = attempt(start)
            return replace(outcome, restarts=checkpoints.restarts)
        except Refused as why:
            assert start is not None
            checkpoints.refuse(start.number, why)
            start = checkpoints.load()
        except Lost as loss:
            losses = 1 if checkpoints.saved > saved else losses + 1
            saved = checkpoints.saved
            if losses > MOST_RESTARTS:
                raise Lost(f"{loss}; {losses} times without a checkpoint in between") from None
            time.sleep(PAUSE_S)
            checkpoints.restarts += 1
            start = checkpoints.load()
            where = "from the beginning" if start is None else f"from virtual time {start.at.virtual_s:.6g} s"
            checkpoints.warn(f"{loss}; the run goes on {where}")


def pause(
    checkpoints: Checkpoints | None,
    interrupted: bool,
    take: Callable[[], list[Snapshot]],
    at: Position,
    stall: str | None = None,
) -> None:
    """Write a checkpoint if one is due, or after Ctrl-C a last one; no partition may be running.

    `take` returns the snapshots of all partitions, which are at `at`. After Ctrl-C raise KeyboardInterrupt, with the
    note on the stall that lasts.
    """
    if not interrupted:
        if checkpoints is not None and checkpoints.due():
            checkpoints.save(take(), at)
        return
    if checkpoints is not None and checkpoints.wanted():
        try:
            checkpoints.save(take(), at)
        except Exception as error:  # the run ends, as the user asked
            checkpoints.warn(f"no last checkpoint: {error}")
    raise interrupt(stall)


@contextmanager
def getting_ready(setting: Setting, warm: bool, tell: Tell | None) -> Iterator[None]:
    """Within, loops of a scheduler are compiled, or loaded where they are `warm`."""
    if tell is not None and not warm:
        tell(COMPILING)
    with doing("loading the kernel" if warm else "compiling the kernel") as step:
        if not warm:
            step.detail = compiled_so_far(setting.scheduler.loops, step)
        yield


def compiled_so_far(
    loops: Sequence[Any], step: Step, clock: Callable[[], float] = time.monotonic
) -> Callable[[], str]:
    """Return what says how many functions of loops are compiled since a step began, and how long the rest will take.

    It looks at the disk of this machine, whichever process compiles. Nothing is said while none is there.
    """
    wanted = fingerprints_of(loops) - kept_fingerprints()
    seen, seen_s = 0, 0.0

    def text() -> str:
        nonlocal seen, seen_s
        now_s = clock() - step.since
        done = len(wanted & kept_fingerprints())
        if done == 0:
            return ""
        if done > seen:
            seen, seen_s = done, now_s
        left_s = seen_s * len(wanted) / (seen * INNER_SHARE) - now_s
        left = f", about {format_duration(round(left_s))} left" if left_s >= 1 else ""
        return f"{done} of {len(wanted)} functions{left}"

    return text


class DecisionTime:
    """A notice of how long a run will take whose decisions are made in plain Python."""

    def __init__(self, scheduler: str, tell: Tell | None):
        self._scheduler = scheduler
        self._tell = tell
        self._announced_s = LONG_S / GROWTH

    def update(self, asked: Asked | None) -> None:
        """Send the notice if it is due."""
        if self._tell is None or asked is None or asked.wall_s < FIRST_S or not 0 < asked.share_done < 1:
            return
        expected_s = asked.wall_s / asked.share_done
        if expected_s >= GROWTH * self._announced_s:
            self._announced_s = expected_s
            each = format_duration(asked.took_s / max(asked.times, 1))
            self._tell(
                f"note: {self._scheduler}, in plain Python, takes {each} a decision, {asked.times:,} so far; about"
                f" {format_duration(expected_s)} for this run"
            )
