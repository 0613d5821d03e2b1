"""`--json` of lists, and the page of environment variables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from actors.schedulers.registry import scheduler_names
from clusters.cluster import presets
from emu.cli import main
from workloads.catalogue import generators
from workloads.formats import FORMATS

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


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
