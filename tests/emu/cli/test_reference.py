"""The reference pages are those the registries make, and name all that there is."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import emu
from emu.cli.reference import PAGES
from emu.cli.settings_module import SETTINGS, settings_module
from emu.configuration.config_file import layer_from_file
from emu.configuration.keys import KEYS
from emu.configuration.settings import Settings
from emu.families.registry import families

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_fresh(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run: python -m emu.cli.reference docs/reference"


def test_the_arguments_of_functions_are_the_keys() -> None:
    assert SETTINGS.read_text() == settings_module(), "run: python -m emu.cli.reference docs/reference"
    named = {"scheduler", "workload", "nodes", "seeds", "parameters"}
    keys = {key.name.removesuffix(".*").replace(".", "_") for key in KEYS}
    assert set(Settings.__annotations__) == keys - named
    for function in (emu.run, emu.compare, emu.size):
        assert "Unpack[Settings]" in str(inspect.signature(function))


def test_pages_name_every_key_and_column() -> None:
    configuration, results = (PAGES[name]() for name in ("configuration.md", "results.md"))
    assert all(f"| `{key.name}` |" in configuration for key in KEYS)
    tables = [table for family in families() for table in family.tables.values()]
    assert all(f"| `{c.name}` |" in results for table in tables for c in (*table.columns, *table.further))


def test_the_example_on_the_page_is_a_configuration(tmp_path: Path) -> None:
    text = PAGES["configuration.md"]().split("```toml\n")[1].split("```")[0]
    (tmp_path / "e.toml").write_text(text)
    assert "parameters.eagle.slack" in layer_from_file(tmp_path / "e.toml")
