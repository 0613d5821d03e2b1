"""``emu new scheduler NAME``: a scheduler of one's own to start from, or a copy of a built-in one, and its test."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from emu import disk
from workloads.errors import InputError
from workloads.hints import did_you_mean


class Start(NamedTuple):
    """The starting point of a kind of scheduler."""

    about: str
    run: str  # arguments of `emu run` that try it
    by_hand: str  # the body of the test by hand, which runs `SCHEDULER`


_OF_JOBS = """\
    # One task of 5 s on idle nodes, a message takes 1 s: {hops}.
    workload = pd.DataFrame({{"submit_s": [0.0], "durations_s": [[5.0]]}})
    result = emu.run(SCHEDULER, workload, 2, network_delay="1 s", short_cutoff="10 s", in_process=True)
    assert result.jobs["jct_s"].to_pylist() == [{jct}]
"""
_OF_COFLOWS = """\
    # Two coflows at the same ports, 1 GB and 0.5 GB over 1 Gbps, 8 s and 4 s alone: 12 s for both in any order.
    two = {"arrival_s": [0.0, 0.0], "width": [1, 1], "ingress": [0, 0], "egress": [1, 1]}
    workload = make_coflow_workload("two", **two, size_bytes=[1e9, 0.5e9], num_ports=2)
    result = emu.run(SCHEDULER, workload, in_process=True)
    assert max(result.coflows["finish_s"].to_pylist()) == pytest.approx(12.0, abs=0.1)
"""
_OF_DAGS = """\
    # One task of 5 s on an idle machine: it begins at once, and ends 5 s later.
    workload = pd.DataFrame({"submit_s": [0.0], "durations_s": [[5.0]]})
    result = emu.run(SCHEDULER, workload, 2, network_delay=0.0, in_process=True)
    assert result.jobs["jct_s"].to_pylist() == pytest.approx([5.0], abs=0.1)
"""
COMPILED = "compiled"
_KIND_OF_FAMILY = {"jobs": COMPILED, "coflows": "coflows", "dags": "dags"}
KINDS = {
    "central": Start(
        "a class in Python that places the tasks of jobs",
        "--workload yahoo --nodes 15000",
        _OF_JOBS.format(hops="it begins at 1 and ends at 6", jct=6.0),
    ),
    "probing": Start(
        "a class in Python whose probes wait at nodes",
        "--workload yahoo --nodes 15000",
        _OF_JOBS.format(hops="probe, request and task, it begins at 3 and ends at 8", jct=8.0),
    ),
    "coflows": Start("a class in Python that orders coflows", "--workload synthetic-coflows", _OF_COFLOWS),
    "dags": Start(
        "a class in Python that launches tasks of DAG jobs", "--workload query-dags --nodes 100", _OF_DAGS
    ),
    COMPILED: Start(
        "a policy of jobs as the built-in ones are, compiled: handlers and a loop",
        "--workload yahoo --nodes 15000",
        _OF_JOBS.format(hops="it begins at 1 and ends at 6", jct=6.0),
    ),
}
_COMPILED = '''"""{title}: every task goes at once to a node drawn uniformly.

A compiled policy: handlers get the world `w`, the state of this policy `p`, the time in nanoseconds, the actor that
handles the message, and the message's numbers. CONTRIBUTING.md, "Hot code" and "A scheduler", has their rules.
"""
'''
_TEST = '''"""What must hold of {name}: {what}."""

from pathlib import Path

{imports}from emu.testing import check_scheduler
{more}
SCHEDULER = f"{{Path(__file__).with_name('{module}.py')}}:{object}"


def test_the_invariants_of_every_scheduler_hold():
    check_scheduler(SCHEDULER)
'''
_BY_HAND = """

