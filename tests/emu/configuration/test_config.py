"""Configuration keys: layers, kinds, nearest names, places of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.configuration.config import (
    Given,
    Place,
    layer_from_arguments,
    layer_from_options,
    layer_from_set,
    read_given,
    resolve,
)
from emu.configuration.config_file import key_lines, layer_from_file, write_config
from emu.configuration.key_types import KINDS
from emu.configuration.keys import BY_NAME, KEYS
from workloads.errors import InputError


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "e.toml"
    path.write_text(text)
    return path


def test_options_beat_set_beats_the_file_beats_defaults(tmp_path: Path) -> None:
    file = layer_from_file(toml(tmp_path, 'nodes = 1\nseed = 2\nwarmup = "3 s"\n'))
    own = layer_from_set(["nodes=10", "seed=20"])
    options = layer_from_options({"nodes": "100", "seed": None})
    config = resolve([file, own, options])
    assert (config["nodes"], config["seed"], config["warmup"], config["seeds"]) == (100, 20, 3.0, 1)
    assert config.places["nodes"].label == "--nodes"


def test_replaced_defaults_are_beaten_by_every_layer() -> None:
    assert resolve([], {"nodes": 15_000})["nodes"] == 15_000
    assert resolve([layer_from_set(["nodes=7"])], {"nodes": 15_000})["nodes"] == 7


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("network.delay", "10 ms", 0.01),
        ("network.delay", 8, 8.0),
        ("long_partition", "98%", 0.98),
        ("nodes", "15,000", 15_000),
        ("nodes", 15000.0, 15_000),
        ("in_process", "true", True),
        ("in_process", "off", False),
        ("timeline.period", "auto", "auto"),
        ("timeline.period", "2 min", 120.0),
        ("estimates.size", "-0.5", -0.5),
        ("estimates.size", "20%", 0.2),
        ("scheduler", "hawk, eagle", ("hawk", "eagle")),
        ("scheduler", ["hawk", "eagle"], ("hawk", "eagle")),
        ("clock", "virtual", "virtual"),
    ],
)
def test_values_are_read_with_their_units(name: str, text: object, value: object) -> None:
    assert read_given(BY_NAME[name], Given(text, Place("x"))) == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nodes", 2.5, "whole number"),
        ("nodes", True, "whole number"),
        ("scheduler", "", "name"),
        ("scheduler", [], "name"),
        ("workload", 3, "name"),
    ],
)
def test_wrong_values_are_named_with_the_option(name: str, text: object, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_given(BY_NAME[name], Given(text, Place(f"--set {name}")))
    assert str(caught.value).startswith(f"--set {name}: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.sampled_from(sorted(BY_NAME)),
    st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()),
)
def test_any_value_is_read_or_refused(name: str, value: object) -> None:
    try:
        read_given(BY_NAME[name], Given(value, Place("--set x")))
    except InputError as error:
        found = str(error).splitlines()
    else:
        found = ["read"]
    assert len(found) == 1


def test_a_wrong_value_in_a_file_is_named_by_file_line_and_key(tmp_path: Path) -> None:
    path = toml(tmp_path, "nodes = 5\n\n[network]\n# the wire\ndelay = 'soon'\n")
    with pytest.raises(InputError) as caught:
        resolve([layer_from_file(path)])
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 5, "network.delay")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, expected in (
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "is a folder"),
        (binary, "UTF-8"),
    ):
        with pytest.raises(InputError, match=expected):
            layer_from_file(path)


def test_lines_of_keys() -> None:
    text = 'a = 1\n[b]\nc = 2 # d = 3\n"e" = 4\n[parameters."x:Y"]\nf.g = 1\n'
    assert key_lines(text) == {
        "a": 1,
        "b": 2,
        "b.c": 3,
        "b.e": 4,
        "parameters.x:Y": 5,
        "parameters.x:Y.f.g": 6,
    }


def test_paths_in_a_file_are_beside_it_and_names_stay_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("t.tr", "yahoo", "s.py"):
        (tmp_path / "in" / name).touch()
    monkeypatch.chdir(tmp_path)
    path = toml(
        tmp_path / "in", 'workload = "t.tr"\nscheduler = ["eagle", "s.py:Mine"]\ncluster = "./none.toml"\n'
    )
    layer = layer_from_file(path)
    assert layer["workload"].value == str(tmp_path / "in" / "t.tr")
    assert layer["scheduler"].value == ["eagle", f"{tmp_path / 'in' / 's.py'}:Mine"]
    assert layer["cluster"].value == "./none.toml"
    assert layer_from_file(toml(tmp_path / "in", 'workload = "yahoo"\n'))["workload"].value == "yahoo"


def test_a_path_that_is_too_long_for_the_system_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'workload = "./{"x" * 5000}"\n')
    assert layer_from_file(tmp_path / "c.toml")["workload"].value == f"./{'x' * 5000}"


def test_set_gives_keys_and_parameters() -> None:
    layer = layer_from_set(
        ["network.delay=1 ms", "probe_ratio=3", "eagle.slack=4", "parameters.x=1", "seed=a=b"]
    )
    assert list(layer) == [
        "network.delay",
        "parameters.probe_ratio",
        "parameters.eagle.slack",
        "parameters.x",
        "seed",
    ]
    assert layer["seed"].value == "a=b"


def test_one_schedulers_own_parameter_beats_one_for_all_within_a_layer(tmp_path: Path) -> None:
    file = layer_from_file(toml(tmp_path, "[parameters.eagle]\nslack = 9\n[parameters]\nslack = 1\n"))
    config = resolve([file, layer_from_set(["slack=2"])])
    assert [(name, g.value) for name, g in config.parameters] == [
        ("slack", 1),
        ("eagle.slack", 9),
        ("slack", "2"),
    ]


def test_arguments_of_the_python_interface() -> None:
    config = resolve(
        [
            layer_from_arguments(
                {"network_delay": "1 ms", "nodes": 3, "parameters": {"eagle": {"slack": 4}}, "seed": None}
            )
        ]
    )
    assert (config["network.delay"], config["nodes"], config["seed"]) == (0.001, 3, 1)
    assert config.parameters[0][0] == "eagle.slack"
    with pytest.raises(InputError, match="did you mean 'network_delay'"):
        layer_from_arguments({"network_dealy": 3})


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    given = {
        "scheduler": "hawk,eagle",
        "workload": "yahoo",
        "nodes": 7,
        "short_cutoff": 90.5811,
        "network.delay": "0.1 ms",
        "warmup": 1e-7,
        "timeline.period": "auto",
        "output.tasks": "true",
    }
    config = resolve([{name: Given(value, Place(name)) for name, value in given.items()}])
    text = write_config(config.values, {"eagle": {"slack": 4.0}, "mine.py:A": {"x": 1}}, {"jobs": "5"}, {})
    again = resolve([layer_from_file(toml(tmp_path, text))])
    assert again.values == config.values
    assert [(n, g.value) for n, g in again.parameters] == [("eagle.slack", 4.0), ("mine.py:A.x", 1)]
    assert again.workload_options["jobs"].value == "5"


def test_the_registry_is_sound() -> None:
    assert len({k.name for k in KEYS}) == len(KEYS)
    for key in KEYS:
        assert key.kind in KINDS
        assert key.meaning.endswith(".")
        if key.default is None and key.kind != "table":
            assert key.otherwise
        elif key.kind != "table":
            assert read_given(key, Given(key.default, Place("x"))) == key.default
