"""The private names of libraries that Emu uses: each has a reason, and no other is used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest
from python_process import ROOT

FOLDERS = ("actors", "benchmarks", "claims", "clusters", "emu", "examples", "tests", "workloads", ".ci")
REASONS = {
    ("actors/hosting/ray_session.py", "_private"): "no public function tells that a server of Ray has died",
    ("actors/hosting/ray_session.py", "_global_node"): "the same",
    ("actors/hosting/ray_session.py", "_temp_dir"): "an argument of ray.init, documented under this name",
    (
        "actors/hosting/ray_session.py",
        "_system_config",
    ): "an argument of ray.init, documented under this name",
    (
        "tests/oracles/crash_machine.py",
        "_system_config",
    ): "an argument of ray.init, documented under this name",
    ("actors/kernel/compiled.py", "_nrt"): "the quick form: kernels without reference counting",
    (
        "actors/compiling/kernel_cache.py",
        "_load_overload",
    ): "loads a kernel without preparing to compile, 0.2 s less",
    ("actors/compiling/linking.py", "_raise_if_finalized"): "the quick form: libraries of code",
    ("actors/compiling/linking.py", "_ensure_finalized"): "the same",
    ("actors/compiling/linking.py", "_final_module"): "the same",
    ("emu/cli/__init__.py", "_SubParsersAction"): "argparse has no public name for it",
    ("emu/cli/completion.py", "_SubParsersAction"): "the same",
    ("tests/printed_commands.py", "_SubParsersAction"): "the same",
    ("emu/cli/completion.py", "_choices_actions"): "the same",
    ("tests/emu/test_notebooks.py", "_repr_png_"): "what IPython calls, documented by it",
}
OF_NAMED_TUPLES = {"_replace", "_fields", "_field_defaults", "_asdict", "_make"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def is_private(name: str | None) -> bool:
    return bool(name) and str(name).startswith("_") and not str(name).startswith("__") and name != "_"


def made(tree: ast.Module) -> Iterator[str]:
    """The names that a file of ours defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) == "self"
        ):
            yield node.attr


def used(tree: ast.Module) -> Iterator[str]:
    """The private names that a file asks other objects for, or passes as names of arguments."""
    for node in ast.walk(tree):
        names: list[str | None] = []
        if isinstance(node, ast.Attribute) and ast.unparse(node) != "os._exit":  # which is documented
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
        elif isinstance(node, ast.keyword):
            names = [node.arg]
        elif isinstance(node, ast.Dict):
            names = [str(key.value) for key in node.keys if isinstance(key, ast.Constant)]
        yield from (str(name) for name in names if is_private(name))


@pytest.mark.slow("reads every module, and imports what they import")
def test_private_names_of_libraries_are_listed_with_a_reason() -> None:
    files = dict(trees())
    ours = OF_NAMED_TUPLES.union(*map(made, files.values()))
    found = {(file, name) for file, tree in files.items() for name in used(tree) if name not in ours}
    assert found == set(REASONS)


@pytest.mark.slow("reads every module, and imports what they import")
def test_nothing_of_a_library_is_replaced() -> None:
    """By `setattr`, or by an assignment to what was imported."""
    replaced = []
    for file, tree in trees():
        imported = set(foreign(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
                owner = ast.unparse(node.args[0])
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                owner = ast.unparse(node)
            else:
                continue
            if owner.split(".")[0] in imported:
                replaced.append(f"{file}: {ast.unparse(node)}")
    assert replaced == []


def foreign(tree: ast.Module) -> Iterator[str]:
    """The names of what a file imports from libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        else:
            continue
        package = modules[0].split(".")[0]
        if package not in FOLDERS and package not in sys.stdlib_module_names:
            yield from ((each.asname or each.name).split(".")[0] for each in node.names)
