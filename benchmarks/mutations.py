"""How many faults the tests find: small changes of the code, each tried with the tests that reach the changed line.

    python -m benchmarks.mutations map            which tests reach which lines (once for each state of the tests)
    python -m benchmarks.mutations try --count 200 --seed 1 --out found.jsonl     goes on where it was interrupted
    python -m benchmarks.mutations try … --tests DIR --only found.jsonl

The map needs pytest-cov. `try` draws mutations evenly from the areas of `AREAS`: an operator is replaced, a bound
moved by one, two statements swapped or one left out. Each is tried in a copy of the repository with kernels as plain
Python; it is found if a test fails, or does not end. `--tests DIR` takes the tests of another checkout, with that
checkout's map, over the same mutations; `--only` tries those again that another run did not find. `--paths` are the
tests of the map, and `--budget-s` bounds the tests of a mutation by their times in it. What is printed at the end is a
table by area.
"""  # fmt: skip

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from benchmarks.measuring import ROOT, run_sections

PACKAGES = ("actors", "clusters", "emu", "workloads")
AREAS = {
    "policies of jobs": ("actors/schedulers/jobs",),
    "policies of coflows": ("actors/schedulers/coflows",),
    "policies of DAG jobs": ("actors/schedulers/dags", "actors/machines"),
    "nodes": ("actors/nodes", "actors/failures.py", "actors/constraints.py", "actors/resources.py"),
    "fabric and transfers": ("actors/fabric", "actors/transfers", "actors/inputs.py", "actors/stages.py"),
    "readers": ("workloads/readers",),
}
MAP = "mutation-map.json"
PLAIN = {"NUMBA_DISABLE_JIT": "1"}
CHOSEN = ("-p", "no:cacheprovider", "-m", "not ray and not slow and not browser")
LIMIT_S = 170.0  # of wall time beyond the budget, after which a mutation has no end
_PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq))
COMPARE: dict[type, Any] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_PAIRS_BINARY = ((ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv))
BINARY: dict[type, Any] = {one: other for pair in _PAIRS_BINARY for one, other in (pair, pair[::-1])}
BINARY[ast.Div] = ast.Mult


class Mutation(NamedTuple):
    """A change of a file: its place, what it does, and the text of the changed statement before and after."""

    area: str
    file: str
    line: int
    kind: str
    number: int  # of the change among those of the file

    @property
    def name(self) -> str:
        """Return the same for the same code."""
        return f"{self.file}:{self.line} {self.kind} #{self.number}"


def changes(tree: ast.Module) -> Iterator[tuple[int, str, Any]]:
    """Yield line, kind, and a function that makes the change in a copy of the tree, by the nodes' order in a walk."""
    for at, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
            yield node.lineno, "comparison", (at, _replace_comparison)
        elif (
            isinstance(node, ast.BinOp)
            and type(node.op) in BINARY
            and not isinstance(node.left, ast.Constant)
        ):
            yield node.lineno, "operator", (at, _replace_operator)
        elif isinstance(node, ast.BoolOp):
            yield node.lineno, "and, or", (at, _replace_connective)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.lineno, "not", (at, _drop_not)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("min", "max"):
            yield node.lineno, "min, max", (at, _replace_bound)
        elif isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While):
            for i, (one, other) in enumerate(zip(node.body, node.body[1:], strict=False)):
                if _is_plain(one) and _is_plain(other):
                    yield one.lineno, "order", (at, i, _swap)
            for i, one in enumerate(node.body):
                if _is_plain(one) and len(node.body) > 1:
                    yield one.lineno, "left out", (at, i, _leave_out)


def _is_plain(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and not is_docstring


def _replace_comparison(node: Any) -> None:
    node.ops[0] = COMPARE[type(node.ops[0])]()


def _replace_operator(node: Any) -> None:
    node.op = BINARY[type(node.op)]()


def _replace_connective(node: Any) -> None:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _drop_not(node: Any) -> None:
    node.op = ast.UAdd()  # +True is 1, which is as true


def _replace_bound(node: Any) -> None:
    node.func.id = "max" if node.func.id == "min" else "min"


def _swap(node: Any, i: int) -> None:
    node.body[i], node.body[i + 1] = node.body[i + 1], node.body[i]


def _leave_out(node: Any, i: int) -> None:
    node.body[i] = ast.Pass()


def mutated(text: str, number: int) -> str:
    """Return the source with its change of this number."""
    tree = ast.parse(text)
    _, _, (at, *rest) = list(changes(tree))[number]
    made = copy.deepcopy(tree)
    node = list(ast.walk(made))[at]
    *arguments, change = rest
    change(node, *arguments)
    return ast.unparse(ast.fix_missing_locations(made))


def draw(count: int, seed: int, reached: dict[str, Any]) -> list[Mutation]:
    """Return mutations, as many of each area, drawn among all lines but those that only imports reach."""
    rng = np.random.default_rng(seed)
    drawn = []
    for k, (area, folders) in enumerate(AREAS.items()):
        there = [
            Mutation(area, path.relative_to(ROOT).as_posix(), line, kind, number)
            for folder in folders
            for path in sorted((ROOT / folder).rglob("*.py")) or [ROOT / folder]
            for number, (line, kind, _) in enumerate(changes(ast.parse(path.read_text())))
            if reached.get(path.relative_to(ROOT).as_posix(), {}).get(str(line)) != []
        ]
        share = count // len(AREAS) + (k < count % len(AREAS))
        drawn += [there[i] for i in sorted(rng.choice(len(there), share, replace=False))]
    return drawn


def make_map(tests: Path, paths: Sequence[str]) -> None:
    """Write which tests of the quick ring reach which lines, by pytest-cov, and the time of each test."""
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder) / "data", Path(folder) / "times"
        environment = {**os.environ, **PLAIN, "PYTHONPATH": str(tests), "COVERAGE_FILE": str(data)}
        measured = ["--cov=actors", "--cov=workloads", "--cov-context=test", "--cov-report="]
        measured.append(f"--junitxml={report}")
        command = [sys.executable, "-m", "pytest", "-q", "-n2", *CHOSEN, *measured, *paths]
        subprocess.run(command, cwd=tests, env=environment, check=False)
        (tests / MAP).write_text(json.dumps({"reached": _reached(tests, data), "times_s": _times_s(report)}))


