"""The benchmark that checks stories of DAG jobs and coflows by events: it finds what is wrong, and nothing else."""

import copy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.explained_waits import Coflows, Dags, chain_faults, check
from workloads.catalogue import load_workload


@pytest.mark.parametrize(("name", "size"), [("drf", 16), ("philae", 40), ("aalo", 40)])
def test_stories_name_what_held_the_longest_wait(name: str, size: int, tmp_path: Path) -> None:
    found = list(check(name, tmp_path / name, 4, size))
    assert [faults for _, faults in found] == [[]] * 4
    waits = [story["longest_wait"] for story, _ in found if story["longest_wait"] is not None]
    assert any(wait["holders"] for wait in waits)


def changed(story: Any, **values: Any) -> Any:
    """Return a story whose first holder of the longest wait has other values."""
    other = copy.deepcopy(story)
    other["longest_wait"]["holders"][0].update(values)
    return other


def test_what_is_made_wrong_in_a_coflow_s_story_is_found(tmp_path: Path) -> None:
    story = next(s for s, _ in check("aalo", tmp_path / "aalo", 4, 40) if s["longest_wait"]["holders"])
    run, coflow = Coflows(tmp_path / "aalo"), int(story["title"].split(",")[0].removeprefix("coflow "))
    first = story["longest_wait"]["holders"][0]
    assert list(run.faults(story, coflow)) == []
    assert any(" sent " in text for text in run.faults(changed(story, bytes=2 * first["bytes"]), coflow))
    assert any("used its ports" in text for text in run.faults(changed(story, coflow=-1), coflow))
    gap = copy.deepcopy(story)
    del gap["chain"][0]
    assert any("there are gaps" in text for text in chain_faults(gap))


def test_what_is_made_wrong_in_a_dag_job_s_story_is_found(tmp_path: Path) -> None:
    story = next(s for s, _ in check("drf", tmp_path / "drf", 4, 16) if s["longest_wait"]["holders"])
    workload = load_workload("query-dags", options={"jobs": 16})
    run, job = Dags(tmp_path / "drf", workload), int(story["title"].split(",")[0].removeprefix("job "))
    name = f"{story['longest_wait']['facts']['resource']} held"
    assert list(run.faults(story, job)) == []
    assert "jobs held other amounts than it says" in run.faults(changed(story, **{name: 1e3}), job)
    other = copy.deepcopy(story)
    other["longest_wait"]["facts"]["had_room_s"] += 1.0
    assert any("had room for" in text for text in run.faults(other, job))
