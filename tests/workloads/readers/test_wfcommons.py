"""WfCommons' instances: what becomes of tasks, dependencies and measurements, and what is refused."""

from __future__ import annotations

import copy
import gzip
import json
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.catalogue import load_workload
from workloads.conversion import as_jobs
from workloads.dags import DagWorkload, stage_levels
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.readers.wfcommons import read_wfcommons

Json = dict[str, Any]


def instance(tasks: list[Json], name: str = "wf") -> Json:
    """An instance of version 1.5; a task has what is measured of it under ``run``."""
    specification = [
        {
            "name": task["id"],
            "id": task["id"],
            "parents": task.get("parents", []),
            "children": [t["id"] for t in tasks if task["id"] in t.get("parents", [])],
        }
        for task in tasks
    ]
    runs = [{"id": task["id"], "runtimeInSeconds": 1.0, **task.get("run", {})} for task in tasks]
    return {
        "name": name,
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": specification, "files": []},
            "execution": {
                "makespanInSeconds": 9,
                "executedAt": "2020",
                "tasks": runs,
                "machines": [{"nodeName": "m", "memoryInBytes": 1000, "cpu": {"coreCount": 8}}],
            },
        },
    }


def sample() -> Json:
    """``split``, then three lanes ``map`` and ``sort``, of which one has another program, then ``join``."""
    lanes = [("map_1", "sort_1"), ("map_2", "sort_2"), ("other_3", "sort_3")]
    tasks = [{"id": "split", "run": {"runtimeInSeconds": 7}}]
    for n, (head, tail) in enumerate(lanes, start=1):
        run = {"runtimeInSeconds": float(n), "coreCount": n, "memoryInBytes": 100 * n, "machines": ["m"]}
        tasks.append({"id": head, "parents": ["split"], "run": run | {"command": {"program": head[:-2]}}})
        tasks.append({"id": tail, "parents": [head], "run": {"runtimeInSeconds": n + 0.5, "readBytes": 300}})
    tasks.append({"id": "join", "parents": [tail for _, tail in lanes]})
    return instance(tasks)


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2))
    return path


def as_1_4(value: Json) -> Json:
    """The same instance in the form of version 1.4, with dependencies at the children only."""
    value = copy.deepcopy(value)
    workflow = value["workflow"]
    runs = {run.pop("id"): run for run in workflow["execution"].pop("tasks")}
    tasks = []
    for task in workflow["specification"]["tasks"]:
        run = runs[task["id"]]
        if "coreCount" in run:
            run["cores"] = run.pop("coreCount")
        if "machines" in run:
            run["machine"] = run.pop("machines")[0]
        tasks.append({"name": task["name"], "id": "ID" + task["id"], "parents": task["parents"], **run})
    machines = workflow["execution"]["machines"]
    return value | {"schemaVersion": "1.4", "workflow": {"tasks": tasks, "machines": machines}}


def test_memory_is_in_gib_where_no_machine_states_its_own(tmp_path):
    made = instance([{"id": "a", "run": {"memoryInBytes": 3 << 30}}, {"id": "b", "run": {"machine": "m"}}])
    del made["workflow"]["execution"]["machines"][0]["memoryInBytes"]
    dag = read_wfcommons(written(tmp_path / "a.json", made), group=False)
    assert dag.stages["memory_gib"].to_pylist() == [3.0, None]
    jobs = as_jobs(dag)
    assert jobs.jobs["cpu_cores"].to_pylist() == [1.0]  # of all tasks; memory is of each
    assert jobs.tasks["memory_gib"].to_pylist() == [3.0, None]


def test_folders_and_archives_have_a_job_a_file(tmp_path):
    folder = tmp_path / "all"
    (folder / "below").mkdir(parents=True)
    written(folder / "b.json", sample())
    (folder / "below" / "c.json.gz").write_bytes(gzip.compress(json.dumps(instance([{"id": "x"}])).encode()))
    (folder / "README.md").write_text("about")
    (folder / ".hidden.json").write_text("{")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in ("b.json", "below/c.json.gz", "README.md"):
            archive.write(folder / file, file)
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for file in ("b.json", "below/c.json.gz", "README.md"):
            archive.add(folder / file, file)
    prints = set()
    for name in ("all", "all.zip", "all.tar.gz"):
        assert recognise(tmp_path / name) == "wfcommons"
        dag = load_workload(tmp_path / name)
        assert (dag.num_jobs, dag.num_tasks) == (2, 9)
        assert dag.metadata["dropped"] == "1 files that are not called .json"
        prints.add(dag.fingerprint())
    assert len(prints) == 1
    spread = load_workload(folder, options={"mean_gap_s": "20 s", "seed": 3})
    assert 0 < spread.jobs["submit_s"][0].as_py() < spread.jobs["submit_s"][1].as_py()
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "README.md").write_text("about")
    with pytest.raises(InputError, match=r"none: holds no \.json file"):
        read_wfcommons(tmp_path / "none")
    (folder / "x.json").write_text("no")
    with pytest.raises(InputError, match=r"all/x\.json: line 1: is not JSON"):
        read_wfcommons(folder)


