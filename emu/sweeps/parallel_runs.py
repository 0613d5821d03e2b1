"""Many runs, each in its own directory: finished runs are kept, and a failed run does not stop the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu.configuration.config import Config
from emu.configuration.costs import most_partitions
from emu.configuration.keys import WINDOWS_PARTITIONS
from emu.configuration.loading import Loading
from emu.configuration.plan import Plan, prepare
from emu.configuration.workload_cache import WorkloadCache
from emu.directories import locks
from emu.directories import run_directory as rd
from emu.families.registry import find_family
from emu.running.emulation import emulate_setting, execute, keep_workload, observe, recording_of, result_of
from emu.running.resuming import reason_to_compute, report_rerun
from emu.terminal import note
from workloads.errors import UnavailableError

if TYPE_CHECKING:
    from actors.hosting.outcome import Observe, Outcome
    from actors.hosting.recording import Recording
    from actors.setting import Setting


@dataclass(frozen=True)
class Hosting:
    """The place where runs are computed, and how many in parallel."""

    parallel: int | None = None  # runs at once; None: as many as Ray has CPUs
    retries: int = 2  # times a run is tried again when its worker process dies
    in_process: bool = False  # one run after another in this process, without Ray
    address: str | None = None  # of a running Ray cluster


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one scheduler and one seed, checked, and the directory it is written to.

    It holds no workload, as those of many runs may not fit into memory: `plan` loads it again.
    """

    config: Config
    cache: WorkloadCache
    folder: Path
    begins: dict[str, Any]  # its manifest before the run
    source: str  # hash of the workload as it was loaded and drawn: runs with the same share it
    notes: tuple[str, ...]
    load: float | None  # offered load
    memory_bytes: int  # an upper estimate of the memory that a process needs for it

    @classmethod
    def of(cls, plan: Plan, folder: Path) -> Run:
        """Return the run of a plan of one scheduler and one seed."""
        from actors.hosting.groups import needed_bytes

        memory, source = needed_bytes(plan.setting(0)), plan.source.fingerprint()
        return cls(plan.config, plan.cache, folder, plan.manifest(0), source, plan.notes, plan.load, memory)

    @property
    def plan(self) -> Plan:
        """The plan, made again; its workload is loaded again only if the cache has dropped it."""
        return prepare(self.config, self.cache, one_of_many=True)  # it was checked when this was made

    def is_done(self) -> bool:
        """Whether the directory holds this run, finished and with all its files as they were written."""
        return not reason_to_compute(self.folder, self.begins)


class RunFailed(RuntimeError):
    """A run that others depend on has failed: which one, and its error in one line."""


Bar = Callable[[str, int, int], AbstractContextManager[Any]]
"""Makes, from a label, a number of runs and how many are done, what `emu.running.progress.runs_bar` yields."""
Called = Callable[[Run], None]
Ended = Callable[[Run, str | None], None]
"""Called when a run has ended, with its error in one line if it failed."""


def run_all(
    runs: Sequence[Run],
    total: int,
    out: Path,
    hosting: Hosting,
    did: Ended,
    tell: Callable[[str], None] | None = None,
    show: Callable[[int, int, str], None] | None = None,
) -> None:
    """Compute runs, the last of `total` below `out`, and write their directories, those of one workload in a row.

    `did` is called as runs end, and `show` with the runs done, those that failed, and the path of the one that begins.
    Files of an earlier attempt are replaced. The manifest of a run that fails has the status `failed`, with the error;
    after Ctrl-C those of the runs that were being computed have the status `interrupted`.
    """
    by_workload: dict[str, list[Run]] = {}
    for run in runs:
        by_workload.setdefault(run.source, []).append(run)
    ordered = [run for of_it in by_workload.values() for run in of_it]
    done, failed = total - len(runs), 0

    def started(run: Run) -> None:
        if show is not None:
            show(done, failed, run.folder.relative_to(out).as_posix())

    def ended(run: Run, error: str | None) -> None:
        nonlocal done, failed
        did(run, error)
        done, failed = done + 1, failed + (error is not None)
        started(run)

    try:
        if hosting.in_process:
            for run in ordered:
                plan = _claim(run)
                started(run)
                here = replace(plan, config=plan.config.but(in_process=True))
                _finish(run, partial(execute, here, 0, None, tell), ended)
        elif ordered:
            _run_on_ray(ordered, hosting, started, ended, tell)
    finally:
        for run in ordered:
            locks.release(run.folder)


