"""One instance of WfFormat, the JSON of WfCommons: its tasks, checked, and the same in versions 1.4 to 1.6.

Up to 1.4 a task is one object and names its parents; from 1.5 on structure (``specification``) and measurements
(``execution``) are separate, and tasks have ids. Version 1.6 adds optional objects to 1.5, which are not used. The
parent, the child or both may state a dependency.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

from workloads.errors import InputError
from workloads.jobs import MAX_TIME_S
from workloads.readers.source import shown

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
