"""Bytes that WfCommons' instances state: sizes of files that tasks write and read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.dags import DagWorkload
from workloads.readers.wfcommons import read_wfcommons

Json = dict[str, Any]
Row = tuple[str, Sequence[str], Sequence[str], Sequence[str]]

# Task, parents, files that it reads, files that it writes. All of map read conf, and a, which gen wrote; join reads a
# too, but gen is not its parent, and changes out.
ROWS: list[Row] = [
    ("gen_1", [], ["raw"], ["a", "b"]),
    ("map_1", ["gen_1"], ["conf", "a"], ["m1"]),
    ("map_2", ["gen_1"], ["conf", "a", "b", "a"], ["m2"]),
    ("join_1", ["map_1", "map_2"], ["m1", "m2", "raw", "a", "out"], ["out"]),
]
SIZES = {"raw": 1000, "conf": 7, "a": 100, "b": 30, "m1": 5, "m2": 6, "out": 2}


def instance(rows: Sequence[Row] = ROWS, sizes: dict[str, int] = SIZES) -> Json:
    """An instance of version 1.5."""
    tasks = [
        {
            "name": id_,
            "id": id_,
            "parents": [*parents],
            "children": [],
            "inputFiles": [*reads],
            "outputFiles": [*out],
        }
        for id_, parents, reads, out in rows
    ]
    files = [{"id": name, "sizeInBytes": size} for name, size in sizes.items()]
    runs = [{"id": id_, "runtimeInSeconds": 1.0 + n} for n, (id_, *_) in enumerate(rows)]
    workflow = {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": runs}}
    return {"name": "wf", "schemaVersion": "1.5", "workflow": workflow}


def as_1_4(value: Json) -> Json:
    """The same in the form of version 1.4, in which a task has its files, and a path belongs to their names."""
    specification, execution = value["workflow"]["specification"], value["workflow"]["execution"]
    sizes = {file["id"]: file["sizeInBytes"] for file in specification["files"]}
    tasks = [
        {
            "name": task["name"],
            "parents": task["parents"],
            "runtimeInSeconds": run["runtimeInSeconds"],
            "files": [
                {"link": link, "path": "/data/", "name": name, "sizeInBytes": sizes[name]}
                for link, key in (("input", "inputFiles"), ("output", "outputFiles"))
                for name in task[key]
            ],
        }
        for task, run in zip(specification["tasks"], execution["tasks"], strict=True)
    ]
    return value | {"schemaVersion": "1.4", "workflow": {"tasks": tasks}}


def read(folder: Path, value: Json, **options: Any) -> DagWorkload:
    path = folder / "a.json"
    path.write_text(json.dumps(value))
    return read_wfcommons(path, **options)


def edge_bytes(dag: DagWorkload) -> dict[tuple[str, str], Any]:
    names = [name.removeprefix("wf/") for name in dag.stages["name"].to_pylist()]
    return {(names[e["parent"]], names[e["child"]]): e.get("size_bytes") for e in dag.edges.to_pylist()}


@pytest.mark.parametrize("form", [lambda v: v, as_1_4, lambda v: v | {"schemaVersion": "1.6"}])
def test_edges_have_the_files_that_the_child_reads_and_the_parent_writes(tmp_path, form):
    """A file that both tasks of map read is sent twice; one that a task names twice, once."""
    dag = read(tmp_path, form(instance()))
    assert dag.stages["num_tasks"].to_pylist() == [1, 2, 1]
    assert edge_bytes(dag) == {("gen", "map"): 100 + 100 + 30, ("map", "join"): 11}
    assert dag.stages["input_bytes"].to_pylist() == [1000, 14, 1002]
    wrong = "1 files read of a task that is no parent of the one that reads: their bytes"
    assert dag.metadata["dropped"] == wrong
    alone = read(tmp_path, form(instance()), group=False)
    assert alone.edges["size_bytes"].to_pylist() == [100, 130, 5, 6]
    assert alone.stages["input_bytes"].to_pylist() == [1000, 7, 7, 1002]


def test_one_to_one_edges_have_the_files_of_all_lanes(tmp_path):
    rows = [
        ("map_1", [], [], ["m1"]),
        ("map_2", [], [], ["m2"]),
        ("sort_1", ["map_1"], ["m1"], []),
        ("sort_2", ["map_2"], ["m2", "raw"], []),
    ]
    dag = read(tmp_path, instance(rows))
    assert dag.edges["kind"].to_pylist() == ["one-to-one"]
    assert dag.edges["size_bytes"].to_pylist() == [11]
    assert dag.stages["input_bytes"].to_pylist() == [0, 1000]


def test_a_file_of_several_writers_counts_once(tmp_path):
    rows = [("a_1", [], [], ["m1"]), ("b_1", [], [], ["m1"]), ("c_1", ["b_1", "a_1"], ["m1"], [])]
    dag = read(tmp_path, instance(rows))
    assert edge_bytes(dag) == {("a", "c"): 5, ("b", "c"): 0}
    wrong = "1 files that several tasks write: taken as of the first that is a parent of the task that reads"
    assert wrong in dag.metadata["repaired"]
    rows = [("a_1", [], [], ["m1"]), ("b_1", ["a_1"], [], ["m1"]), ("c_1", ["b_1"], ["m1"], [])]
    assert edge_bytes(read(tmp_path, instance(rows))) == {("a", "b"): 0, ("b", "c"): 5}


def test_what_states_no_size_is_not_known(tmp_path):
    dag = read(tmp_path, instance(sizes={k: v for k, v in SIZES.items() if k not in ("b", "conf")}))
    assert edge_bytes(dag) == {("gen", "map"): None, ("map", "join"): 11}
    assert dag.stages["input_bytes"].to_pylist() == [1000, None, 1002]
    assert "2 files of which no size is stated: the bytes where they are read" in dag.metadata["dropped"]
    unnamed = [(id_, parents, (), ()) for id_, parents, *_ in ROWS]
    assert read(tmp_path, instance(unnamed)).bytes_known == ()
    absent = instance(unnamed, {})
    for task in absent["workflow"]["specification"]["tasks"]:
        del task["inputFiles"], task["outputFiles"]
    del absent["workflow"]["specification"]["files"]
    assert read(tmp_path, absent).bytes_known == ()


@st.composite
def instances(draw: Any) -> Json:
    """Tasks in an order that precedence allows, whose files may have several writers, or come from no parent."""
    names = [f"f{n}" for n in range(6)]
    files = st.lists(st.sampled_from(names), max_size=4)
    rows: list[Row] = []
    for n in range(draw(st.integers(1, 9))):
        before = [id_ for id_, *_ in rows]
        parents = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        rows.append((f"{draw(st.sampled_from('ab'))}_{n}", parents, draw(files), draw(files)))
    return instance(rows, {name: draw(st.integers(0, 10**6)) for name in names})


@settings(max_examples=30)
@given(value=instances())
def test_what_tasks_read_is_on_edges_or_input_or_left_out(tmp_path_factory, value):
    """However tasks are grouped; a file of several writers is not read twice by a task."""
    specification = value["workflow"]["specification"]
    sizes = {file["id"]: file["sizeInBytes"] for file in specification["files"]}
    tasks = specification["tasks"]
    due, files_apart, named = 0, 0, False
    for task in tasks:
        named = named or bool(task["inputFiles"] or task["outputFiles"])
        for file in {*task["inputFiles"]}:
            writers = [t["id"] for t in tasks if file in t["outputFiles"] and t is not task]
            apart = bool(writers) and not {*writers} & {*task["parents"]}
            files_apart += apart
            due += 0 if apart else sizes[file]
    folder = tmp_path_factory.mktemp("w")
    for group in (True, False):
        for form in (copy.deepcopy, as_1_4):
            dag = read(folder, form(value), group=group)
            arrays = dag.arrays()
            moved = [*arrays.edge_bytes, *arrays.input_bytes]
            assert bool(np.isnan(moved).any()) is not named
            assert np.nansum(moved) == due
            counted = [n for n in dag.metadata.get("dropped", "").split("; ") if "files read of a task" in n]
            assert counted == [f"{files_apart} files read of a task that is no parent of the one that reads: "
                               "their bytes"] * bool(files_apart)  # fmt: skip


def specified(change: Callable[[Json], Any]) -> Json:
    """An instance with another specification, for calls/wfcommons_files.txt."""
    value = instance()
    change(value["workflow"]["specification"])
    return value


def with_file(changed: Json) -> Json:
    """An instance of version 1.4 with another file, for calls/wfcommons_files.txt."""
    value = as_1_4(instance())
    value["workflow"]["tasks"][1]["files"][0] |= changed
    return value
