"""The structure of the code: which packages and rooms may import which, no cycle of imports, who names schedulers.

A room is a sub-package, or the modules beside sub-packages. What counts is every import: at the top of a module, inside
a function, for type checkers alone. What a registry names by text is no import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from actors.schedulers.registry import built_in_schedulers, scheduler_names
from emu.configuration.keys import BY_NAME
from emu.families.dags.keys import MAX_MIN_FAIR
from tests.conftest import FIRST
from tests.python_process import run_python

ROOT = Path(__file__).parents[1]
# From the bottom to the top: a package may import those before it.
PACKAGES = ("workloads", "clusters", "actors", "emu")
# From the bottom to the top: a room may import those in lines before its own. A module belongs to the room with the
# longest name that its own begins with.
LAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "workloads": (
        ("workloads",),  # what all rooms share: tables of jobs, DAGs and coflows, errors, units, options
        ("workloads.generators",),
        ("workloads.readers", "workloads.transform"),
        ("workloads.formats", "workloads.info", "workloads.public"),
        ("workloads.catalogue",),
    ),
    "clusters": (("clusters",),),
    "actors": (
        ("actors.compiling",),
        ("actors.kernel",),
        ("actors.worlds", "actors.causes", "actors.initial_arrays"),
        ("actors.scheduler",),
        ("actors.environment",),
        ("actors.setting",),
        ("actors.conditions",),
        ("actors.constraints", "actors.resources", "actors.tenants"),
        ("actors.failures",),
        ("actors.inputs",),
        ("actors.stages",),
        ("actors.nodes",),
        ("actors.fabric", "actors.machines"),
        ("actors.transfers",),
        ("actors.schedulers",),  # what policies share: variants
        ("actors.schedulers.jobs", "actors.schedulers.coflows", "actors.schedulers.dags"),
        ("actors.schedulers.user",),
        ("actors.schedulers.registry",),
        ("actors.hosting",),
    ),
    "emu": (
        ("emu.disk", "emu.terminal", "emu.configuration.key", "emu.directories.names"),
        ("emu.columns",),
        ("emu.families",),  # what a family is, and where it is found
        ("emu.directories",),
        ("emu.configuration",),
        ("emu.families.drawn_cases",),  # for conformance, of all families
        ("emu.results",),
        ("emu.sweeps.targets",),  # what `emu size` asks of a family
        (
            "emu.explaining.explanation",
            "emu.explaining.event_record",
        ),  # what explanations of all families have
        ("emu.explaining.spans",),
        ("emu.explaining.explained_run",),
        ("emu.explaining.causes",),
        ("emu.report",),
        ("emu.families.jobs", "emu.families.coflows"),
        ("emu.families.dags",),  # a job of stages has the figures of a job
        ("emu.running",),
        ("emu.explaining",),
        ("emu.sweeps",),
        ("emu", "emu.testing"),
        ("emu.cli",),
        ("emu.__main__",),
    ),
}
# `emu` names schedulers as defaults alone: those of the main job, and a cluster.
NAMES_A_SCHEDULER = {
    ("emu.cli.commands", "sparrow hawk eagle central-lwl"),
    ("emu.families.dags.family", "carbyne"),
}
# The core names no family, except in the public checks of results.
NAMES_A_FAMILY = {"emu.testing"}
LATE = {"ray", "pandas", "matplotlib", "tqdm"}  # slow to import, so imported where they are used


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """The file of every module of the four packages."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules of the four packages that a module imports."""
    names = []
    for node in ast.walk(tree_of(modules()[module])):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return frozenset(modules_around(name)[0] for name in names if name.partition(".")[0] in PACKAGES)


def modules_around(name: str) -> list[str]:
    """The module that is named, or holds what is named, and the packages that it is in, which run before it."""
    parts = name.split(".")
    return [m for n in range(len(parts), 0, -1) if (m := ".".join(parts[:n])) in modules()]


def packages_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The top-level packages that are imported by these nodes of a syntax tree."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def room_of(module: str) -> tuple[int, str]:
    """The place of a module's room among the layers of its package, and the room's name."""
    rooms = {room: place for place, layer in enumerate(LAYERS[module.partition(".")[0]]) for room in layer}
    inside = [room for room in rooms if f"{module}.".startswith(f"{room}.")]
    assert inside, f"say in LAYERS of tests/test_structure.py where {module} stands"
    room = max(inside, key=len)
    return rooms[room], room