def test_an_example_by_hand():
{by_hand}"""


def write_scheduler(name: str, kind: str, folder: str | Path = ".") -> list[Path]:
    """Write ``NAME.py`` and ``test_NAME.py`` into a folder and return their paths.

    The name is in small letters: ``my-policy`` is the class ``MyPolicy`` in ``my_policy.py``. Raise `InputError` if the
    name is malformed, `kind` is not one of `KINDS`, or a file exists.
    """
    if kind not in KINDS:
        raise InputError(f"--kind: unknown kind {kind!r}{did_you_mean(kind, KINDS)}")
    paths = free_paths(name, folder)
    thing = object_of(name, kind)
    text = checks_of(name, paths[0].stem, thing, KINDS[kind].by_hand)
    for path, content in zip(paths, (_source(name, kind, thing), text), strict=True):
        disk.write_text(path, content)
    return paths


def checks_of(name: str, module: str, thing: str, by_hand: str = "") -> str:
    """Return the test of a scheduler; `by_hand` is the body of an example."""
    given = {"name": name, "module": module, "object": thing}
    if not by_hand:
        return _TEST.format(what="the invariants of every scheduler", imports="", more="", **given)
    needs = {"import pandas as pd": "pd.", "import pytest": "pytest."}
    imports = "".join(f"{line}\n" for line, use in needs.items() if use in by_hand)
    given |= {"what": "the invariants of every scheduler, and an example by hand"}
    given |= {"imports": f"{imports}\nimport emu\n"}
    more = "from workloads.coflows import make_coflow_workload\n" if "make_coflow" in by_hand else ""
    return _TEST.format(more=more, **given) + _BY_HAND.format(by_hand=by_hand)


def free_paths(name: str, folder: str | Path) -> list[Path]:
    """Return the paths of a scheduler and of its test; raise `InputError` if the name is malformed or a file exists."""
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise InputError(
            f"NAME: {name!r} is not a name of a scheduler; want small letters, digits and -, as my-policy"
        )
    module = name.replace("-", "_")
    paths = [Path(folder, f"{module}.py"), Path(folder, f"test_{module}.py")]
    for path in paths:
        if path.exists():
            raise InputError("is there already; give another name, or another folder with --out", file=path)
    return paths


def object_of(name: str, kind: str) -> str:
    """Return what the scheduler is called in its module: a class, or the object of a compiled one."""
    module = name.replace("-", "_")
    return module.upper() if kind == COMPILED else module.title().replace("_", "")


def _source(name: str, kind: str, thing: str) -> str:
    """Return the module of the scheduler."""
    title = name.replace("-", " ").replace("_", " ")
    if kind != COMPILED:
        text = inspect.getsource(import_module(f"emu.starting.{kind}"))
        return text.replace("MyPolicy", thing).replace("My policy", title.capitalize())
    text = inspect.getsource(import_module("actors.schedulers.jobs.random_placement"))
    code = text[text.index('"""\n') + 4 :]  # without its docstring
    code = code.replace("RANDOM = ", f"{thing} = ").replace('name="random"', f'name="{name}"')
    return _COMPILED.format(title=title.capitalize()) + code


def write_copy(name: str, source: str, folder: str | Path = ".") -> list[Path]:
    """Write a copy of the module of a built-in scheduler into ``NAME.py``, and ``test_NAME.py``; return their paths.

    The copy gives the same results as the original until one of its rules is changed. Raise `InputError` if there is no
    scheduler `source`, the name is malformed or taken, or a file exists.
    """
    from actors.schedulers.registry import place_of, scheduler_names

    try:
        place, _, original = place_of(source).rpartition(".")
    except InputError as error:
        raise InputError(f"--from: {error.message}") from None
    module, paths, thing = import_module(place), free_paths(name, folder), object_of(name, COMPILED)
    if name in scheduler_names() or hasattr(module, thing):
        raise InputError(f"NAME: {name!r} is there already; give another, as my-{name}")
    text = inspect.getsource(module)
    lines = text.splitlines(keepends=True)
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom))
    at = next(node.lineno - 1 for node in imports if getattr(node, "module", "") != "__future__")
    own = f'{thing} = dataclasses.replace({original}, name="{name}")  # another name than the original in comparisons\n'
    copy = "".join([*lines[:at], "import dataclasses\n", *lines[at:]]).rstrip() + f"\n\n{own}"
    test = checks_of(name, paths[0].stem, thing)
    for path, content in zip(paths, (copy, test), strict=True):
        disk.write_text(path, content)
    return paths


def run_of(source: str) -> str:
    """Return arguments of a command that try a built-in scheduler."""
    from actors.schedulers.registry import find_scheduler

    return KINDS[_KIND_OF_FAMILY.get(find_scheduler(source).family, COMPILED)].run
