"""The record of what happened: the same however a run is hosted, and what was asked for."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from actors.hosting.partition import Partition
from actors.hosting.recorded import in_order, is_note, read_events
from actors.kernel.messages import ARRIVAL
from actors.kernel.queue import NEVER
from actors.kernel.trace import ACTOR_BITS, STARTS, TRACE
from emu.configuration.event_selection import events_text, parse_events
from emu.configuration.plan import configure, prepare
from emu.running.emulation import observe
from workloads.jobs import make_workload

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 40,
    "workload_options": {"jobs": 12},
    "in_process": True,
    "seed": 3,
}
MORE = SMALL | {"nodes": 100, "workload_options": {"jobs": 40}}


def events_of(scheduler: str, **settings: Any) -> Any:
    return emu.run(scheduler, **MORE, **settings).events


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize("scheduler", ["eagle", "hawk", "dist-lwl"])
def test_the_number_of_partitions_changes_no_event(scheduler: str) -> None:
    given = SMALL | {"output_events": "all"}
    alone = emu.run(scheduler, **given).events
    for partitions in (2, 3):
        assert emu.run(scheduler, **given, clock="windows", partitions=partitions).events.equals(alone)


FAILURES = {"dynamics_mtbf": "20000s", "dynamics_mttr": "100s"}
COSTS = {"cost_model": "fixed", "cost_per_message": "1ms", "cost_per_task": "5ms"}


JOBS, CLASS = "job=3,7", "class=short; time=5s.."


@pytest.mark.slow("the conformance suite tries it in small cases")
@pytest.mark.parametrize(
    ("scheduler", "settings", "asked"),
    [
        ("random", {}, JOBS),
        ("dist-lwl", {}, CLASS),
        ("hawk", {}, JOBS),
        ("phoenix", {}, CLASS),
        ("yacc-d", COSTS, JOBS),
        ("eagle", FAILURES, CLASS),
    ],
)
def test_partitions_write_the_same_file_of_chosen_events(
    scheduler: str, settings: dict[str, Any], asked: str, tmp_path: Path
) -> None:
    """Also where a note is recorded and its event, of no job or of another one, is not."""
    given = SMALL | settings | {"output_events": asked}
    files = []
    for partitions in (1, 2, 3):
        clock = {"clock": "windows", "partitions": partitions} if partitions > 1 else {}
        out = tmp_path / str(partitions)
        assert emu.run(scheduler, **given, **clock, out=out).events.num_rows > 50
        files.append((out / "events.parquet").read_bytes())
    assert files[0] == files[1] == files[2]


def test_events_agree_with_counters_and_tables() -> None:
    result = emu.run("eagle", **MORE, output_events="all", output_tasks=True)
    frame = result.events.to_pandas()
    kinds = frame.kind.value_counts()
    notes = frame[frame.number.isna()]
    assert len(frame) - len(notes) == result.summary["engine"]["events"]
    assert kinds["PROBE"] + kinds["PLACED"] == sum(
        result.counters[name] for name in ("probes", "probes_again", "placements")
    )
    assert kinds["REJECTED"] == result.counters["rejections"]
    assert kinds["NO_TASK"] == result.counters["empty_answers"]
    assert kinds["BYPASS"] == result.counters["bypasses"]
    started = frame[frame.kind == "START"].sort_values("task")
    tasks = result.tasks.to_pandas()
    assert (started.node.to_numpy() == tasks.node.to_numpy()).all()
    assert (started.time_ns.to_numpy() == np.round(tasks.start_s.to_numpy() * 1e9)).all()
    assert (frame.left_ns.dropna() <= frame.time_ns[frame.left_ns.notna()]).all()


def test_queues_are_counted() -> None:
    """What enters the queue of a node less what leaves it, from the messages alone."""
    frame = events_of("sparrow", output_events="all").to_pandas()
    for node in range(0, 100, 9):
        mine = frame[(frame.receiver == node) | ((frame.sender == node) & (frame.kind == "REQUEST"))]
        enters = mine[mine.kind == "PROBE"].time_ns.to_numpy()
        leaves = mine[mine.kind == "REQUEST"].left_ns.to_numpy()
        there = mine[mine.receiver == node]
        for time, kind, queued in zip(there.time_ns, there.kind, there.queued, strict=True):
            if kind == "PROBE":  # at equal times it is open which came first
                least = np.sum(enters < time) - np.sum(leaves <= time)
                assert least <= queued <= np.sum(enters <= time) - np.sum(leaves < time)


def test_chosen_events_are_those_of_all() -> None:
    everything = events_of("hawk", output_events="all").to_pandas()
    result = emu.run("hawk", **MORE)
    jct = result.jobs["jct_s"].to_numpy()
    slowest = set(np.argsort(-jct, kind="stable")[:4].tolist())
    is_long = np.array(result.jobs["job_class"].to_pylist()) == "long"
    for text, jobs in (
        ("job=3,17", {3, 17}),
        ("slowest=4", slowest),
        ("class=long", set(np.flatnonzero(is_long).tolist())),
    ):
        found = events_of("hawk", output_events=text).to_pandas()
        assert as_rows(found) == as_rows(everything[everything.job.isin(jobs)])
    drawn = events_of("hawk", output_events="random=5; class=short").to_pandas()
    assert drawn.job.nunique() == 5
    assert not is_long[drawn.job.unique().astype(int)].any()
    span = events_of("hawk", output_events="time=100s..200s").to_pandas()
    inside = everything[(everything.time_ns >= 100e9) & (everything.time_ns < 200e9)]
    assert as_rows(span) == as_rows(inside)


COFLOWS: dict[str, Any] = {
    "workload": "synthetic-coflows",
    "workload_options": {"coflows": 12, "ports": 6},
    "in_process": True,
}
OF_A_COFLOW = {"FLOW_END", "LINE_END", "SET_RATE", "SET_EXTRA", "SHRINK", "FLOW_DONE", "PACE", "LINE_DONE", "SET_LINE",
               "VERDICT", "REGISTER"}  # fmt: skip


@pytest.mark.parametrize("scheduler", ["fair", "sebf", "philae", "aalo", "saath", "sincronia", "cs-mha"])
def test_messages_of_coflows_name_a_coflow_that_is_at_their_agent(scheduler: str) -> None:
    """Those of lines too: agents are ports at which the coflow has flows."""
    result = emu.run(scheduler, **COFLOWS, output_events="all", output_tasks=True)
    frame, flows = result.events.to_pandas(), result.flows.to_pandas()
    own = frame[frame.kind.isin(OF_A_COFLOW)]
    assert own.job.notna().all()
    assert frame[~frame.kind.isin(OF_A_COFLOW)].job.isna().all()
    at_port = {(row.coflow_id, port) for row in flows.itertuples() for port in (row.ingress, row.egress)}
    agents = own[own.node.notna()]
    assert {(job, node) for job, node in zip(agents.job, agents.node, strict=True)} <= at_port
    assert set(own.job) == set(range(12))


@pytest.mark.parametrize("scheduler", ["fair", "philae"])
def test_chosen_events_of_coflows_are_those_of_all(scheduler: str) -> None:
    everything = emu.run(scheduler, **COFLOWS, output_events="all").events.to_pandas()
    found = emu.run(scheduler, **COFLOWS, output_events="job=3,7").events.to_pandas()
    assert as_rows(found) == as_rows(everything[everything.job.isin({3, 7})])


def as_rows(frame: Any) -> list[Any]:
    return frame.fillna(-1).astype({"job": int, "task": int, "kind": str}).to_numpy().tolist()


@pytest.mark.slow("the conformance suite tries it in small cases")
def test_a_partition_that_goes_on_from_a_snapshot_records_each_event_once(tmp_path: Path) -> None:
    """What was written after the snapshot comes again, and is cut off first."""
    plan = prepare(configure({**MORE, "scheduler": "eagle", "output_events": "all"}))
    setting, watched = plan.setting(0), replace(observe(plan, 0, tmp_path), timeline_period_s=None)
    assert watched.events is not None

    def started() -> Partition:
        partition = Partition(setting, watched)
        partition.start()
        return partition

    def read() -> list[np.ndarray]:
        parts = list(read_events(watched.events, setting))
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    first = started()
    kept = None
    for _ in range(100):
        first._step(int(NEVER), np.int64(1000))
        now = first.snapshot()
        if kept is None and now["recorded"][0] >= 4000:
            kept = now
        if now["recorded"][0] >= 7000:
            break
    assert kept is not None
    assert (tmp_path / "checkpoints" / "traces" / "0.trace").stat().st_size >= 7000 * TRACE.itemsize
    second = started()
    second.restore(kept)
    assert second.run(60.0).done
    rows = second.share().recorded
    again = read()
    assert again[0].size == rows
    whole = started()
    assert whole.run(60.0).done
    whole.share()
    assert all(np.array_equal(a, b) for a, b in zip(again, read(), strict=True))


def test_files_are_merged_in_order_in_parts() -> None:
    """As if all were sorted at once, though they are read in parts; a note stays behind its event.

    Some notes are there without their event. Of an event that all partitions have there is one copy, and all notes.
    """
    rng = np.random.default_rng(1)
    rows = np.zeros(900, TRACE)
    rows["due"], rows["key"] = np.sort(rng.integers(0, 60, 900)), rng.permutation(900)
    rows.sort(order=["due", "key"])
    rows["time"], rows["what"] = rows["due"], ARRIVAL << ACTOR_BITS
    owner = rng.integers(0, 3, 900)
    for i in np.flatnonzero(rng.random(900) < 0.2):  # as later as its handler began later
        rows[i] = rows[i - 1] if rng.random() < 0.7 else rows[i]
        rows["time"][i], rows["what"][i] = rows["due"][i] + 100, STARTS << ACTOR_BITS
        owner[i] = owner[i - 1]
    rows["a"] = np.arange(900)
    everyone = np.zeros(900, bool)
    everyone[:-1] = ~is_note(rows[:-1]) & is_note(rows[1:]) & (rows["key"][:-1] == rows["key"][1:])
    owner[everyone] = owner[np.flatnonzero(everyone) + 1]
    files = [rows[(owner == k) | everyone] for k in range(3)]
    merged = np.concatenate(list(in_order(files, 16)))
    assert np.array_equal(merged["a"], rows["a"])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("none", "none"), ("all", "all"), (" job = 17, 3,3 ", "job=3,17"), ("time=1min..", "time=60s.."),
        ("slowest=20;class=long", "class=long; slowest=20"), ("time=..5s; random=2", "random=2; time=0s..5s"),
    ],
)  # fmt: skip
def test_what_is_asked_for_in_its_shortest_form(text: str, same: str) -> None:
    assert events_text(parse_events(text)) == same
    assert parse_events(same) == parse_events(text)


def test_commands_explain_and_write_timelines(
    tmp_path: Path, emu: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = ("--workload", "yahoo", "--nodes", "30", "--set", "workload_options.jobs=9", "--in-process")
    for name in ("sparrow", "hawk"):
        emu("run", "--scheduler", name, *sets, "--out", tmp_path / name)
    shown = emu("explain", tmp_path / "sparrow", "7").out
    assert "where its time went" in shown
    assert "ended last" in shown
    beside = json.loads(
        emu("explain", tmp_path / "sparrow", "7", "--beside", tmp_path / "hawk", "--json").out
    )
    assert [sum(one["causes_ns"].values()) for one in beside] == [
        round(one["time_s"] * 1e9) for one in beside
    ]
    assert "all" in emu("explain", tmp_path / "sparrow").out
    emu("timeline", tmp_path / "sparrow", "--jobs", "3-5", "--out", tmp_path / "trace.json")
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    jobs = {entry["name"] for entry in entries if entry["ph"] == "X"}
    assert jobs == {"job 3", "job 4", "job 5"}
    check_format(entries)
    whole = "--set", "output.events=all", "--set", "output.tasks=true", "--out", tmp_path / "whole"
    emu("run", "--scheduler", "sparrow", *sets, *whole)
    monkeypatch.setattr("emu.explaining.timeline.MOST_BYTES", 100_000)
    monkeypatch.setattr(
        "emu.results.result.Result.events", property(lambda _: pytest.fail("events are not read"))
    )
    assert "choose nodes or jobs" in emu("timeline", tmp_path / "whole").err
    assert "is neither a number nor a span" in emu("timeline", tmp_path / "sparrow", "--nodes", "3-x").err


def check_format(entries: list[dict[str, Any]]) -> None:
    """What the Trace Event Format asks of each entry; slices of a track do not overlap, arrows have both ends."""
    ends: dict[tuple[int, int], float] = {}
    arrows: dict[int, list[tuple[str, float]]] = {}
    for entry in entries:
        assert entry["ph"] in "XMCisf"
        assert isinstance(entry["pid"], int)
        if entry["ph"] == "X":
            track = (entry["pid"], entry["tid"])
            assert entry["ts"] >= ends.get(track, 0.0) - 1e-3
            ends[track] = entry["ts"] + entry["dur"]
        if entry["ph"] in "sf":
            arrows.setdefault(entry["id"], []).append((entry["ph"], entry["ts"]))
    assert arrows
    assert all(
        [end[0] for end in both] == ["s", "f"] and both[0][1] <= both[1][1] for both in arrows.values()
    )


def test_what_decisions_saw_is_recorded_by_hand() -> None:
    """Two nodes have 9 s of work each; the second job, at 4 s, expects 5 s there, and 7 s for its last task.

    Of two nodes that wait as long that is chosen which was chosen last.
    """
    workload = make_workload("two", [0.0, 4.0], [2, 3], [9.0, 9.0, 2.0, 2.0, 2.0])
    given = {"network_delay": 0.0, "short_cutoff": 100, "in_process": True, "output_events": "all"}
    result = emu.run("central-lwl", workload, 2, **given)
    frame = result.events.to_pandas()
    choices = frame[frame.kind == "CHOICE"]
    rows = [(row.job, row.task, row.c, row.d / 1e9) for row in choices.itertuples()]
    assert rows == [(0, 0, 0, 0.0), (0, 1, 1, 0.0), (1, 2, 0, 5.0), (1, 3, 1, 5.0), (1, 4, 1, 7.0)]
    assert set(choices.receiver) == {2}


@pytest.mark.parametrize("scheduler", ["hawk", "eagle", "central-lwl", "dist-lwl"])
def test_each_placement_has_a_choice_of_its_node(scheduler: str) -> None:
    """Of those that place tasks by the least wait: as many choices as placements, on the same nodes."""
    frame = events_of(scheduler, output_events="all").to_pandas()
    choices, placed = frame[frame.kind == "CHOICE"], frame[frame.kind == "PLACED"]
    assert len(choices) > 10
    assert sorted(zip(choices.task, choices.c, strict=True)) == sorted(
        zip(placed.task, placed.receiver, strict=True)
    )
    assert (choices.d >= 0).all()


def test_what_is_served_before_its_turn_has_the_smaller_key() -> None:
    frame = events_of("eagle", output_events="all").to_pandas()
    bypasses = frame[frame.kind == "BYPASS"]
    assert len(bypasses) > 10
    assert (bypasses.c < bypasses.d).all()
    assert (bypasses.c > 0).all()
