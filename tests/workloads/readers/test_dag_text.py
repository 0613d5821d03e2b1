"""The text format of DAGs: what it says, what is refused, and that what is written reads back the same."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.catalogue import load_workload, save_workload
from workloads.dags import make_dag_workload
from workloads.formats import recognise
from workloads.readers.dag_text import read_dag_text, write_dag_text
from workloads.resources import RESOURCES

SMALL = """\
# q 7
3 7 2.5 etl
map1 10 0.05 0.1 0 0.25 0.2 0.3 5
map2 4.5 0.1 0.1 0.25 0 0.2 0.3 5
reduce 2 1 0.1 0 0 0.2 0.3 1
2
map1 map2 o2o
map2 reduce ata

1
only 1 0 0 0 0 0 0 1
0
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some.txt"
    path.write_text(text)
    return path


def test_it_is_recognised_and_converted(tmp_path):
    path = written(tmp_path, SMALL)
    assert recognise(path) == "dag-text"
    (tmp_path / "some.gz").write_bytes(gzip.compress(SMALL.encode()))
    assert recognise(tmp_path / "some.gz") == "dag-text"
    dag = load_workload(path)
    save_workload(dag, tmp_path / "again.gz", "dag-text")
    assert recognise(tmp_path / "again.gz") == "dag-text"
    assert load_workload(tmp_path / "again.gz").fingerprint() == dag.fingerprint()


WRONG = [
    ("", "the file is empty; want DAGs that begin with 'stages dag_id arrival_s queue'"),
    ("# a\n", "the file holds no DAG"),
    ("0\n0\n", "line 1: field stages: '0' is not a whole number from 1"),
    ("1 1 0 q x\na 1 0 0 0 0 0 0 1\n0\n", "line 1: field 5: the line has 5 fields; want"),
    ("1 1 -2\na 1 0 0 0 0 0 0 1\n0\n", "line 1: field arrival_s: '-2' is negative"),
    ("1\na 1 0 0 0 0 0 1\n0\n", "line 2: field tasks: the line ends after 8 fields; want 'stage duration_s cpu_cores"),
    ("1\na 1 0 0 0 0 0 0 0\n0\n", "line 2: field tasks: '0' is not a whole number from 1"),
    ("1\na 1 0 0 -0.1 0 0 0 1\n0\n", "line 2: field disk_in: '-0.1' is negative"),
    ("1\na 1 1.01 0 0 0 0 0 1\n0\n", "line 2: field cpu_cores: '1.01' is more than 1"),
    ("1\na -1 0 0 0 0 0 0 1\n0\n", "line 2: field duration_s: '-1' is negative"),
    ("1\n# 1 0 0 0 0 0 0 1\n0\n", "line 2: field stage: '#' in place of a stage"),
    ("2\na 1 0 0 0 0 0 0 1\na 1 0 0 0 0 0 0 1\n0\n", "line 3: field stage: 'a' occurs twice"),
    ("2\na 1 0 0 0 0 0 0 1\n", "line 3: field stage: the file ends after 1 of 2 stages of DAG 1"),
    ("2\na 1 0 0 0 0 0 0 1\n0\n", "line 3: field duration_s: the line ends after 1 fields"),
    ("1\na 1 0 0 0 0 0 0 1\n", "line 3: field edges: the file ends after 0 of 1 lines with how many edges DAG 1"),
    ("1\na 1 0 0 0 0 0 0 1\n0 0\n", "line 3: field 2: the line has 2 fields; want 'edges'"),
    ("1\na 1 0 0 0 0 0 0 1\n0\na a ata\n", "line 4: field stages: 'a' is not a whole number"),
    ("1 4\na 1 0 0 0 0 0 0 1\n0\n1 4\n", "line 4: field dag_id: DAG 4 occurs already in line 1"),
]  # fmt: skip
TWO = "2\na 1 0 0 0 0 0 0 1\nb 1 0 0 0 0 0 0 2\n"
WRONG += [
    (TWO + "1\n", "line 5: field parent: the file ends after 0 of 1 edges of DAG 1"),
    (TWO + "1\na c ata\n", "line 5: field child: 'c' is not a stage of this DAG"),
    (TWO + "1\na b\n", "line 5: field kind: the line ends after 2 fields; want 'parent child kind'"),
    (TWO + "1\na b some\n", "line 5: field kind: is not a kind of edge; want one of ata, all-to-all"),
    (TWO + "1\na b o2o\n", "line 5: field kind: one-to-one between 1 and 2 tasks; want equally many"),
    (TWO + "1\na a ata\n", "line 5: field child: a stage is its own parent"),
    (TWO + "2\na b ata\na b ata\n", "line 6: field child: the edge occurs twice"),
    ("\n# x\n" + TWO + "2\na b ata\nb a ata\n", "line 7: field child: stages of job 1 wait for each other: 0 -> 1"),
    ("# emu resources=cpu_cores,disk node_cores=20\n", "field resources: 'disk' is not a resource; want attr:"),
    ("# emu resources=memory,memory node_cores=20\n", "field resources: want one or more resources, each once"),
    ("# emu resources=memory node_cores=x\n", "field node_cores: 'x' is not a number"),
    ("# emu resources=memory node_cores=0\n", "field node_cores: 0.0 is not a number above 0"),
    (f"1\na 1 0 0 0 0 0 0 {10**9}\n0\n", "line 1: field tasks: makes 1,000,000,000 tasks, more than "),
]  # fmt: skip


