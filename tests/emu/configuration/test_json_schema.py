"""The schemas of TOML files, for editors."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from clusters.cluster import load_cluster
from emu.configuration.json_schema import FILES, json_schema
from emu.configuration.keys import BY_NAME
from workloads.errors import InputError

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.toml"))
VALIDATORS = {file: Draft202012Validator(json_schema(file)) for file in FILES}
PRESETS = sorted((Path(__file__).parents[3] / "clusters" / "presets").glob("*.toml"))


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


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_fits(path: Path) -> None:
    assert wrong("cluster", path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'machines' is a required property"),
        ("machines = []", "[]"),
        ('order = "random"\n[[machines]]\ncount = 3', "'random' is not one of"),
        ("[[machines]]\nslots = 3", "is not valid under any of the given schemas"),
        ('[[machines]]\ncount = 3\nshare = "5%"', "is valid under each of"),
        ("[[machines]]\ncount = 3\ncore = 3", "'core' "),
        ("[[machines]]\ncount = 3\nslots = 0", "0 is less than the minimum of 1"),
        ("[[machines]]\ncount = 3\nkernel = 3.10", "3.1 is not of type 'string'"),
        ("[[machines]]\ncount = 3\nmemory = true", "True is not of type"),
    ],
)
def test_what_is_wrong_in_a_cluster_is_marked_and_refused(text: str, why: str, tmp_path: Path) -> None:
    assert any(why in message for message in wrong("cluster", text))
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError):
        load_cluster(tmp_path / "c.toml")


def test_every_attribute_of_a_machine_type_is_taken_by_its_name_and_by_its_column(tmp_path: Path) -> None:
    machine = json_schema("cluster")["properties"]["machines"]["items"]["properties"]
    values = {"kernel": "3.10", "tags": ["a", "b"]}
    for name, schema in machine.items():
        if name not in ("count", "share"):
            value = values.get(name, "x" if schema.get("type") == "string" else 2)
            text = f"[[machines]]\ncount = 3\nmax_disks = 9\n{name} = {value!r}\n"
            text = text.replace("max_disks = 9\n", "" if name == "max_disks" else "max_disks = 9\n")
            assert wrong("cluster", text) == []
            (tmp_path / "c.toml").write_text(text)
            assert load_cluster(tmp_path / "c.toml").num_nodes == 3
    assert len(machine) > 20


def test_the_command_prints_it(emu: Callable[..., Any]) -> None:
    assert json.loads(emu("schema", "config").out) == json_schema("config")
    assert "there is no schema of 'clustr'; want one of config, sweep, cluster" in emu("schema", "clustr").err
