"""The tables of the reference pages are those that the registries make, and name all that there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import emu
from emu.cli.reference import PARTS, SETTINGS, filled, settings_module
from emu.configuration.config_file import layer_from_file
from emu.configuration.keys import KEYS
from emu.configuration.settings import Settings
from emu.families.coflows.metrics import BINS, LATE_SHARE
from emu.families.jobs.metrics import MOST_KINDS, OTHER_KINDS
from emu.families.registry import families
from emu.results.bottlenecks import INTERVALS_MISSED, NODES_BUSY, SATURATED
from emu.results.paired_comparison import BEST_WITHIN, DELAYS

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
PAGES = ("configuration.md", "results.md", "events.md")


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_fresh(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text == filled(text), "run: python -m emu.cli.reference docs/reference"


def test_every_table_has_its_place() -> None:
    text = "".join((FOLDER / name).read_text() for name in PAGES)
    assert sorted(re.findall("<!-- made: (.*) -->", text)) == sorted(PARTS)
    assert text.count("<!-- end -->") == len(PARTS)


def test_the_page_states_the_bounds_of_the_code() -> None:
    bins = "; ".join(f"`{name}`: {about}" for name, about in BINS.items())
    stated = [
        f"the first {MOST_KINDS} together are `{OTHER_KINDS}`",
        f"busy for {SATURATED:.0%} or more",
        f"nodes that were for {NODES_BUSY:.0%},",
        f"missed {INTERVALS_MISSED:.0%} of",
        f"is {DELAYS} network delays",
        f"within {BEST_WITHIN:.0%} of it",
        f"by width and size: {bins};",
        f"cct_share is above {LATE_SHARE:g}.",
    ]
    text = " ".join((FOLDER / "results.md").read_text().split())
    assert [words for words in stated if words not in text] == []


def test_the_arguments_of_functions_are_the_keys() -> None:
    assert SETTINGS.read_text() == settings_module(), "run: python -m emu.cli.reference docs/reference"
    named = {"scheduler", "workload", "nodes", "seeds", "parameters"}
    keys = {key.name.removesuffix(".*").replace(".", "_") for key in KEYS}
    assert set(Settings.__annotations__) == keys - named
    for function in (emu.run, emu.compare, emu.size):
        assert "Unpack[Settings]" in str(inspect.signature(function))


def test_pages_name_every_key_and_column() -> None:
    configuration, results = ((FOLDER / name).read_text() for name in ("configuration.md", "results.md"))
    assert all(f"| `{key.name}` |" in configuration for key in KEYS)
    tables = [table for family in families() for table in family.tables.values()]
    assert all(f"| `{c.name}` |" in results for table in tables for c in (*table.columns, *table.further))


def test_the_example_on_the_page_is_a_configuration(tmp_path: Path) -> None:
    text = (FOLDER / "configuration.md").read_text().split("```toml\n")[1].split("```")[0]
    (tmp_path / "e.toml").write_text(text)
    assert "parameters.eagle.slack" in layer_from_file(tmp_path / "e.toml")