words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=6).filter(
    lambda word: not word.startswith("#") and len(word.split()) == 1
)


@st.composite
def writable(draw: Any) -> Any:
    """DAGs that the format can hold."""
    jobs = draw(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4))
    tasks = [count for job in jobs for count in job]
    total = len(tasks)
    edges, kinds = [], []
    for j, job in enumerate(jobs):
        pairs = [(a, b) for b in range(len(job)) for a in range(b)]
        for a, b in draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []:
            edges.append((j, a, b))
            kinds.append(draw(st.sampled_from(["one-to-one", None])) if job[a] == job[b] else None)
    names = [
        name
        for job in jobs
        for name in draw(st.lists(words, min_size=len(job), max_size=len(job), unique=True))
    ]
    numbers = st.lists(st.floats(0, 1), min_size=total, max_size=total)
    resources = draw(st.lists(st.sampled_from([*RESOURCES, "attr:gpu"]), min_size=1, unique=True))
    times = st.floats(0, 4e9)
    duration_s = draw(st.lists(times, min_size=total, max_size=total))
    return make_dag_workload(
        "w",
        draw(st.lists(times, min_size=len(jobs), max_size=len(jobs))),
        [len(job) for job in jobs],
        tasks,
        np.repeat(duration_s, tasks),
        edges,
        stage_mean_s=duration_s,
        stage_name=names,
        demands={name: draw(numbers) for name in resources},
        edge_kind=kinds,
        job_id=draw(st.lists(st.integers(0, 2**63 - 1), min_size=len(jobs), max_size=len(jobs), unique=True)),
        tenant=draw(st.lists(st.none() | words, min_size=len(jobs), max_size=len(jobs))),
    )


@settings(max_examples=20)
@given(dag=writable())
def test_what_is_written_reads_back_the_same(tmp_path_factory, dag):
    path = tmp_path_factory.mktemp("w") / "w.txt"
    write_dag_text(dag, path)
    again = read_dag_text(path)
    assert again.fingerprint() == dag.fingerprint()
    first = path.read_bytes()
    write_dag_text(again, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("names", [("a/", "a/b"), ("a/#", "a/b")])
def test_stages_whose_names_are_no_words_without_that_of_their_dag(tmp_path, names):
    dag = some(stage_name=list(names))
    write_dag_text(dag, tmp_path / "w.txt")
    assert read_dag_text(tmp_path / "w.txt").fingerprint() == dag.fingerprint()


def some(**changes: Any) -> Any:
    """Two stages of a DAG that the format can hold, but for what is changed."""
    arguments = {"duration_s": [1.0, 1.0, 2.0], "demands": {"memory": [0.5, 0.5]}}
    return make_dag_workload("w", [0.0], [2], [2, 1], edges=[(0, 0, 1)], **(arguments | changes))
