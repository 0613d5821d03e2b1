"""The benchmark that checks stories by the events of runs: it finds nothing wrong, and finds what is made wrong."""

import copy
from pathlib import Path
from typing import Any

import pytest

import emu
from benchmarks.explained import CONSTRAINED, KEPT, SCHEDULERS, Run, check, job_faults

SMALL: dict[str, Any] = {"workload_options": {"jobs": 40}, "seed": 3}


def run_of(name: str, out: Path) -> Path:
    more = CONSTRAINED if name == "phoenix" else {}
    emu.run(name, "yahoo", 60, out=out, **SMALL, **KEPT, **more)
    return out


@pytest.mark.parametrize("name", SCHEDULERS)
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
