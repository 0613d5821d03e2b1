"""What tasks.parquet says of waits: against a replay of the queues, event by event, and examples by hand."""

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from emu.families.jobs import task_waits
from tests.emu.recorded_runs import NODES, recorded, settings_of_jobs

NS = 10**9
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "slots": {"slots": 3},
    "failures": {"dynamics_mtbf": "5 h", "dynamics_mttr": "100 s", "dynamics_detection": "3 s"},
    "delays": {"network_spread": "1 ms", "network_cross_rack_delay": "3 ms"},
}


def replayed(events: pd.DataFrame, is_sticky: bool) -> dict[tuple[int, int, int], int]:
    """Return when each (task, node, start) had joined a queue, by queues that are kept event by event.

    A queue has the probes of a job in order; what leaves a node leaves at `left_ns`, which is before it arrives. A
    sticky probe does not leave, but with the answer that no task is left; until then it waits from a task's end on.
    """
    moments = []
    for at, e in enumerate(events.itertuples()):
        if e.kind in ("PROBE", "PLACED", "OFFERED") and e.receiver < NODES:
            moments.append((e.time_ns, at, "in", e))
        if e.kind in ("REQUEST", "PROBE", "LOST", "REJECTED") and e.sender < NODES:
            moments.append((e.left_ns, at, "out", e))
        if e.kind in ("MOVE", "TASK", "NO_TASK", "START", "DONE"):
            moments.append((e.d if e.kind == "DONE" else e.time_ns, at, e.kind, e))
    probes, asked, ended = defaultdict(list), defaultdict(list), {}
    bound, fetched, found = {}, {}, {}
    for time, _, what, e in sorted(moments, key=lambda one: (one[0], one[2] not in ("in", "DONE"), one[1])):
        node = e.sender if what in ("out", "DONE") else e.receiver
        queue = probes[e.job, node]
        if what == "in" and e.kind in ("PLACED", "OFFERED"):
            bound[e.task, node] = time
        elif what == "in":
            queue.append(time)
        elif what == "MOVE":
            probes[e.job, e.b].pop(0)
            queue.append(time)
        elif what == "out" and e.kind == "REJECTED":
            if time in queue:
                queue.remove(time)
        elif what == "out" and e.kind == "LOST":
            if e.b == -1 and queue:
                queue.pop(0)
        elif what == "out" and e.kind == "PROBE":
            queue.pop(0)
        elif what == "out" and is_sticky:
            asked[e.job, node].append(max(queue[0], ended.get((e.job, node), 0)) if queue else None)
        elif what == "out":
            asked[e.job, node].append(queue.pop(0))
        elif what == "DONE":
            ended[e.job, node] = time
        elif what == "TASK":
            fetched[e.task, node] = asked[e.job, node].pop(0)
        elif what == "NO_TASK":
            asked[e.job, node].pop(0)
            if is_sticky:
                queue.clear()
        elif what == "START":
            found[e.task, node, time] = fetched.pop((e.task, node), None) or bound[e.task, node]
    return found


@pytest.mark.parametrize(("name", "setting"), [*settings_of_jobs(SETTINGS), ("eagle@sticky=no", "plain")])
def test_waits_are_those_of_queues_that_are_kept_event_by_event(name: str, setting: str) -> None:
    result = recorded(name, **SETTINGS[setting])
    tasks = result.tasks.to_pandas()
    is_sticky = name in ("eagle", "eagle-c", "ideal-eagle") or name.startswith("phoenix")
    found = replayed(result.events.to_pandas().fillna(-1), is_sticky)
    first = np.concatenate([[0], np.cumsum(result.jobs["num_tasks"].to_numpy())])
    for row in tasks.itertuples():
        expected = found[first[row.job_id] + row.task, row.node, round(row.start_s * NS)]
        assert row.enqueued_s == expected / NS


@pytest.mark.parametrize("name", ["sparrow", "hawk", "eagle", "central-lwl"])
def test_what_was_ahead_and_probes_sent_are_as_counted_task_by_task(name: str) -> None:
    result = recorded(name, jobs=40, slots=2)
    tasks, events = result.tasks.to_pandas(), result.events.to_pandas()
    probes = events[(events.kind == "PROBE") & (events.sender >= NODES)]
    for row in tasks[::5].itertuples():
        there = tasks[tasks.node == row.node]
        ran = there[(there.start_s < row.start_s) & (there.finish_s > row.enqueued_s)]
        if row.enqueued_s == row.start_s:
            ran = ran[:0]
        assert row.ahead == len(ran)
        work = np.minimum(ran.finish_s, row.start_s) - np.maximum(ran.start_s, row.enqueued_s)
        assert row.ahead_s == pytest.approx(work.sum(), abs=1e-6)
        sent = probes[(probes.job == row.job_id) & (probes.left_ns <= round(row.start_s * NS))]
        assert row.probes_sent == len(sent)
    assert tasks.ahead.max() > 2
    assert (tasks.probes_sent.max() > 50) == (name != "central-lwl")


@pytest.mark.parametrize("name", ["sparrow", "random"])
def test_no_two_tasks_are_in_one_slot_at_once_and_the_first_that_is_free_is_taken(name: str) -> None:
    tasks = recorded(name, jobs=40, slots=3).tasks.to_pandas().sort_values(["node", "start_s"])
    assert set(tasks.slot) == {0, 1, 2}
    for _, there in tasks.groupby("node"):
        free = [0.0] * 3
        for row in there.itertuples():
            assert row.slot == next(k for k, until in enumerate(free) if until <= row.start_s)
            free[int(row.slot)] = row.finish_s


def test_blocks_of_jobs_give_the_same_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, of_few = (recorded("hawk", events).tasks for events in ("all", "job=3,10"))
    monkeypatch.setattr(task_waits, "TASKS_A_BLOCK", 50)
    assert recorded("hawk").tasks.equals(whole)
    assert recorded("hawk", "job=3,10").tasks.equals(of_few)


def test_what_is_not_recorded_is_null_and_without_events_there_are_no_such_columns() -> None:
    whole, some = recorded("sparrow").tasks, recorded("sparrow", "job=3,5").tasks
    further = [
        name for name in whole.column_names if name not in recorded("sparrow", "none").tasks.column_names
    ]
    assert further == ["slot", "enqueued_s", "ahead", "ahead_s", "probes_sent"]
    chosen = np.isin(whole["job_id"].to_numpy(), [3, 5])
    for name in further:
        values = some[name].to_pandas()
        assert values[chosen].equals(whole[name].to_pandas()[chosen].astype(values.dtype))
        assert values[~chosen].isna().all()
    assert (
        recorded("sparrow", "time=1s..9s").tasks.column_names
        == recorded("sparrow", "none").tasks.column_names
    )
