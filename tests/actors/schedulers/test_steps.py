"""Where a policy's file says that the steps of its docstring stand, there they stand."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ACTORS = ROOT / "actors"
# A comment, "# Where the steps stand:", and an item for each step: names of functions, and whose file it is if another.
COMMENT = re.compile(r"^# Where the steps stand.*\n(?P<items>(?:#.*\n)+)", re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. ", re.MULTILINE)
WORD = re.compile(r"`(?P<name>\w+)`|(?P<file>actors/[\w/]+\.py)|(?P<end>;)")
POLICIES = [
    file
    for file in sorted((ACTORS / "schedulers").rglob("*.py"))
    if COMMENT.search(file.read_text(encoding="utf-8"))
]


def functions_named(items: str, own: Path) -> set[tuple[Path, str]]:
    """Return the functions that steps name: those of a file before its path, and all others in the policy's own."""
    found, names = set(), []
    for word in WORD.finditer(items + ";"):
        if word["name"]:
            names.append(word["name"])
        else:
            file = ROOT / word["file"] if word["file"] else own
            found |= {(file, name) for name in names}
            names = []
    return found


@cache
def files_by_function() -> dict[str, list[str]]:
    """Return the files that define each function."""
    found: dict[str, list[str]] = {}
    for file in sorted(ACTORS.rglob("*.py")):
        for name in re.findall(r"^def (\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(file.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda file: file.stem)
def test_steps_stand_where_the_policy_says(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8")
    match = COMMENT.search(text)
    assert match
    items = re.sub(r"^# ?", "", match["items"], flags=re.MULTILINE)
    assert ITEM.findall(items) == ITEM.findall(text.split('"""')[1])
    for item in ITEM.split(items)[2::2]:
        named = functions_named(item, policy)
        assert named
        for file, name in named:
            known = files_by_function().get(name, [])
            assert file.relative_to(ROOT).as_posix() in known, f"{name} is in {known}"


def test_some_policies_say_it() -> None:
    assert {"sparrow", "carbyne"} <= {file.stem for file in POLICIES}
