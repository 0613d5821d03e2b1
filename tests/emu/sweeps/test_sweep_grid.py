"""Grids of sweeps: their points and paths, and what is wrong in a file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sweep_grids import GRID, write

from emu.sweeps.grid import read_grid
from emu.sweeps.sweep import prepare_sweep, sweep
from workloads.jobs import JobWorkload

ROOT = Path(__file__).parents[3]


def folders(text: str) -> list[str]:
    grid = read_grid(write(text))
    return [grid.folder(point).as_posix() for point in grid.points]


# The grid


def test_a_parameter_is_an_axis_of_the_schedulers_that_have_it(trace: Path) -> None:
    found = folders(GRID)
    assert len(found) == len(set(found)) == 2 * 2 * 2 + 2 * 2
    assert found[0] == "scheduler=sparrow/load=0.5/probe_ratio=2/seed=1"
    assert found[-1] == "scheduler=random/load=0.8/seed=2"


def test_points_have_what_they_are_given(trace: Path) -> None:
    grid = read_grid(write(GRID))
    point = grid.points[3]
    assert grid.columns(point) == {"scheduler": "sparrow", "load": 0.5, "probe_ratio": 3.0, "seed": 2}
    assert [point.config[name] for name in ("scheduler", "load", "seed", "seeds", "nodes")] == [
        ("sparrow",),
        0.5,
        2,
        1,
        20,
    ]
    assert prepare_sweep("grid.toml").runs[3].plan.parameters[0]["probe_ratio"] == 3


def test_a_scheduler_s_own_parameter_takes_the_place_of_the_common_one(trace: Path) -> None:
    found = folders(
        'workload = "small"\nnodes = 20\n[parameters]\nslack = 7\n[sweep]\nscheduler = ["hawk", "eagle"]\n'
        "[sweep.parameters]\nprobe_ratio = [2, 3]\neagle.probe_ratio = [4, 5]\n"
    )
    assert found == [
        "scheduler=hawk/parameters.probe_ratio=2/seed=1",
        "scheduler=hawk/parameters.probe_ratio=3/seed=1",
        "scheduler=eagle/eagle.probe_ratio=4/seed=1",
        "scheduler=eagle/eagle.probe_ratio=5/seed=1",
    ]
    runs = prepare_sweep("grid.toml").runs
    assert [run.plan.parameters[0]["probe_ratio"] for run in runs] == [2, 3, 4, 5]
    assert runs[2].plan.parameters[0]["slack"] == 7


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (
            'scheduler = ["random", "sparrow"]\nseeds = 2\n[sweep]\nnodes = 20',
            ["random/seed=1", "random/seed=2"],
        ),
        ('seed = 5\nnodes = 20\n[sweep]\nscheduler = "random"', ["random/seed=5"]),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n[sweep.network]\ndelay = ["0.5 ms", "5 ms"]',
            ["random/delay=0.0005/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"network.delay" = ["0.5 ms", "5 ms"]',
            ["random/delay=0.0005/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"network.delay" = [0, 1]\n"network.spread" = [0, 1]',
            ["random/delay=0/spread=0/seed=1", "random/delay=0/spread=1/seed=1"],
        ),
        (
            'nodes = 20\n[sweep]\nscheduler = "random"\n"output.tasks" = [true, false]',
            ["random/tasks=true/seed=1"],
        ),
    ],
)
def test_paths(trace: Path, text: str, paths: list[str]) -> None:
    found = folders(f'workload = "small"\n{text}\n')
    assert found[: len(paths)] == [f"scheduler={path}" for path in paths]


def test_values_with_equal_ends_lie_apart(trace: Path) -> None:
    shutil.copytree("small", "more/small")
    assert folders('nodes = 9\nscheduler = "random"\n[sweep]\nworkload = ["./small", "more/small"]\n') == [
        "scheduler=random/workload=small/seed=1",
        "scheduler=random/workload=small-2/seed=1",
    ]


def test_set_beats_the_file_and_its_axes(trace: Path) -> None:
    grid = read_grid(write(GRID), ["load=0.9", "probe_ratio=4", "seed=3", "network.delay=1 ms"])
    assert [grid.folder(p).as_posix() for p in grid.points] == [
        "scheduler=sparrow/seed=3",
        "scheduler=random/seed=3",
    ]
    assert [p.config["load"] for p in grid.points] == [0.9, 0.9]
    assert prepare_sweep("grid.toml", sets=["probe_ratio=4"]).runs[0].plan.parameters[0]["probe_ratio"] == 4


def test_a_mapping_is_as_good_as_a_file(workload: JobWorkload, tmp_path: Path) -> None:
    source = {"workload": workload, "nodes": 20, "sweep": {"scheduler": ["random"], "seed": range(1, 4)}}
    result = sweep(source, out=tmp_path / "s", in_process=True)
    assert [row["seed"] for row in result.rows] == [1, 2, 3]
    again = emu_run(tmp_path / "s" / "scheduler=random" / "seed=2" / "config.toml")
    assert again.jobs.equals(read_jobs(tmp_path / "s" / "scheduler=random" / "seed=2"))


def emu_run(config: Path) -> Any:
    from emu.configuration.config import resolve
    from emu.configuration.config_file import layer_from_file
    from emu.configuration.plan import prepare
    from emu.running.emulation import execute

    return execute(prepare(resolve([layer_from_file(config)])), 0)


def read_jobs(folder: Path) -> Any:
    from emu.results.result import read_result

    return read_result(folder).jobs


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("sweep*.toml")), ids=lambda p: p.stem)
def test_examples_are_sweeps(path: Path, tmp_path: Path) -> None:
    ready = prepare_sweep(path, tmp_path / "s")
    said = re.search(r": (\d+) runs", path.read_text())
    assert said is not None
    assert len(ready.runs) == len(ready.missing) == int(said[1])
    assert ready.notes == ()


# Errors


def test_an_axis_that_is_called_as_a_family_keeps_its_whole_name() -> None:
    grid = read_grid(
        {
            "workload": "deadline-coflows",
            "sweep": {
                "scheduler": "edf",
                "workload_options.coflows": [3, 4],
                "workload_options.ports": [2, 3],
            },
        }
    )
    assert [axis.label for axis in grid.axes] == ["scheduler", "workload_options.coflows", "ports", "seed"]
    assert grid.folder(grid.points[0]).as_posix() == "scheduler=edf/workload_options.coflows=3/ports=2/seed=1"
