"""The programs that check stories by the events of runs: they find nothing wrong, and find what is made wrong."""

import copy
from pathlib import Path
from typing import Any

import pytest

import emu
from tests.oracles.explained import CONSTRAINED, KEPT, SCHEDULERS, Run, check, job_faults
from tests.oracles.explained_waits import Coflows, Dags, chain_faults
from tests.oracles.explained_waits import check as check_waits
from workloads.catalogue import load_workload

SMALL: dict[str, Any] = {"workload_options": {"jobs": 40}, "seed": 3}


def run_of(name: str, out: Path) -> Path:
    more = CONSTRAINED if name == "phoenix" else {}
    emu.run(name, "yahoo", 60, out=out, **SMALL, **KEPT, **more)
    return out


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow("every scheduler")] if name != "eagle" else [])
        for name in SCHEDULERS
    ],
)
def test_stories_name_what_held_the_longest_wait(name: str, tmp_path: Path) -> None:
    stories = list(check(run_of(name, tmp_path / name), 6))
    assert len(stories) == 6
    assert [faults for _, faults in stories] == [[]] * 6
    assert any(story["longest_wait"]["holders"] for story, _ in stories)


def test_what_is_made_wrong_is_found(tmp_path: Path) -> None:
    run = Run(run_of("eagle", tmp_path / "eagle"))
    story = next(
        story
        for story, _ in check(run.path, 6)
        if len(story["longest_wait"]["holders"]) > 1 and story["longest_wait"]["holders"][0]["turn"]
    )

    def faults(change: Any) -> str:
        changed = copy.deepcopy(story)
        change(changed, changed["longest_wait"])
        return "; ".join(job_faults(run, changed))

    assert faults(lambda story, wait: None) == ""
    assert "gaps" in faults(lambda story, wait: story["chain"].pop(1))
    assert "no task ran as it says" in faults(lambda story, wait: story["chain"][-1].update(what="it ran"))
    assert "tasks; " in faults(lambda story, wait: wait["holders"].pop())
    assert "for so long" in faults(lambda story, wait: wait["holders"][0].update(s=1.0))
    assert "did not hold the slot longest" in faults(lambda story, wait: wait["holders"].reverse())
    assert "do not name node" in faults(lambda story, wait: wait.update(what="it waited"))
    assert "joined the queue" in faults(lambda story, wait: wait.update(from_s=wait["from_s"] + 1e-3))
    assert "left the queue" in faults(lambda story, wait: wait.update(to_s=wait["to_s"] + 1e-3))
    assert "is said to be one that" in faults(
        lambda story, wait: [
            one.update(turn="came later" if one["turn"] == "came before" else "came before")
            for one in wait["holders"]
        ]
    )
    assert "had a free slot" in faults(lambda story, wait: wait["facts"].update(free_nodes=59))
    assert "longer than the longest wait" in faults(lambda story, wait: story.update(longest_wait=None))


@pytest.mark.slow("several whole runs")
@pytest.mark.parametrize(("name", "size"), [("drf", 16), ("philae", 40), ("aalo", 40)])
def test_stories_of_coflows_and_dag_jobs_name_what_held_the_longest_wait(
    name: str, size: int, tmp_path: Path
) -> None:
    found = list(check_waits(name, tmp_path / name, 4, size))
    assert [faults for _, faults in found] == [[]] * 4
    waits = [story["longest_wait"] for story, _ in found if story["longest_wait"] is not None]
    assert any(wait["holders"] for wait in waits)


def changed(story: Any, **values: Any) -> Any:
    """Return a story whose first holder of the longest wait has other values."""
    other = copy.deepcopy(story)
    other["longest_wait"]["holders"][0].update(values)
    return other


def test_what_is_made_wrong_in_a_coflow_s_story_is_found(tmp_path: Path) -> None:
    story = next(s for s, _ in check_waits("aalo", tmp_path / "aalo", 4, 40) if s["longest_wait"]["holders"])
    run, coflow = Coflows(tmp_path / "aalo"), int(story["title"].split(",")[0].removeprefix("coflow "))
    first = story["longest_wait"]["holders"][0]
    assert list(run.faults(story, coflow)) == []
    assert any(" sent " in text for text in run.faults(changed(story, bytes=2 * first["bytes"]), coflow))
    assert any("used its ports" in text for text in run.faults(changed(story, coflow=-1), coflow))
    gap = copy.deepcopy(story)
    del gap["chain"][0]
    assert any("there are gaps" in text for text in chain_faults(gap))


@pytest.mark.slow("several whole runs")
def test_what_is_made_wrong_in_a_dag_job_s_story_is_found(tmp_path: Path) -> None:
    story = next(s for s, _ in check_waits("drf", tmp_path / "drf", 4, 16) if s["longest_wait"]["holders"])
    workload = load_workload("query-dags", options={"jobs": 16})
    run, job = Dags(tmp_path / "drf", workload), int(story["title"].split(",")[0].removeprefix("job "))
    name = f"{story['longest_wait']['facts']['resource']} held"
    assert list(run.faults(story, job)) == []
    assert "jobs held other amounts than it says" in run.faults(changed(story, **{name: 1e3}), job)
    other = copy.deepcopy(story)
    other["longest_wait"]["facts"]["had_room_s"] += 1.0
    assert any("had room for" in text for text in run.faults(other, job))
