"""The schemas of TOML files, for editors."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from emu.configuration.json_schema import json_schema
from emu.configuration.keys import BY_NAME

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.toml"))
VALIDATORS = {file: Draft202012Validator(json_schema(file)) for file in ("config", "sweep")}


def wrong(file: str, text: str) -> list[str]:
    return [error.message for error in VALIDATORS[file].iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_fits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert wrong("sweep", text) == []
    assert bool(wrong("config", text)) == ("[sweep" in text)


def test_every_key_is_there() -> None:
    schema = json_schema("config")
    for name in BY_NAME:
        place: Any = schema
        for part in name.split("."):
            place = place["properties"][part]
        assert BY_NAME[name].meaning in place["description"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('schedulr = "hawk"', "schedulr"),
        ("[network]\ndelays = 3", "delays"),
        ('nodes = ["a"]', "'a'"),
        ("nodes = 0", "0 is less than the minimum of 1"),
        ('clock = "wall"', "'wall' is not one of"),
        ("output.tasks = 3", "3 is not of type"),
    ],
)
def test_what_is_wrong_is_marked(text: str, why: str) -> None:
    assert any(why in message for message in wrong("config", text))


def test_a_sweep_varies_what_a_configuration_holds() -> None:
    assert wrong("sweep", '[sweep]\nnodes = [10, 20]\nclock = ["virtual", "windows"]') == []
    assert wrong("sweep", '[sweep]\nclock = ["virtual", "wall"]')


def test_the_command_prints_it(emu: Callable[..., Any]) -> None:
    assert json.loads(emu("schema", "config").out) == json_schema("config")
    assert "there is no schema of 'clustr'; want one of config, sweep" in emu("schema", "clustr").err
