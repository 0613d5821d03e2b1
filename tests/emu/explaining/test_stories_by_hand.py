"""Stories that are worked out by hand: small workloads in TOML files, and what `emu explain` says of their jobs.

A story has a scheduler, or several separated by commas; a workload (`jobs`: rows of submission and durations of tasks;
`dags`, `coflows`: the arguments of the functions that make them); settings of the run; and, with ``[[story.of]]``, what
must be said: links of the chain as "begin end cause: words", words of sentences and reasons, and the longest wait.
What the run itself must give stands beside its settings: columns of tables, numbers of the summary by their path,
counters, columns that must be absent, and words of what is printed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import emu
from clusters.cluster import build_cluster
from clusters.schema import encode_texts
from emu.explaining.explanation import SCREEN, Explanation
from emu.results.comparison import Comparison
from emu.results.result import Result
from workloads.coflows import make_coflow_workload
from workloads.dags import make_dag_workload
from workloads.jobs import make_workload
from workloads.requests import Requests

KEPT: dict[str, Any] = {"in_process": True, "output_events": "all", "output_tasks": True}
KNOWN = {"chain", "causes", "says", "never", "longest", "facts", "holders", "held", "job"}


def stories() -> Iterator[Any]:
    """Yield each story under each of its schedulers and settings."""
    for path in sorted((Path(__file__).parent / "stories").glob("*.toml")):
        for story in tomllib.loads(path.read_text(encoding="utf-8"))["story"]:
            for scheduler in story["scheduler"].split(","):
                for number, settings in enumerate(story.get("each", [{}])):
                    name = f"{story['name']} ({scheduler}{f', {number}' if number else ''})"
                    yield pytest.param(story | {"scheduler": scheduler}, settings, id=name)


def workload_of(story: dict[str, Any]) -> Any:
    """Return the workload of a story."""
    requests = Requests(**story.get("requests", {}))
    if "jobs" in story:
        rows, more = story["jobs"], story.get("more", {})
        durations = [took for row in rows for took in row[1:]]
        counts = [len(row) - 1 for row in rows]
        return make_workload(
            "by hand", [row[0] for row in rows], counts, durations, requests=requests, **more
        )
    if "dags" in story:
        given = {"edges": []} | story["dags"]
        first = [given.pop(name) for name in ("submit", "stages", "tasks", "durations", "edges")]
        return make_dag_workload("by hand", *first, requests=requests, **given)
    given = dict(story["coflows"])
    first = [given.pop(name) for name in ("arrival", "width", "ingress", "egress", "bytes", "ports")]
    return make_coflow_workload("by hand", *first, **given)


def settings_of(story: dict[str, Any], folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the run of a story, whose files are written to a folder."""
    given = KEPT | story.get("settings", {}) | settings
    if "machines" in story:
        machines = {
            name: encode_texts(of) if isinstance(of[0], str) else of for name, of in story["machines"].items()
        }
        cluster = build_cluster("machines", machines.pop("slots"), **machines)
        pq.write_table(cluster.table, folder / "machines.parquet")
        given["cluster"] = folder / "machines.parquet"
    if "updates" in story:
        (folder / "updates.csv").write_text(f"time_s,coflow_id,update,side,port,to\n{story['updates']}\n")
        given["fabric_updates"] = folder / "updates.csv"
    if "failures" in story:
        (folder / "failures.csv").write_text(f"target,fail_s,repair_s\n{story['failures']}\n")
        given["dynamics_failures"] = folder / "failures.csv"
    return given


@pytest.mark.parametrize(("story", "settings"), [*stories()])
def test_what_is_said_is_what_was_worked_out(
    story: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    result = emu.run(story["scheduler"], workload_of(story), **settings_of(story, tmp_path, settings))
    within = story.get("within", 1e-6)
    check_result(result, story, within)
    for of in story.get("of", ()):
        assert set(of) <= KNOWN
        check(emu.explain(result, of["job"]), of, within)


def check_result(result: Result, story: dict[str, Any], within: float) -> None:
    """Compare tables, counters, the summary and what is printed with what was worked out; NaN stands for null."""
    for name, columns in story.get("tables", {}).items():
        table = result.heads if name == "heads" else result.tables[name]
        assert table is not None
        for column, values in columns.items():
            found = [math.nan if value is None else value for value in table[column].to_pylist()]
            assert found == pytest.approx(values, abs=within, nan_ok=True), (name, column)
    for path, value in story.get("summary", {}).items():
        found: Any = result.summary
        for part in path.split("/"):
            found = found[part]
        assert found == pytest.approx(value, abs=within), path
    for name, value in story.get("counters", {}).items():
        assert result.counters[name] == value, name
    for name in story.get("absent", ()):
        assert name not in {*result.heads.column_names, *result.tasks.column_names, *result.summary["jobs"]}
    printed = Comparison({"a": [result]}, "", {}).to_text()
    text = " ".join(f"{printed} {' '.join(result.notes)}".split())
    for words in story.get("printed", ()):
        assert words in text


def check(said: Explanation, of: dict[str, Any], within: float) -> None:
    """Compare an explanation with what must be said."""
    assert sum(said.causes.values()) == max(said.time_ns, 0)  # of what did not end it is -1
    assert len(said.render().splitlines()) <= SCREEN + 4
    if "chain" in of:
        assert len(said.chain) == len(of["chain"]), [
            (one.begin_ns / 1e9, one.cause, one.what) for one in said.chain
        ]
    for link, wanted in zip(said.chain, of.get("chain", ()), strict=False):
        times, _, words = wanted.partition(": ")
        begin, end, cause = times.split()
        assert [link.begin_ns / 1e9, link.end_ns / 1e9] == pytest.approx(
            [float(begin), float(end)], abs=within
        )
        assert link.cause == cause
        assert words in link.what
    for cause, took_s in of.get("causes", {}).items():
        assert said.causes.get(cause, 0) / 1e9 == pytest.approx(took_s, abs=max(within, 1e-6)), cause
    wait = said.longest
    text = " ".join(
        " ".join([*said.story(), *said.sentences, *(wait.reasons if wait is not None else ())]).split()
    )
    for words in of.get("says", ()):
        assert words in text
    for words in of.get("never", ()):
        assert words not in f"{text} {said.render()}"
    if not {"longest", "facts", "holders", "held"} & set(of):
        return
    assert wait is not None
    held = {str(row["job"]): row["s"] for row in wait.holders if "job" in row}
    for job, took_s in of.get("held", {}).items():
        assert held[job] == pytest.approx(took_s, abs=within)
    for name, value in of.get("longest", {}).items():
        assert alike(getattr(wait.link, name), value, within), name
    for name, value in of.get("facts", {}).items():
        assert alike(wait.facts[name], value, within), name
    if "holders" in of:
        assert len(wait.holders) == len(of["holders"])
    for row, wanted in zip(wait.holders, of.get("holders", ()), strict=False):
        for name, value in wanted.items():
            assert alike(row[name], value, within), (name, row)


def alike(found: Any, wanted: Any, within: float) -> bool:
    """Return whether a value is the one that is wanted, within seconds or shares where it is a number."""
    return (
        found == wanted
        if isinstance(wanted, str)
        else math.isclose(found, wanted, abs_tol=within, rel_tol=1e-6)
    )
