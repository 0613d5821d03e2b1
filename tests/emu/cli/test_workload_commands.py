"""`emu workload`: every action by the command line, and what it says when it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workloads.catalogue import load_workload, save_workload
from workloads.coflows import CoflowWorkload
from workloads.formats import FORMATS
from workloads.jobs import make_workload
from workloads.transform import TRANSFORMATIONS, history

Cli = Callable[..., Any]
SHUFFLES = (
    "3 2\n1 0 2 0 1 1 2:4.0\n2 1500 1 2 2 0:1.0 1:3.0\n"  # ports and coflows; id, arrival (ms), mappers, …
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder with a workload of jobs of two tenants, and a trace of coflows."""
    monkeypatch.chdir(tmp_path)
    jobs = make_workload("two", [0, 5, 10, 20], [1, 2, 1, 1], [4, 1, 3, 2, 9], tenant=["a", "b", "a", "b"])
    save_workload(jobs, "two")
    Path("shuffles.txt").write_text(SHUFFLES)
    return tmp_path


def test_list_names_generators_formats_and_their_options(emu: Cli) -> None:
    ended = emu("workload", "list")
    assert ended.code == 0
    for name in ("yahoo", "cloudera-c", "facebook", "google", "synthetic", *FORMATS):
        assert f"\n  {name} " in ended.out
    assert "block_bytes=67108864" in ended.out


def test_a_foreign_trace_is_recognised_and_converted(folder: Path, emu: Cli) -> None:
    ended = emu("workload", "convert", "shuffles.txt", "shuffles", "--set", "megabyte_bytes=1000000")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == ["read 2 coflows", "read 4 flows", "written to shuffles"]
    made = load_workload("shuffles")
    assert isinstance(made, CoflowWorkload)
    assert made.flows["size_bytes"].to_pylist() == [2e6, 2e6, 1e6, 3e6]
    back = emu("workload", "convert", "shuffles", "back.txt", "--to", "coflow-benchmark")
    assert back.code == 0
    assert load_workload("back.txt", options={"megabyte_bytes": 10**6}).fingerprint() == made.fingerprint()


def test_a_trace_that_is_converted_can_be_read_at_once(folder: Path, emu: Cli) -> None:
    rows = ((600, 0), (601, 1), (603, 2), (604, 1), (606, 4))  # submitted, ran, evicted, ran, finished
    events = Path("cell/task_events/part-00000-of-00001.csv")
    events.parent.mkdir(parents=True)
    events.write_text("".join(f"{at}000000,,7,0,,{kind},u,0,0,,,,\n" for at, kind in rows))
    assert load_workload("cell").tasks["duration_s"].to_pylist() == [2]
    whole = load_workload("cell", options={"attempts": "all"})
    assert (whole.name, whole.tasks["duration_s"].to_pylist()) == ("cell", [4])
    assert "1 jobs, 1 tasks" in emu("workload", "info", "cell", "--set", "attempts=all").out
    assert (
        "no option 'attempt'; did you mean 'attempts'"
        in emu("workload", "info", "cell", "--set", "attempt=all").line()
    )


@pytest.mark.drawn
def test_info_tells_and_draws(folder: Path, emu: Cli) -> None:
    ended = emu("workload", "info", "two", "--nodes", "2", "--plot", "drawn", "--json")
    described = json.loads(ended.out)
    assert (ended.code, described["family"], described["offered_load"]) == (0, "jobs", {"2": 19 / 20 / 2})
    assert Path("drawn.svg").read_text().startswith("<svg")
    assert Path("drawn.png").read_bytes().startswith(b"\x89PNG")
    assert "2 coflows, 4 flows, 3 ports" in emu("workload", "info", "shuffles.txt").out
    generated = emu("workload", "info", "yahoo", "--set", "jobs=500").out
    assert "generated beside the trace yahoo" in generated
    assert emu("workload", "info", "shuffles.txt", "--from", "swim").code == 2


@pytest.mark.slow("whole runs with their figures")
@pytest.mark.drawn
@pytest.mark.parametrize(("name", "begins"), [("p.pdf", b"%PDF-"), ("p.SVG", b"<svg"), ("p.png", b"\x89PNG")])
def test_a_figure_has_the_form_of_its_ending(folder: Path, emu: Cli, name: str, begins: bytes) -> None:
    assert emu("workload", "info", "two", "--plot", name).code == 0
    assert Path(name).read_bytes().startswith(begins)
    first = Path(name).read_bytes()
    assert emu("workload", "info", "two", "--plot", name).code == 0
    assert Path(name).read_bytes() == first  # no date in it
    assert [path.name for path in Path().glob("p.*")] == [name]


def test_transformations_are_commands(folder: Path, emu: Cli) -> None:
    def made(action: str, *arguments: str) -> Any:
        sources = [word for word in arguments if word == "two"]
        ended = emu("workload", action, *sources, "to", "--overwrite", *arguments[len(sources) :])
        assert ended.code == 0, ended.err
        return load_workload("to")

    assert made("scale", "two", "--load", "50%", "--nodes", "1").jobs["submit_s"].to_pylist()[-1] == 38.0
    assert made("slice", "two", "--start", "5 s", "--end", "20s").jobs["submit_s"].to_pylist() == [0, 5]
    assert made("sample", "two", "--count", "3", "--seed", "2").num_jobs == 3
    assert made("replicate", "two", "--copies", "2").num_tasks == 10
    assert made("truncate", "two", "--cap", "3 s").tasks["duration_s"].to_pylist() == [3, 1, 3, 2, 3]
    merged = made("merge", "two", "two", "--label", "yes")
    assert merged.num_jobs == 8
    assert history(merged)[-1].startswith("merge label=yes")
    assert emu("workload", "split", "two", "parts").code == 0
    assert sorted(p.name for p in Path("parts").iterdir()) == ["two-a", "two-b"]
    assert load_workload("parts/two-a").num_jobs == 2


@pytest.mark.parametrize("action", TRANSFORMATIONS)
def test_every_transformation_has_help(action: str, emu: Cli) -> None:
    ended = emu("workload", action, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert all(option.flag in ended.out for option in TRANSFORMATIONS[action].options)
