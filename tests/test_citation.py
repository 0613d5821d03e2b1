"""CITATION.cff is what the Citation File Format 1.2.0 allows, and says what pyproject.toml says.

The rules are those of the format's schema (https://github.com/citation-file-format/citation-file-format, schema.json of
1.2.0) for the keys that the file has; a key that is not here is one to look up there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TEXT = "text"
# Of the schema: key to what it holds. `text` is a string that is not empty.
KEYS: dict[str, Any] = {
    "cff-version": re.compile(r"1\.2\.0"),
    "message": TEXT,
    "type": ("software", "dataset"),
    "title": TEXT,
    "abstract": TEXT,
    "authors": [{"name": TEXT}],
    "version": TEXT,
    "license": re.compile(r"Apache-2\.0"),  # one of SPDX's identifiers; ours is this one
    "keywords": [TEXT],
    "date-released": re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    "commit": TEXT,
    "repository-code": re.compile(r"https?://.+"),
    "url": re.compile(r"(https?|ftp|sftp)://.+"),
    "doi": re.compile(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+"),
}
REQUIRED = {"cff-version", "message", "title", "authors"}


def wrong(found: Any, wanted: Any, where: str = "") -> list[str]:
    """What in a part of the file is not as the schema wants it."""
    if wanted == TEXT:
        return [] if isinstance(found, str) and found.strip() else [f"{where}: want text"]
    if isinstance(wanted, re.Pattern):
        return [] if isinstance(found, str) and wanted.fullmatch(found) else [f"{where}: {found!r}"]
    if isinstance(wanted, tuple):
        return [] if found in wanted else [f"{where}: {found!r}"]
    if isinstance(wanted, list):
        if not isinstance(found, list) or not found:
            return [f"{where}: want a list that is not empty"]
        repeated = len({repr(item) for item in found}) < len(found)
        inner = [text for i, item in enumerate(found) for text in wrong(item, wanted[0], f"{where}[{i}]")]
        return [*inner, *([f"{where}: an item is given twice"] if repeated else [])]
    if not isinstance(found, dict):
        return [f"{where}: want keys"]
    unknown = [f"{where}: unknown key {key!r}" for key in found if key not in wanted]
    return unknown + [
        text for key in found if key in wanted for text in wrong(found[key], wanted[key], f"{where}.{key}")
    ]


def problems(text: str) -> list[str]:
    """What is wrong with the text of a CITATION.cff."""
    found = yaml.safe_load(text)
    missing = [f"{key} is missing" for key in sorted(REQUIRED - set(found))]
    return missing + wrong(found, KEYS)


def test_the_file_is_valid() -> None:
    assert problems((ROOT / "CITATION.cff").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("cff-version: 1.2.0", "cff-version: 1.2"),
        ("authors:\n  - name: The Emu authors", "authors: The Emu authors"),
        ("  - name: The Emu authors", "  - nmae: The Emu authors"),
        ("type: software", "type: program"),
        ("title: ", "titel: "),
        ("version: 0.2.0", "version: 1"),
        ("  - emulator", "  - scheduler"),
        ("license: Apache-2.0", "license: Apache 2"),
    ],
)
def test_what_would_not_be(was: str, now: str) -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert was in text
    assert problems(text.replace(was, now, 1))


def test_it_says_what_the_package_says() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (found["version"], found["license"]) == (project["version"], project["license"])
    assert found["authors"] == [{"name": "The Emu authors"}]