def test_imports_point_one_way() -> None:
    """And nothing comes from tests or benchmarks."""
    for place, package in enumerate((*PACKAGES, "run")):
        above = {*PACKAGES[place + 1 :], "run", "tests", "benchmarks", "claims"}
        files = [ROOT / "run.py"] if package == "run" else (ROOT / package).rglob("*.py")
        for file in files:
            assert not packages_in(ast.walk(tree_of(file))) & above, file


def test_ray_is_imported_in_one_place() -> None:
    places = {file for file in modules().values() if "ray" in packages_in(ast.walk(tree_of(file)))}
    names = ("child", "groups", "live", "pool", "ray_session", "windows")
    assert places == {ROOT / "actors" / "hosting" / f"{name}.py" for name in names}


def test_slow_packages_are_imported_where_they_are_used() -> None:
    for file in modules().values():
        assert not packages_in(tree_of(file).body) & LATE, file


def test_rooms_import_those_below_them() -> None:
    wrong = []
    for module in modules():
        for name in imported_by(module):
            if name.partition(".")[0] == module.partition(".")[0]:
                (here, room), (there, other) = room_of(module), room_of(name)
                if other != room and there >= here:
                    wrong.append(f"{module} of {room} imports {name} of {other}")
    assert not wrong


def test_all_rooms_exist() -> None:
    assert {room for layers in LAYERS.values() for layer in layers for room in layer} <= modules().keys()


def test_there_is_no_cycle_of_imports() -> None:
    """Nor is there one through the packages that a module is in, whose `__init__.py` runs before it."""
    runs = {}
    for module in modules():
        before = {m for name in imported_by(module) for m in modules_around(name)} - set(
            modules_around(module)
        )
        runs[module] = before | imported_by(module)
    try:
        TopologicalSorter(runs).prepare()
    except CycleError as error:
        pytest.fail("each of these is imported by the next: " + ", ".join(error.args[1]))


def test_the_core_names_no_family() -> None:
    families = {room for layer in LAYERS["emu"] for room in layer if room.startswith("emu.families.")}
    naming = {
        module
        for module in modules()
        for name in imported_by(module)
        if name.startswith("emu.") and room_of(name)[1] in families and room_of(module)[1] not in families
    }
    assert not naming ^ NAMES_A_FAMILY


def test_emu_names_no_scheduler_but_in_defaults() -> None:
    """What is known of a policy stands with it. Words that are also values of keys or of parameters do not count."""
    values = {value for key in BY_NAME.values() for value in key.choices or ()}
    values |= {value for one in built_in_schedulers() for p in one.parameters for value in p.choices}
    names, naming = {*scheduler_names()} - values - {MAX_MIN_FAIR}, set()
    for module, file in modules().items():
        if module.partition(".")[0] == "emu":
            texts = [node.value for node in ast.walk(tree_of(file)) if isinstance(node, ast.Constant)]
            if named := [text for text in texts if isinstance(text, str) and text in names]:
                naming.add((module, " ".join(named)))
    assert naming == NAMES_A_SCHEDULER


def test_emu_goes_by_the_name_of_no_policy() -> None:
    for module, file in modules().items():
        for node in ast.walk(tree_of(file)):
            if module.partition(".")[0] == "emu" and isinstance(node, ast.Compare):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                texts = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
                assert not (texts and any(side.endswith((".policy", "['policy']")) for side in sides)), module


def test_tests_mirror_the_tree() -> None:
    for package in PACKAGES:
        for file in (ROOT / "tests" / package).rglob("test_*.py"):
            folder = file.parent.relative_to(ROOT / "tests")
            assert (ROOT / folder / "__init__.py").exists(), f"{file}: there is no package {folder}"
    assert all((ROOT / "tests" / name).exists() for name in FIRST)


def test_the_command_line_starts_without_what_takes_long_to_import() -> None:
    """`emu --help` takes 0.08 s without them, and 0.19 s with pyarrow alone."""
    slow = {"pyarrow", "numpy", "numba", "jinja2", *LATE}
    loaded = run_python(
        "import sys, emu.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    ).split()
    assert not slow & set(loaded)
