"""Golden logs: examples worked out by hand, in data files (`golden/FAMILY/*.txt`), whose whole log is compared.

A file has one case after another:

    [title of the case]
    # Why the log is as it is, worked out by hand. A comment ends with its line.
    slots: 1 1                            what is given: here two nodes of one slot,
    job: 0 | 2 50                         a job that arrives at 0 s with tasks of 2 s and 50 s,
    with: cutoff_s=100 probe_ratio=1      and options of all runs of the case
    run: eagle sticky=true                a run: a scheduler, and options of this run
    tasks:                                what comes out: a section for each part of the log
      0.0  0  3 5
    counters: 2 probes, 1 bypasses

A line `name: …` begins an entry, lines without a name continue it; commas and ends of lines divide it into items. What
stands before the first `run:` is given for all runs of the case. `run:` lines that follow each other have the same log.
A run that is refused has one section, `error:`, with the whole text of the error.

A family is one entry in FAMILIES: a function from what is given, as (name, text) pairs, and a `Run` to the sections of
its log. All sections that it returns are compared, item by item; `Run.wanted` names those that the case has, for
sections that a family writes only on demand. What jobs are given and what their log has, says `golden_jobs.py`.
A case that fails shows the log as it would stand in the file; think before you copy it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import golden_coflows
import golden_dags
import golden_jobs
import pytest

from workloads.errors import InputError

GOLDEN = Path(__file__).parent / "golden"
Given = list[tuple[str, str]]
Sections = dict[str, list[str]]


class Run(NamedTuple):
    """A scheduler, the options of the run, and the names of the sections that the case has."""

    scheduler: str
    options: dict[str, Any]
    wanted: tuple[str, ...]


FAMILIES: dict[str, Callable[[Given, Run], Sections]] = {
    "coflows": golden_coflows.log,
    "dags": golden_dags.log,
    "jobs": golden_jobs.log,
}
UNORDERED = ("messages", "counters")


class Expected(NamedTuple):
    """Runs that have the same log, which is written once."""

    runs: list[str]
    sections: Sections


class Case(NamedTuple):
    title: str
    given: Given
    expected: list[Expected]


def cases_in(text: str) -> Iterator[Case]:
    """Yield the cases of a file."""
    for title, body in re.findall(r"^\[(.*)\]\n((?:(?!\[).*\n?)*)", text, re.MULTILINE):
        case = Case(title, [], [])
        for name, of in entries(body):
            if name == "run":
                if not case.expected or case.expected[-1].sections:
                    case.expected.append(Expected([], {}))
                case.expected[-1].runs.append(of)
            elif case.expected:
                case.expected[-1].sections[name] = items(of) if name != "error" else [" ".join(of.split())]
            else:
                case.given.append((name, of))
        assert case.expected, f"{title}: no run"
        yield case


def entries(body: str) -> Iterator[tuple[str, str]]:
    """Yield the names of entries and their texts, without comments."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if begins := re.match(r"([a-z][A-Za-z_: ]*?):(?:\s+|$)", line):
            found.append((begins[1], line[begins.end() :]))
        elif line:
            name, of = found.pop()
            found.append((name, f"{of}\n{line}"))
    yield from found


def items(text: str) -> list[str]:
    """Return what commas and ends of lines divide, each with single spaces."""
    return [" ".join(item.split()) for item in re.split(r"[,\n]", text) if item.strip()]


def options(text: str) -> dict[str, Any]:
    """Return the values of NAME=VALUE words: numbers (also as 2/3), true and false, else texts."""
    return {name: value_of(text) for name, _, text in (word.partition("=") for word in text.split())}


def value_of(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"\d+/\d+", text):
        return int(text.split("/")[0]) / int(text.split("/")[1])
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def as_written(sections: Sections) -> str:
    """Return sections as they stand in a file."""
    lines = []
    for name, found in sections.items():
        if name in UNORDERED:
            by_name = sorted(found, key=lambda item: item.split()[::-1])
            lines.append(f"{name}: {', '.join(by_name)}")
        else:
            lines += [f"{name}:", *(f"  {item}" for item in found)]
    return "\n".join(lines)


def all_runs() -> Iterator[Any]:
    for path in sorted(GOLDEN.glob("*/*.txt")):
        for case in cases_in(path.read_text("utf-8")):
            for expected in case.expected:
                for run in expected.runs:
                    name = f"{path.stem}: {case.title}: {run}"
                    yield pytest.param(path.parent.name, case.given, run, expected.sections, id=name)


@pytest.mark.parametrize(("family", "given", "run", "expected"), [*all_runs()])
def test_the_log_is_as_worked_out_by_hand(family: str, given: Given, run: str, expected: Sections) -> None:
    scheduler, _, own = run.partition(" ")
    shared = " ".join(text for name, text in given if name == "with")
    asked = Run(scheduler, options(shared) | options(own), tuple(expected))
    try:
        found = FAMILIES[family]([(name, of) for name, of in given if name != "with"], asked)
    except InputError as error:
        found = {"error": str(error).splitlines()}
    order = {name: expected[name] for name in found if name in expected} | expected
    assert as_written(found) == as_written(order)
