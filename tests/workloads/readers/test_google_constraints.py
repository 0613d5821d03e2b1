"""Constraints and machines of Google's traces as jobs' sets and a cluster, beside the rules in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.cluster import load_cluster
from clusters.matching import match, nodes_of
from tests.workloads.readers.test_google_2011 import BEGIN_US, folder_of, ran
from workloads.constraints import constraint_sets, set_of_job, set_text
from workloads.readers.google_2011 import convert_google_2011
from workloads.readers.google_2019 import convert_google_2019
from workloads.readers.parquet import read_parquet
from workloads.readers.report import Report

MACHINES = (
    "0,20,0,HofL,0.5,0.25\n0,3,0,GtXa,1,1\n0,100,0,HofL,,\n"
    "0,7,0,HofL,0.5,0.5\n5,7,1,HofL,,\n"  # gone before the trace
    f"{BEGIN_US + 1},8,0,HofL,0.5,0.5\n{BEGIN_US + 1},20,2,HofL,1,1\n"  # later
)
ATTRIBUTES = (
    "0,20,rs,ab=,0\n0,20,o/,4,0\n0,3,o/,12,0\n0,3,nZ,x,0\n5,3,nZ,,1\n0,100,nZ,low,0\n0,100,NZ,2,0\n"
    f"0,7,o/,99,0\n{BEGIN_US + 1},3,rs,ab=,0\n"
)


def sets_by_job(workload):
    texts = [*map(set_text, constraint_sets(workload)), None]
    return dict(
        zip(
            workload.jobs["job_id"].to_pylist(),
            [texts[s] for s in set_of_job(workload).tolist()],
            strict=True,
        )
    )


def test_a_trace_becomes_jobs_with_constraints_and_the_cluster_for_them(tmp_path):
    tasks = "".join(ran(job, task, job, 20, 30) for job in range(1, 8) for task in range(3))
    asked = {  # operator, attribute, value; which of the machines 3, 20 and 100 satisfy it
        1: ("0,rs,ab=", [1]),
        2: ("0,rs,", [0, 2]),
        3: ("1,nZ,low", [0, 1]),
        4: ("1,nZ,", [2]),
        5: ("2,o/,5", [1, 2]),
        6: ("3,o/,4", [0]),
    }
    rows = "".join(f"0,{job},{task},{text}\n" for job, (text, _) in asked.items() for task in range(3))
    source = folder_of(
        tmp_path / "in", task_events=tasks, task_constraints=rows, machine_events=MACHINES,
        machine_attributes=ATTRIBUTES,
    )  # fmt: skip
    report = Report()
    convert_google_2011(source, tmp_path / "out", report=report)
    workload, cluster = read_parquet(tmp_path / "out"), load_cluster(tmp_path / "out" / "cluster.parquet")
    assert sets_by_job(workload) == {
        1: "attr:rs = ab=", 2: 'attr:rs = ""', 3: "attr:nZ != low", 4: 'attr:nZ != ""', 5: "attr:o/ < 5",
        6: "attr:o/ > 4", 7: None,
    }  # fmt: skip
    assert workload.jobs["constraint"].to_pylist()[-2:] == ["attr:o/", None]
    matching = match(workload, cluster)
    for set_id, (_, nodes) in enumerate(asked.values()):
        assert nodes_of(matching, set_id).tolist() == nodes
    assert {"read 6 jobs kept with constraints", "dropped 2: machines that are not there when the trace begins",
            "repaired 1: machines without a capacity: taken as one core or 4 GiB"} <= {*report.lines()}  # fmt: skip


NAMES, TEXTS, SIZES = ("a", "A", "b/"), ("", "x", "y=", "3"), ("-1", "0", "3", "7")


def draw_constraint(rng):
    operator = rng.randrange(4)
    return rng.choice(NAMES), operator, rng.choice(SIZES if operator > 1 else TEXTS)


def holds(has, name, operator, value):
    """Whether a machine with these attributes satisfies a constraint, by the trace's words."""
    if operator < 2:
        return (has.get(name, "") == value) == (operator == 0)
    try:
        size = int(has.get(name, "0"))
    except ValueError:
        return False
    return size < int(value) if operator == 2 else size > int(value)