def _run_on_ray(
    runs: Sequence[Run],
    hosting: Hosting,
    started: Called,
    ended: Ended,
    tell: Callable[[str], None] | None,
) -> None:
    from actors.hosting.child import address_of
    from actors.hosting.pool import Pool

    with Pool(hosting.parallel, hosting.retries, hosting.address, note) as pool:
        joins = address_of(hosting.address) is not None
        _prepare_workers(pool, runs, None if joins else tell, not joins)
        shared = _Shared(pool, runs)
        waiting = list(reversed(runs))
        flying: dict[Hashable, tuple[Run, Plan]] = {}
        try:
            while waiting or flying:
                room = pool.parallel - sum(_width(run.config) for run, _ in flying.values())
                if waiting and (not flying or _width(waiting[-1].config) <= room):
                    run = waiting.pop()
                    plan = _claim(run)
                    started(run)
                    flying[id(run)] = (run, plan)
                    # The workload travels apart, once for all runs; the worker puts it back (`_task`).
                    setting = replace(plan.setting(0), workload=None)
                    watched, own = observe(plan, 0, run.folder), run.config["clock"] == "virtual"
                    # What a worker must know; objects that a user gave stay here.
                    known = {"scheduler": None, "workload": None, "in_process": own, "address": None}
                    arguments = shared.take(run, plan), _wanted(plan), setting, watched
                    needs = {"memory_bytes": run.memory_bytes, "cpus": int(own)}
                    pool.submit(id(run), _task, *arguments, {**plan.config.values, **known}, **needs)
                    continue
                key, outcome, error = pool.ended()
                run, plan = flying[key]
                shared.release(run)
                _finish(run, partial(_unpack, plan, recording_of(plan, 0, run.folder), outcome, error), ended)
                del flying[key]
        except BaseException as error:
            status = rd.INTERRUPTED if isinstance(error, KeyboardInterrupt) else rd.FAILED
            for run, _ in flying.values():
                if rd.read_manifest(run.folder).get("status") == rd.RUNNING:
                    rd.mark(run.folder, status)
            raise


class _Shared:
    """Distinct workloads in the object store: put at their first run, let go after their last."""

    def __init__(self, pool: Any, runs: Iterable[Run]):
        self._pool = pool
        self._uses = Counter(run.source for run in runs)
        self._references: dict[str, Any] = {}

    def take(self, run: Run, plan: Plan) -> Any:
        if run.source not in self._references:
            self._references[run.source] = self._pool.put(plan.source)
        return self._references[run.source]

    def release(self, run: Run) -> None:
        self._uses[run.source] -= 1
        if not self._uses[run.source]:
            self._pool.drop(self._references.pop(run.source))


def _task(
    source: Any,
    wanted: tuple[float, float] | None,
    setting: Setting,
    observe: Observe,
    values: Mapping[str, Any],
) -> Outcome:
    """Emulate in a Ray worker; the workload comes from the object store and is brought to its load here."""
    workload = source
    if wanted is not None:
        workload = find_family(setting.scheduler.family)[Loading].at_load(source, *wanted)
    return emulate_setting(replace(setting, workload=workload), observe, values)


def _compile(setting: Setting) -> None:
    """Compile a scheduler's loop into the disk cache of this machine."""
    from actors.hosting.outcome import Observe
    from actors.hosting.partition import Partition

    Partition(setting, Observe()).start()


def _prepare_workers(pool: Any, runs: Sequence[Run], tell: Callable[[str], None] | None, here: bool) -> None:
    """Let users' classes be pickled, and compile once what this machine's disk cache lacks, before workers do it."""
    from actors.hosting.child import pickle_by_value
    from actors.kernel.compiled import is_warm

    cold: dict[str, tuple[Setting, int]] = {}
    for run in {
        (run.begins["config"]["scheduler"], *map(id, run.config["scheduler"])): run for run in runs
    }.values():
        plan = run.plan
        scheduler = plan.schedulers[0]
        pickle_by_value(scheduler)
        if here and not all(map(is_warm, scheduler.loops)):
            cold[scheduler.policy] = (plan.setting(0), run.memory_bytes)
    if cold and tell is not None:
        tell(f"compiling {', '.join(cold)} (first run on this machine; later runs load it)")
    for name, (setting, memory) in cold.items():
        pool.submit(name, _compile, setting, memory_bytes=memory)
    for _ in cold:
        pool.ended()  # an error is that of the run too, which reports it


def _width(config: Config) -> int:
    """Return how many processes of the cluster a run takes at most."""
    if config["clock"] == "live":
        return WINDOWS_PARTITIONS if config["partitions"] in (None, "auto") else config["partitions"]
    return most_partitions(config)


def _wanted(plan: Plan) -> tuple[float, float] | None:
    """Return the arguments with which `Loading.at_load` makes the plan's workload of its source."""
    if plan.workload is plan.source:
        return None
    return plan.family[Loading].capacity(plan.config, plan.source, plan.cluster), plan.config["load"]


def _unpack(plan: Plan, recording: Recording | None, outcome: Outcome, error: Exception | None) -> Any:
    if error is not None:
        raise error
    return result_of(plan, 0, outcome, recording)


def _claim(run: Run) -> Plan:
    """Create the run's directory again, and return its plan."""
    folder, plan = run.folder, run.plan
    report_rerun(folder, reason_to_compute(folder, run.begins))
    rd.claim(folder, plan.manifest(0), plan.config_toml(0), locks.empty)
    keep_workload(plan, folder)
    return plan


def _finish(run: Run, result: Callable[[], Any], ended: Ended) -> None:
    """Write the result of a claimed run, or its error; a full disk, which all runs would meet, is raised."""
    error = None
    try:
        with rd.running(run.folder):
            result().write(run.folder)
    except UnavailableError:
        raise
    except Exception as failure:  # an error of one run does not end the others
        error = rd.one_line(failure)
    finally:
        locks.release(run.folder)
    ended(run, error)
