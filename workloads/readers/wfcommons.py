"""Instances of WfCommons [1]_: scientific workflows as they were run, in WfFormat (JSON) 1.4 to 1.6, one job a file.

1. A task has its runtime and the cores and memory that it states, or `default_cores` where it states no cores, as in
   most published instances. Versions before 1.4 have other units, and are refused; WfFormat has a tool that migrates
   them.
2. Tasks become stages with exactly the same precedence. A *lane* is a task, or a chain of tasks in which each is the
   only child of the task before, which is its only parent. Lanes form a group if they run the same programs in the same
   order, their first tasks have the same parents, and their last tasks the same children: the n-th tasks of a group's
   lanes are a stage. Within a group a task waits for the task before in its lane (one-to-one edges); between groups
   tasks wait for all of a stage (all-to-all), as a task that waits for one of them waits for all. With ``group=False``
   each task is a stage.
3. The program is the command's, where it is stated, else the category, else the task's name without the number at its
   end.
4. A stage needs the most cores, memory and bandwidth of its tasks, which are mostly equal.
5. Memory is a share of the memory of the machine that ran the task, or of `node_memory_bytes`; more than that counts as
   all of it. If neither is known, a demand of memory is not known. If no machine of any instance states its memory,
   demands are in GiB (``memory_gib``).
6. With `disk_bytes_per_s` a task needs the share of this bandwidth with which it reads and writes its bytes in its
   runtime. Without it demands of disks are not known. Utilisation and energy are not used.
7. Bytes are sizes of files. An edge between stages carries, for each task of the child, the files that it reads and
   that a parent of it in the other stage writes: a file that n tasks read counts n times, as it is sent n times. Files
   that no other task writes are input of the stage whose tasks read them. A file has one writer (WfCommons' maintainers
   call it a bug if not [2]_); one with several counts as of the first that is a parent. A file that a task reads of a
   task that is not its parent counts on no edge; the report has the number of these. Bytes are not known where a file
   states no size, and of an instance in which no task names a file. A task may read less than all of a file
   (``readBytes``).

References
----------
.. [1] T. Coleman, H. Casanova, L. Pottier, M. Kaushik, E. Deelman, R. Ferreira da Silva. WfCommons: A framework for
   enabling scientific workflow research and development. Future Generation Computer Systems 128, 2022.
   doi:10.1016/j.future.2021.09.043; the format: github.com/wfcommons/WfFormat.
.. [2] github.com/wrench-project/wrench/issues/110.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from workloads.dags import DagWorkload, make_dag_workload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.generators.arrivals import Arrivals
from workloads.generators.draws import check_positive, generator
from workloads.jobs import MAX_TIME_S, Float64Array
from workloads.limits import check_tasks, most_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_members, shown
from workloads.stages import ALL_TO_ALL, ONE_TO_ONE

# One instance of WfFormat, the JSON of WfCommons: its tasks, checked, and the same in versions 1.4 to 1.6.
#
# Up to 1.4 a task is one object and names its parents; from 1.5 on structure (``specification``) and measurements
# (``execution``) are separate, and tasks have ids. Version 1.6 adds optional objects to 1.5, which are not used. The
# parent, the child or both may state a dependency.

VERSIONS = ("1.4", "1.5", "1.6")
_MOST = 1e18
_COUNTER = re.compile(r"[-_.]*(ID)?[0-9]+$")


@dataclass
class WfTask:
    """A task of an instance.

    Attributes
    ----------
    id, program : str
    runtime_s : float
    cores, memory_bytes, read_bytes, written_bytes : float
        NaN where not stated.
    machine : str
        "" where not stated.
    parents, children : set of int
        By place in the instance.
    reads, writes : tuple of str
        The files that it names, each once.
    """

    id: str
    program: str
    runtime_s: float
    cores: float
    memory_bytes: float
    read_bytes: float
    written_bytes: float
    machine: str
    parents: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass
class Instance:
    """An instance: name, tasks, the memory of machines, and how many dependencies only one end states.

    Memory and files are in bytes, NaN where not stated.
    """

    name: str
    tasks: list[WfTask]
    machine_memory: dict[str, float]
    file_bytes: dict[str, float] = field(default_factory=dict)
    one_ended: int = 0


def parse_instance(data: bytes, file: object) -> Instance:
    """Return the instance of a file's bytes.

    Raises
    ------
    InputError
        Names the file, and the line or the field (``workflow.tasks[3].cores``) that is wrong.
    """
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=file, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON that can be read ({shown(str(error))})", file=file) from None
    return _Object(value, "", file).instance()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


class _Object:
    """An object of JSON with checked members; errors name the file and the member's place."""

    def __init__(self, value: Any, place: str, file: object) -> None:
        self.place, self.file = place, file
        if not isinstance(value, dict):
            raise InputError("want an object", file=file, field=place or None)
        self._value: dict[str, Any] = value

    def refuse(self, key: str, wrong: str) -> NoReturn:
        raise InputError(wrong, file=self.file, field=self.at(key))

    def at(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def inner(self, key: str) -> _Object:
        if key not in self._value:
            self.refuse(key, "is missing")
        return _Object(self._value[key], self.at(key), self.file)

    def objects(self, key: str, *, optional: bool = False) -> list[_Object]:
        if optional and not self.has(key):
            return []
        found = self._value.get(key)
        if not isinstance(found, list) or not (found or optional):
            self.refuse(key, "is missing" if key not in self._value else "want a list of objects, not empty")
        return [_Object(value, f"{self.at(key)}[{n}]", self.file) for n, value in enumerate(found)]

    def text(self, key: str, *, optional: bool = False) -> str:
        found = self._value.get(key)
        if found is None and optional:
            return ""
        if not isinstance(found, str) or not (found or optional):
            self.refuse(key, "is missing" if key not in self._value else "want text, not empty")
        self._check(key, found)
        return found

    def texts(self, key: str) -> list[str]:
        found = self._value.get(key)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            self.refuse(key, "want a list of texts")
        self._check(key, *found)
        return found

    def _check(self, key: str, *texts: str) -> None:
        """Refuse halves of surrogate pairs, which JSON can escape and UTF-8 cannot hold."""
        for text in texts:
            if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                self.refuse(key, f"{shown(text)} is not text: it holds half a character")

    def number(self, *keys: str, most: float = _MOST, optional: bool = True) -> float:
        """Return the number of the first of these members that the object has, NaN if it has none."""
        key = next((key for key in keys if self.has(key)), None)
        if key is None:
            if not optional:
                self.refuse(keys[0], "is missing; want a number")
            return math.nan
        found = self._value[key]
        if isinstance(found, bool) or not isinstance(found, int | float):
            self.refuse(key, f"{shown(str(found))} is not a number")
        if not 0 <= found <= most:
            self.refuse(key, f"{shown(str(found))} is not a number from 0 to {most:g}")
        return float(found)

    def instance(self) -> Instance:
        version = self.text("schemaVersion")
        if version not in VERSIONS:
            wrong = f"{shown(version)} is not read; want {', '.join(VERSIONS)} (WfFormat has a tool that migrates)"
            self.refuse("schemaVersion", wrong)
        name, workflow = self.text("name"), self.inner("workflow")
        if version == "1.4":
            tasks, measured, about = workflow.objects("tasks"), None, workflow
            files = []
        else:
            specification = workflow.inner("specification")
            tasks = specification.objects("tasks")
            files = specification.objects("files", optional=True)
            about = workflow.inner("execution")
            measured = about.objects("tasks")
        machines = {
            machine.text("nodeName"): machine.number("memoryInBytes")
            for machine in about.objects("machines", optional=True)
        }
        made, names = _tasks(tasks, measured)
        sizes = _add_files(tasks, made, files) if measured is not None else _add_own_files(tasks, made)
        found = Instance(name, made, machines, sizes)
        found.one_ended = _link(tasks, made, names)
        _check_circle(made, self.file)
        return found


def _tasks(tasks: list[_Object], measured: list[_Object] | None) -> tuple[list[WfTask], dict[str, int]]:
    """Return the tasks, without dependencies, and their places by the names in dependencies."""
    by_id: dict[str, _Object] = {}
    for task in measured or ():
        if (id_ := task.text("id")) in by_id:
            task.refuse("id", f"{shown(id_)} occurs twice")
        by_id[id_] = task
    made: list[WfTask] = []
    names: dict[str, int] = {}
    for place, task in enumerate(tasks):
        # Up to 1.4 ids are optional, and names are unique.
        own = task.text("name") if measured is None else task.text("id")
        if own in names:
            task.refuse("name" if measured is None else "id", f"{shown(own)} occurs twice")
        names[own] = place
        run = task if measured is None else by_id.pop(own, None)
        if run is None:
            task.refuse("id", f"{shown(own)} is not among the tasks of the execution")
        made.append(_task(own, task, run))
    if by_id:
        next(iter(by_id.values())).refuse("id", "is not among the tasks of the specification")
    if measured is None:
        for place, task in enumerate(tasks):
            names.setdefault(task.text("id", optional=True) or made[place].id, place)
    return made, names


def _task(own: str, task: _Object, run: _Object) -> WfTask:
    program = run.inner("command").text("program", optional=True) if run.has("command") else ""
    if not program:
        program = (
            task.text("category", optional=True) or _COUNTER.sub("", task.text("name")) or task.text("name")
        )
    machines = run.texts("machines")
    return WfTask(
        id=own,
        program=program,
        runtime_s=run.number("runtimeInSeconds", most=MAX_TIME_S, optional=False),
        cores=run.number("coreCount", "cores", most=1e9),
        memory_bytes=run.number("memoryInBytes"),
        read_bytes=run.number("readBytes"),
        written_bytes=run.number("writtenBytes"),
        machine=run.text("machine", optional=True) or (machines[0] if machines else ""),
    )


def _add_files(tasks: list[_Object], made: list[WfTask], files: list[_Object]) -> dict[str, float]:
    """Give tasks the files that they name, from version 1.5 on, and return the sizes of all files."""
    for task, of in zip(tasks, made, strict=True):
        of.reads, of.writes = (tuple(dict.fromkeys(task.texts(key))) for key in ("inputFiles", "outputFiles"))
    sizes: dict[str, float] = {}
    for file in files:
        sizes.setdefault(file.text("id"), file.number("sizeInBytes"))
    return sizes


def _add_own_files(tasks: list[_Object], made: list[WfTask]) -> dict[str, float]:
    """Give tasks the files that they name, up to version 1.4, and return their sizes: the first that a task states.

    WfFormat's tool that migrates does the same, and takes path and name together as the id of a file.
    """
    sizes: dict[str, float] = {}
    for task, of in zip(tasks, made, strict=True):
        links: dict[str, dict[str, None]] = {"input": {}, "output": {}}
        for file in task.objects("files", optional=True):
            link = file.text("link")
            if link.lower() not in links:
                file.refuse("link", f"{shown(link)} is neither input nor output")
            id_ = file.text("path", optional=True) + file.text("name")
            links[link.lower()][id_] = None
            sizes.setdefault(id_, file.number("sizeInBytes"))
        of.reads, of.writes = tuple(links["input"]), tuple(links["output"])
    return sizes


def _link(tasks: list[_Object], made: list[WfTask], names: dict[str, int]) -> int:
    """Link tasks with their parents and children, and return the number of dependencies that only one end states."""
    stated: dict[tuple[int, int], int] = {}
    for place, task in enumerate(tasks):
        for key in ("parents", "children"):
            for name in dict.fromkeys(task.texts(key)):
                other = names.get(name)
                if other is None:
                    task.refuse(key, f"{shown(name)} is not a task of this workflow")
                if other == place:
                    task.refuse(key, f"{shown(name)} depends on itself")
                pair = (other, place) if key == "parents" else (place, other)
                stated[pair] = stated.get(pair, 0) + 1
    for parent, child in stated:
        made[parent].children.add(child)
        made[child].parents.add(parent)
    return sum(times == 1 for times in stated.values())


def _check_circle(tasks: Iterable[WfTask], file: object) -> None:
    known = list(tasks)
    try:
        TopologicalSorter({n: task.parents for n, task in enumerate(known)}).prepare()
    except CycleError as error:
        circle = [shown(known[n].id) for n in error.args[1]]
        text = " -> ".join(circle[:8]) + (" -> ..." if len(circle) > 8 else "")
        raise InputError(f"tasks wait for each other: {text}", file=file, field="parents") from None


# Bytes that tasks of an instance of WfFormat send each other: the sizes of the files that they write and read.


class Moved(NamedTuple):
    """Bytes that the tasks of an instance read, by stage.

    Attributes
    ----------
    known : bool
        Whether any task names a file. If none does, nothing is known of bytes.
    sent : mapping of (int, int) to float
        Parent stage and child stage, and the bytes between them, where there are files; NaN where not known.
    read : mapping of int to float
        A stage, and the bytes that its tasks read of files that no other task writes, where there are such.
    """

    known: bool
    sent: Mapping[tuple[int, int], float]
    read: Mapping[int, float]

    def between(self, parent: int, child: int) -> float:
        """Return the bytes on an edge, NaN where not known."""
        return self.sent.get((parent, child), 0.0) if self.known else math.nan

    def of_input(self, stage: int) -> float:
        """Return the bytes of input that a stage reads, NaN where not known."""
        return self.read.get(stage, 0.0) if self.known else math.nan


def bytes_moved(instance: Instance, stage_of: Mapping[int, int], report: Report) -> Moved:
    """Return the bytes between stages, and those that stages read of the instance's input.

    `stage_of` has the stage of each task, by their places in the instance.
    """
    writers: dict[str, set[int]] = {}
    for place, task in enumerate(instance.tasks):
        for file in task.writes:
            writers.setdefault(file, set()).add(place)
    sent: dict[tuple[int, int], float] = {}
    read: dict[int, float] = {}
    apart, nameless = 0, set()
    for place, task in enumerate(instance.tasks):
        own = stage_of[place]
        for file in task.reads:
            size, of_file = instance.file_bytes.get(file, math.nan), writers.get(file, set())
            if math.isnan(size):
                nameless.add(file)
            if of_file <= {place}:
                read[own] = read.get(own, 0.0) + size
            elif of_parents := of_file & task.parents:
                edge = (stage_of[min(of_parents)], own)
                sent[edge] = sent.get(edge, 0.0) + size
            else:
                apart += 1
    report.repaired(
        "files that several tasks write: taken as of the first that is a parent of the task that reads",
        sum(len(tasks) > 1 for tasks in writers.values()),
    )
    report.dropped("files read of a task that is no parent of the one that reads: their bytes", apart)
    report.dropped("files of which no size is stated: the bytes where they are read", len(nameless))
    return Moved(bool(writers) or any(task.reads for task in instance.tasks), sent, read)


_ENDINGS = (".json", ".json.gz")
_VERSION = re.compile(rb'"schemaVersion"\s*:\s*"1\.[0-9]"')
_LOOKED_AT, _MEMBERS = 1 << 16, 50  # bytes of one of so many files

Lanes = list[list[int]]
"""Tasks of each lane of a group, in the order in which they run."""


def read_wfcommons(
    path: str | Path,
    *,
    group: bool = True,
    mean_gap_s: float = 0.0,
    default_cores: float = 1.0,
    node_memory_bytes: int | None = None,
    disk_bytes_per_s: float | None = None,
    seed: int = DEFAULT_SEED,
    report: Report | None = None,
    progress: Progress | None = None,
) -> DagWorkload:
    """Read an instance, or all of a folder or archive; see the module for its rules.

    Parameters
    ----------
    path : str or Path
        A ``.json`` file (or ``.json.gz``), or a folder or archive (zip, tar, tar.gz) with them; other files in it are
        ignored, and counted.
    group : bool
        Whether tasks of the same programs with the same parents and children are one stage.
    mean_gap_s : float
        Mean gap between the arrivals of instances, a Poisson process in the order of their names; 0: all at time 0.
    default_cores : float
        Cores of a task that states none; 0 for not known.
    node_memory_bytes : int, optional
        The memory of which a task's memory is a share, in place of that of the machine that ran it.
    disk_bytes_per_s : float, optional
        The bandwidth of a node's disks in each direction, of which bytes over runtime are a share.
    seed : int
        Of the arrivals.

    Raises
    ------
    InputError
        Names the file and the field that is wrong; or an option that is out of its range.
    """
    _check_options(mean_gap_s, default_cores, node_memory_bytes, disk_bytes_per_s)
    report = Report() if report is None else report
    instances, total = [], 0
    most, _ = most_tasks(path)
    for place, data in _files(Path(path), report, progress):
        instances.append(parse_instance(data, place))
        total += len(instances[-1].tasks)
        if total > most:
            check_tasks(total, file=path)
    if not instances:
        raise InputError("holds no .json file", file=path)
    report.read("instances", len(instances))
    report.read("tasks", total)
    report.repaired("dependencies that one end states only: taken", sum(i.one_ended for i in instances))
    submit_s = np.zeros(len(instances))
    if mean_gap_s > 0:
        submit_s = np.round(Arrivals().times(generator(seed), len(instances), mean_gap_s), 9)
        if submit_s[-1] > MAX_TIME_S:
            raise InputError(f"the last would arrive after {submit_s[-1]:.2g} s", field="mean_gap_s")
    metadata = {
        "origin": f"WfCommons {Path(path).name}",
        "parameters": f"group={group} mean_gap_s={mean_gap_s:g} default_cores={default_cores:g} "
        f"node_memory_bytes={node_memory_bytes} "
        f"disk_bytes_per_s={disk_bytes_per_s} seed={seed}",
    }
    machines = (size for instance in instances for size in instance.machine_memory.values())
    in_gib = node_memory_bytes is None and not any(size > 0 for size in machines)
    demands = _Demands(default_cores, 2**30 if in_gib else node_memory_bytes, disk_bytes_per_s, in_gib)
    return _made(Path(path), instances, submit_s, group, demands, report, metadata)


def recognises(path: Path) -> bool:
    """Return whether a file, or the first ``.json`` file of a folder or archive, states a version of WfFormat."""
    try:
        for name, stream in islice(open_members(path), _MEMBERS):
            if name.endswith(_ENDINGS):
                return _VERSION.search(stream.read(_LOOKED_AT)) is not None
    except InputError:
        pass
    return False


def lanes_of(tasks: list[WfTask], group: bool) -> list[Lanes]:
    """Return the groups of lanes of an instance, in the order of their first tasks.

    Examples
    --------
    Two chains between a first and a last task, by place: 0, then 1 before 2 and 3 before 4, then 5.

    >>> links = [((), (1, 3)), ((0,), (2,)), ((1,), (5,)), ((0,), (4,)), ((3,), (5,)), ((2, 4), ())]
    >>> programs = ["split", "map", "sort", "map", "sort", "join"]
    >>> tasks = [
    ...     WfTask(str(n), programs[n], 1.0, 1.0, 0.0, 0.0, 0.0, "", {*p}, {*c}) for n, (p, c) in enumerate(links)
    ... ]
    >>> lanes_of(tasks, True)
    [[[0]], [[1, 2], [3, 4]], [[5]]]
    """
    if not group:
        return [[[place]] for place in range(len(tasks))]

    def follows(place: int) -> int | None:
        """Return the only child of a task of which the task is the only parent."""
        if len(tasks[place].children) != 1:
            return None
        (child,) = tasks[place].children
        return child if len(tasks[child].parents) == 1 else None

    linked = {child for place in range(len(tasks)) if (child := follows(place)) is not None}
    groups: dict[object, Lanes] = {}
    for place in range(len(tasks)):
        if place in linked:
            continue
        lane, at = [place], follows(place)
        while at is not None:
            lane.append(at)
            at = follows(at)
        programs = tuple(tasks[n].program for n in lane)
        ends = (frozenset(tasks[place].parents), frozenset(tasks[lane[-1]].children))
        groups.setdefault((programs, *ends), []).append(lane)
    return list(groups.values())


class _Demands:
    """What tasks need, by the rules of the module."""

    def __init__(
        self,
        default_cores: float,
        node_memory_bytes: int | None,
        disk_bytes_per_s: float | None,
        in_gib: bool,
    ) -> None:
        self.resources = ("cpu_cores", "memory_gib" if in_gib else "memory", "disk_in", "disk_out")
        self.most_memory = math.inf if in_gib else 1.0
        self.cores = default_cores if default_cores > 0 else math.nan
        self.memory, self.disk = node_memory_bytes, disk_bytes_per_s
        self.assumed = self.clipped = self.unknown = 0

    def of(self, task: WfTask, machines: dict[str, float]) -> list[float]:
        """Return the demands of a task of `resources`, NaN if not known."""
        memory = float(self.memory) if self.memory else machines.get(task.machine, math.nan)
        if not math.isnan(task.memory_bytes) and not memory > 0:
            self.unknown += 1
        disks = [
            self._part(moved, task.runtime_s * (self.disk or 0))
            for moved in (task.read_bytes, task.written_bytes)
        ]
        cores = self.cores if math.isnan(task.cores) else task.cores
        self.assumed += math.isnan(task.cores) and not math.isnan(cores)
        return [cores, self._part(task.memory_bytes, memory, self.most_memory), *disks]

    def _part(self, part: float, whole: float, most: float = 1.0) -> float:
        if not whole > 0 or math.isnan(part):
            return math.nan
        self.clipped += part / whole > most
        return min(part / whole, most)


def _check_options(
    mean_gap_s: float, default_cores: float, node_memory_bytes: int | None, disk_bytes_per_s: float | None
) -> None:
    if not 0 <= default_cores <= 1e9:
        raise InputError(f"{default_cores!r} is not a number of cores, 0 or more", field="default_cores")
    if not 0 <= mean_gap_s <= MAX_TIME_S:
        raise InputError(f"{mean_gap_s!r} is not a duration in seconds", field="mean_gap_s")
    for name, value in (("node_memory_bytes", node_memory_bytes), ("disk_bytes_per_s", disk_bytes_per_s)):
        if value is not None:
            check_positive(name, value)


def _files(path: Path, report: Report, progress: Progress | None) -> Iterator[tuple[Path, bytes]]:
    """Yield the name of each ``.json`` file in errors, and its bytes."""
    alone = not os.path.isdir(path)
    for name, stream in open_members(path, None, progress):
        single = alone and name == path.name.removesuffix(".gz")
        if single or name.endswith(_ENDINGS):
            yield path if single else path / name, stream.read()
        else:
            report.dropped("files that are not called .json", 1)


@dataclass
class _Rows:
    """Stages and edges of instances, a job each, in the order in which they are added."""

    num_stages: list[int] = field(default_factory=list)
    stages: list[list[WfTask]] = field(default_factory=list)
    needs: list[Float64Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    input_bytes: list[float] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    edge_bytes: list[float] = field(default_factory=list)

    def add(self, instance: Instance, group: bool, demands: _Demands, report: Report) -> None:
        groups = lanes_of(instance.tasks, group)
        stage_of: dict[int, int] = {}
        count = 0
        for lanes in groups:
            for places in zip(*lanes, strict=True):
                stage_of |= dict.fromkeys(places, count)
                count += 1
                self.stages.append([instance.tasks[place] for place in places])
                of_tasks = np.array([demands.of(t, instance.machine_memory) for t in self.stages[-1]])
                self.needs.append(np.fmax.reduce(of_tasks, axis=0))
                self.names.append(f"{instance.name}/{self.stages[-1][0].program}")
        moved = bytes_moved(instance, stage_of, report)
        self.input_bytes += map(moved.of_input, range(count))
        for lanes in groups:
            head = lanes[0]
            along = [(stage_of[before], stage_of[after]) for before, after in pairwise(head)]
            first = sorted({stage_of[p] for p in instance.tasks[head[0]].parents})
            ends = [*((parent, stage_of[head[0]]) for parent in first), *along]
            self.edges += [(len(self.num_stages), *pair) for pair in ends]
            self.kinds += [ALL_TO_ALL] * len(first)
            self.kinds += [ONE_TO_ONE if len(lanes) > 1 else ALL_TO_ALL] * len(along)
            self.edge_bytes += [moved.between(*pair) for pair in ends]
        self.num_stages.append(count)


def _made(
    path: Path,
    instances: list[Instance],
    submit_s: Float64Array,
    group: bool,
    demands: _Demands,
    report: Report,
    metadata: dict[str, str],
) -> DagWorkload:
    """Return the workload of instances: a job each."""
    rows = _Rows()
    for instance in instances:
        rows.add(instance, group, demands, report)
    report.read("stages", len(rows.stages))
    report.repaired(f"tasks that state no cores: taken as {demands.cores:g}", demands.assumed)
    report.repaired("demands of more than a machine has: taken as all of it", demands.clipped)
    report.dropped("demands of memory, as that of the machine is not stated", demands.unknown)
    return make_dag_workload(
        path.name.removesuffix(".gz").removesuffix(".json"),
        submit_s,
        rows.num_stages,
        [len(stage) for stage in rows.stages],
        [task.runtime_s for stage in rows.stages for task in stage],
        np.array(rows.edges, np.int64).reshape(-1, 3),
        stage_name=rows.names,
        demands=dict(zip(demands.resources, np.array(rows.needs).T, strict=True)),
        edge_kind=rows.kinds,
        edge_bytes=rows.edge_bytes,
        input_bytes=rows.input_bytes,
        metadata=metadata | report.as_metadata(),
        notes=report.notes(),
        origin=path,
    )