@settings(max_examples=8)
@given(rng=st.randoms(use_true_random=False))
def test_any_trace_is_matched_as_its_description_says(tmp_path_factory, rng: random.Random):
    tmp_path = tmp_path_factory.mktemp("trace")
    known = [[draw_constraint(rng) for _ in range(rng.randint(0, 3))] for _ in range(4)]
    tasks = {
        (job, task): rng.choice(known)
        for job in range(rng.randint(1, 6))
        for task in range(rng.randint(1, 4))
    }
    machines = {
        machine: {name: rng.choice(TEXTS[1:] + SIZES) for name in NAMES if rng.random() < 0.6}
        for machine in rng.sample(range(1, 200), rng.randint(1, 6))
    }
    old = [(0, job, task, draw_constraint(rng)) for job, task in tasks if tasks[job, task]]
    found = [(9, job, task, one) for (job, task), constraints in tasks.items() for one in constraints] + old
    rng.shuffle(found)
    source = folder_of(
        tmp_path / "in",
        task_events="".join(ran(job, task, job, 20, 30) for job, task in tasks),
        task_constraints="".join(
            f"{t},{j},{k},{op},{name},{value}\n" for t, j, k, (name, op, value) in found
        ),
        machine_events="".join(f"0,{machine},0,p,0.5,0.5\n" for machine in machines),
        machine_attributes="".join(
            f"0,{machine},{name},{value},0\n"
            for machine, has in machines.items()
            for name, value in has.items()
        ),
    )
    convert_google_2011(source, tmp_path / "out")
    workload, cluster = read_parquet(tmp_path / "out"), load_cluster(tmp_path / "out" / "cluster.parquet")
    matching, asked = match(workload, cluster), constraint_sets(workload)
    for place, job in enumerate(workload.jobs["job_id"].to_pylist()):
        of_tasks = [frozenset(tasks[j, k]) for j, k in sorted(tasks) if j == job]
        most, count = Counter(of_tasks).most_common(1)[0]  # of as many, the one met first
        assert count == max(Counter(of_tasks).values())
        set_id = int(matching.set_of_job[place])
        assert (set_id < 0) == (not most)
        if most:
            assert len(asked[set_id]) == len(most)
            due = [n for n, m in enumerate(sorted(machines)) if all(holds(machines[m], *c) for c in most)]
            assert nodes_of(matching, set_id).tolist() == due


def test_the_trace_of_2019_has_more_operators_and_racks(tmp_path):
    wants = [
        {"name": "n=", "relation": "PRESENT"}, {"name": "o", "relation": 7},
        {"name": "p", "relation": "GREATER_THAN_EQUAL", "value": "3"}, {"name": "q", "relation": "NEAR"},
    ]  # fmt: skip
    at = {"collection_id": 1, "instance_index": 0}
    rows = [
        {"time": BEGIN_US + second, "type": kind, **at, "constraint": wants}
        for second, kind in enumerate(("SUBMIT", "SCHEDULE", "FINISH"))
    ]
    machines = [
        {"time": 0, "machine_id": machine, "type": "ADD", "switch_id": switch,
         "capacity": {"cpus": 0.5, "memory": 0.25}}
        for machine, switch in ((1, "t"), (2, "s"), (3, "t"))
    ]  # fmt: skip
    attributes = [
        {"time": 0, "machine_id": machine, "name": name, "value": value}
        for machine, name, value in (
            (1, "n=", "u"),
            (1, "p", "3"),
            (2, "n=", "v"),
            (3, "n=", "v"),
            (3, "p", "4"),
        )
    ]
    (tmp_path / "in").mkdir()
    for name, lines in (
        ("instance_events", rows), ("machine_events", machines), ("machine_attributes", attributes)
    ):  # fmt: skip
        (tmp_path / "in" / f"{name}-000000000000.json").write_text(
            "".join(json.dumps(r) + "\n" for r in lines)
        )
    report = Report()
    convert_google_2019(tmp_path / "in", tmp_path / "out", report=report)
    workload, cluster = read_parquet(tmp_path / "out"), load_cluster(tmp_path / "out" / "cluster.parquet")
    assert sets_by_job(workload) == {1: 'attr:n != "" and attr:o = "" and attr:p >= 3'}
    assert nodes_of(match(workload, cluster), 0).tolist() == [0, 2]
    assert cluster.racks().tolist() == [1, 0, 1]
    assert (
        "dropped 1: constraints of tasks that compare text by size, or have an unknown operator"
        in report.lines()
    )
