"""`--quiet`, `--verbose`, `--json` of lists, and the page of environment variables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from actors.schedulers.registry import scheduler_names
from clusters.cluster import presets
from emu import terminal
from emu.cli import main
from workloads.catalogue import generators
from workloads.formats import FORMATS

ROOT = Path(__file__).parents[3]
RUN = [
    "run",
    "--scheduler",
    "hawk",
    "--workload",
    "yahoo",
    "--nodes",
    "60",
    "--set",
    "workload_options.jobs=30",
    "--in-process",
    "--out",
]
Capture = pytest.CaptureFixture[str]


def test_quiet_leaves_results_alone(tmp_path: Path, capsys: Capture) -> None:
    assert main([*RUN, str(tmp_path / "a")]) == 0
    usual = capsys.readouterr()
    assert "emu: note: offered load is" in usual.err
    assert main([*RUN, str(tmp_path / "b"), "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    tables = [text.out.partition("makespan")[0] for text in (usual, quiet)]
    assert tables[0] == tables[1]
    assert json.loads((tmp_path / "b" / "manifest.json").read_text())["notes"]


def test_a_run_directory_has_no_name_of_a_file(tmp_path: Path, capsys: Capture) -> None:
    assert main([*RUN, str(tmp_path / "a"), "--set", "output.events=all"]) == 0
    for command, name in (("timeline", "a.csv"), ("report", "a.pdf")):
        assert main([command, str(tmp_path / "a"), "--out", str(tmp_path / name)]) == 2
        assert f"its name cannot end in {name[1:]}: want" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_verbose_adds_what_a_run_took(tmp_path: Path, capsys: Capture) -> None:
    assert main([*RUN, str(tmp_path / "a"), "--verbose"]) == 0
    err = capsys.readouterr().err
    assert re.search(
        r"emu: hawk, seed 1: load .*, compile .*, wall .*; [\d,]+ events, [\d,]+ MB; kernels in /", err
    )
    assert main(["cluster", "list", "--quiet"]) == 0
    assert main([*RUN, str(tmp_path / "b")]) == 0
    assert "kernels in" not in capsys.readouterr().err  # it holds for one command


def test_errors_are_printed_whatever_the_level(capsys: Capture) -> None:
    assert main(["schedulers", "hawkk", "--quiet"]) == 2
    assert "did you mean 'hawk'?" in capsys.readouterr().err
    assert main(["schedulers", "--quiet", "--verbose"]) == 2
    assert capsys.readouterr().err == "emu: --quiet and --verbose: give one of them\n"
    assert terminal._level == 0


def test_lists_as_json(capsys: Capture) -> None:
    def printed(*argv: str) -> object:
        assert main([*argv, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    listed = printed("schedulers")
    assert isinstance(listed, list)
    assert [row["scheduler"] for row in listed] == list(scheduler_names())
    hawk = printed("schedulers", "hawk")
    assert isinstance(hawk, dict)
    assert {"name": "steal_attempts", "default": 10}.items() <= {
        k: v for p in hawk["parameters"] if p["name"] == "steal_attempts" for k, v in p.items()
    }.items()
    assert printed("cluster", "list") == [{"cluster": n, "about": about} for n, about in presets().items()]
    workloads = printed("workload", "list")
    assert isinstance(workloads, dict)
    assert [row["generator"] for row in workloads["generators"]] == list(generators())
    assert {row["format"]: row["writes"] for row in workloads["formats"]} == {
        name: known.write is not None for name, known in FORMATS.items()
    }


def test_the_page_has_every_environment_variable() -> None:
    page = (ROOT / "docs" / "environment.md").read_text()
    sources = [
        path
        for folder in ("emu", "actors", "workloads", "clusters")
        for path in (ROOT / folder).rglob("*.py")
    ]
    read = {
        name
        for path in sources
        for name in re.findall(r"environ(?:\.get\(|\[)\s*\"([A-Z_]+)\"", path.read_text())
        + re.findall(r"\bEMU_[A-Z_]+\b", path.read_text())
    }
    assert {"EMU_CACHE_DIR", "EMU_DATA_DIR"} <= read
    assert not {name for name in read if f"`{name}`" not in page}