def _reached(tests: Path, data_file: Path) -> dict[str, dict[int, list[str]]]:
    """Return the tests that reach each line of each file; none of a line that only imports reach."""
    import coverage

    data = coverage.CoverageData(str(data_file))
    data.read()
    return {
        Path(file).relative_to(tests).as_posix(): {
            line: sorted({each.rpartition("|")[0] for each in who if each})
            for line, who in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }


def _times_s(report: Path) -> dict[str, float]:
    """Return the time of each test by pytest's report."""
    return {
        f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}": float(case.attrib["time"])
        for case in ElementTree.parse(report).iter("testcase")
    }


def tests_of(mutation: Mutation, known: dict[str, Any], budget_s: float) -> list[str]:
    """Return the tests that reach the line of a mutation, the quickest first, as many as a budget allows."""
    reached = known["reached"].get(mutation.file, {}).get(str(mutation.line), ())
    quickest = sorted((known["times_s"].get(test, 0.0), test) for test in reached)
    sums_s = np.cumsum([time_s for time_s, _ in quickest])
    return [test for (_, test), sum_s in zip(quickest, sums_s, strict=True) if sum_s <= budget_s]


def is_found(mutation: Mutation, tests: Path, chosen: list[str], folder: Path, limit_s: float) -> str:
    """Return the test that finds a mutation, "no end" where one does not end, "" where none does."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)  # with what is compiled to bytes
    (folder / mutation.file).write_text(mutated((ROOT / mutation.file).read_text(), mutation.number))
    texts = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "run.py")
    for name in ("tests", "benchmarks", "claims", "docs", "examples", *texts):
        if not (folder / name).exists():
            (folder / name).symlink_to(tests / name)
    environment = {**os.environ, **PLAIN, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "--no-header", *CHOSEN, *chosen]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode == 4:  # of the command line
        raise RuntimeError(done.stdout + done.stderr)
    if done.returncode in (0, 5):
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"exit {done.returncode}"


def map_tests(given: argparse.Namespace) -> None:
    """Make the map of a checkout."""
    make_map(given.tests.resolve(), given.paths)


def try_mutations(given: argparse.Namespace) -> None:
    """Try mutations, those that are not tried yet, and print how many are found."""
    tests = given.tests.resolve()
    known = json.loads((tests / MAP).read_text())
    drawn = draw(given.count, given.seed, known["reached"])
    if given.only is not None:
        missed = {row["mutation"] for row in map(json.loads, given.only.open()) if not row["found"]}
        drawn = [mutation for mutation in drawn if mutation.name in missed]

    def one(mutation: Mutation) -> tuple[Mutation, int, str]:
        chosen = tests_of(mutation, known, given.budget_s)
        with tempfile.TemporaryDirectory() as folder:
            limit_s = 2 * given.budget_s + LIMIT_S
            found = is_found(mutation, tests, chosen, Path(folder), limit_s) if chosen else ""
            return mutation, len(chosen), found

    rows = [*map(json.loads, given.out.open())] if given.out.exists() else []
    done = {row["mutation"] for row in rows}
    left = [mutation for mutation in drawn if mutation.name not in done]
    with given.out.open("a") as out, ThreadPoolExecutor(given.processes) as pool:
        for trial in as_completed([pool.submit(one, mutation) for mutation in left]):
            mutation, count, found = trial.result()
            row = {"mutation": mutation.name, "area": mutation.area, "tests": count, "found": found}
            out.write(json.dumps(row) + "\n")
            out.flush()
            rows.append(row)
    for area in AREAS:
        own = [row for row in rows if row["area"] == area]
        print(f"{area:24s} {len(own):4d} tried {sum(bool(row['found']) for row in own):4d} found")


def main() -> None:
    """Read the command line."""
    given: dict[str, Any] = {"count": 200, "seed": 1, "only": Path, "out": Path("mutations.jsonl")}
    given |= {"tests": ROOT, "paths": ("tests",), "budget_s": 30.0, "processes": 2}
    run_sections(__doc__, {"map": map_tests, "try": try_mutations}, ["map"], **given)


if __name__ == "__main__":
    main()