@st.composite
def graphs(draw: Any) -> list[Json]:
    size = draw(st.integers(1, 9))
    ids = [f"{draw(st.sampled_from('ab'))}_{n}" for n in range(size)]
    shuffled = draw(st.permutations(range(size)))
    tasks = []
    for n in range(size):
        parents = draw(st.lists(st.sampled_from(range(n)), unique=True, max_size=3)) if n else []
        tasks.append(
            {
                "id": ids[n],
                "parents": [ids[p] for p in parents],
                "run": {"runtimeInSeconds": draw(st.integers(1, 999))},
            }
        )
    return [tasks[n] for n in shuffled]


def waits(dag: DagWorkload) -> list[tuple[float, frozenset[int]]]:
    """For each task its duration, and the places of the tasks that must have ended before it: all before it."""
    arrays = dag.arrays()
    duration_s = dag.tasks["duration_s"].to_pylist()
    first = arrays.stage_first_task.tolist()
    before: list[set[int]] = [set() for _ in duration_s]
    for stage in np.lexsort((np.arange(dag.num_stages), stage_levels(dag))).tolist():
        for e in range(arrays.first_parent[stage], arrays.first_parent[stage + 1]):
            parent = int(arrays.parent[e])
            for nth, task in enumerate(range(first[stage], first[stage + 1])):
                one = arrays.parent_one_to_one[e]
                of = [first[parent] + nth] if one else range(first[parent], first[parent + 1])
                for other in of:
                    before[task] |= before[other] | {other}
    return [(d, frozenset(b)) for d, b in zip(duration_s, before, strict=True)]


def bounds(dag: DagWorkload) -> list[tuple[float, tuple[float, ...]]]:
    """Durations of tasks with those of all that come before them: what stays if tasks are numbered otherwise."""
    found = waits(dag)
    return sorted((d, tuple(sorted(found[b][0] for b in before))) for d, before in found)


@settings(max_examples=30)
@given(tasks=graphs())
def test_grouping_changes_no_precedence(tmp_path_factory, tasks):
    path = written(tmp_path_factory.mktemp("w") / "a.json", instance(tasks))
    grouped, single = read_wfcommons(path), read_wfcommons(path, group=False)
    assert grouped.num_stages <= single.num_stages == len(tasks)
    assert bounds(grouped) == bounds(single)


def broken(change: Any) -> Json:
    value = sample()
    change(value, value["workflow"]["specification"]["tasks"], value["workflow"]["execution"])
    return value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1: is not JSON"),
        (b"{\n", "line 2: is not JSON"),
        (b"[]", "want an object"),
        (b'{"name": NaN}', "is not JSON that can be read"),
        (b"[" * 100_000, "is not JSON"),
        (b"{\xff\xfd", "is not JSON"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, data, message):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_wfcommons(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_values_of_any_other_kind_are_refused_by_place(tmp_path):
    """Each value of an instance is replaced by one of another kind: what is read has no error, what is not a place."""
    rng = random.Random(4)
    errors = []
    for number in range(400):
        value = sample()
        at, key = rng.choice([*places(value)])
        at[key] = rng.choice([None, [], {}, "x", -1, 10**400, [1], {"id": 3}, True, ""])
        path = written(tmp_path / f"{number}.json", value)
        try:
            read_wfcommons(path)
        except InputError as error:
            errors.append(str(error).removeprefix(f"{path}: "))
    assert len(errors) > 100
    assert all(text.isprintable() and text.startswith("field ") for text in errors)


def places(at: Any) -> Iterator[tuple[Any, Any]]:
    """Everything within a value, as what holds it and its key."""
    for key in [*at] if isinstance(at, dict) else range(len(at)):
        yield at, key
        if isinstance(at[key], dict | list):
            yield from places(at[key])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_gap_s": -1.0}, "field mean_gap_s: -1.0 is not a duration in seconds"),
        ({"mean_gap_s": 4e9, "seed": 2}, "field mean_gap_s: the last would arrive after|^$"),
        ({"default_cores": -1.0}, "field default_cores: -1.0 is not a number of cores, 0 or more"),
        ({"node_memory_bytes": 0}, "field node_memory_bytes: 0 is not a number above 0"),
        ({"disk_bytes_per_s": -2.0}, "field disk_bytes_per_s: -2.0 is not a number above 0"),
    ],
)
def test_options_out_of_range_are_named(tmp_path, options, message):
    for n in range(20):
        written(tmp_path / f"{n}.json", instance([{"id": "a"}]))
    with pytest.raises(InputError, match=message):
        read_wfcommons(tmp_path, **options)
