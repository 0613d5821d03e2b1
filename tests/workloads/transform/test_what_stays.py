"""What belongs to a job, a DAG or a coflow goes with it through every transformation, its history and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.family_examples import coflows_of
from workloads.arrow import column
from workloads.catalogue import load_workload, save_workload
from workloads.coflows import CoflowWorkload, with_demands
from workloads.dags import DagWorkload, make_dag_workload
from workloads.jobs import JobWorkload, make_workload
from workloads.requests import Requests
from workloads.stages import EDGE_KINDS
from workloads.transform import (
    TRANSFORMATIONS,
    constrain,
    deadlines,
    demands,
    draw,
    history,
    keep_coflows,
    merge,
    priorities,
    redo,
    replicate,
    resample,
    retime,
    sample,
    split,
    time_slice,
    truncate,
    weights,
)
from workloads.transform.primitives import family, row_counts

Any3 = JobWorkload | DagWorkload | CoflowWorkload
PORTS = 4
none = st.just(float("nan"))
tenants = st.sampled_from(["a", "b", None])
durations = st.lists(st.floats(0, 1e3), min_size=1, max_size=3)


def several(draw: Any, of: Any, count: int) -> list[Any]:
    return draw(st.lists(of, min_size=count, max_size=count))


def times(draw: Any, count: int) -> list[int]:
    """Return times of arrival, not all the same and not in order."""
    return [10_001, *several(draw, st.integers(0, 10_000), count - 2), 0]


@st.composite
def jobs(draw: Any) -> JobWorkload:
    """Jobs that ask for all there is to ask for; the first has a tenant."""
    tasks = draw(st.lists(durations, min_size=2, max_size=6))
    count, every = len(tasks), sum(map(len, tasks))
    amounts = none | st.sampled_from([0.25, 1.0, 8.0])
    return make_workload(
        "w",
        times(draw, count),
        [len(own) for own in tasks],
        [duration for own in tasks for duration in own],
        tenant=["a", *several(draw, tenants, count - 1)],
        short_cutoff_s=500.0,
        requests=Requests(
            {"cpu_cores": several(draw, amounts, count), "attr:gpus": several(draw, amounts, count)},
            {"memory_gib": several(draw, amounts, every)},
            priority=several(draw, none | st.integers(-3, 3), count),
            gang_nodes=several(draw, none | st.integers(0, 3), count),
            requested_s=several(draw, none | st.integers(0, 9), count),
        ),
    )


@st.composite
def dags(draw: Any) -> DagWorkload:
    """DAGs with demands, kinds of edges, and bytes, of some or none of which something is known."""
    made = draw(st.lists(st.lists(durations, min_size=1, max_size=4), min_size=2, max_size=5))
    stages = [stage for job in made for stage in job]
    pairs = [(j, a, b) for j, job in enumerate(made) for b in range(len(job)) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    alike = [len(made[j][a]) == len(made[j][b]) for j, a, b in edges]
    kinds = [draw(st.sampled_from([*EDGE_KINDS, None])) if same else None for same in alike]
    moved = draw(st.sampled_from([none, none | st.sampled_from([0.0, 5.0, 1e18])]))
    shares = none | st.sampled_from([0.0, 0.5, 1.0])
    return make_dag_workload(
        "w",
        times(draw, len(made)),
        [len(job) for job in made],
        [len(stage) for stage in stages],
        [duration for stage in stages for duration in stage],
        edges,
        stage_name=[f"s{n}" for n in range(len(stages))],
        demands={name: several(draw, shares, len(stages)) for name in ("disk_in", "attr:x")},
        edge_kind=kinds,
        edge_bytes=several(draw, moved, len(edges)),
        input_bytes=several(draw, moved, len(stages)),
        tenant=["a", *several(draw, tenants, len(made) - 1)],
        short_cutoff_s=500.0,
    )


@st.composite
def coflows(draw: Any) -> CoflowWorkload:
    """Coflows with weights, of which some have a deadline."""
    port = st.integers(0, PORTS - 1)
    flows = st.dictionaries(st.tuples(port, port), st.floats(1, 1e9), min_size=1, max_size=6)
    made = []
    for at in sorted(times(draw, draw(st.integers(2, 6)))):
        deadline_s = draw(st.none() | st.integers(0, 99).map(lambda left_s, at=at: at + left_s))
        made.append((float(at), deadline_s, draw(flows)))
    workload = coflows_of(made, ports=PORTS, port_bytes_per_s=1e8)
    return with_demands(workload, weight=several(draw, st.sampled_from([0.5, 1.0, 2.0]), len(made)))


WORKLOADS = {"jobs": jobs(), "dags": dags(), "coflows": coflows()}


def content(workload: Any3, without: tuple[str, ...] = ()) -> Counter[str]:
    """What arrives with all that belongs to it, as a multiset; without ids and times of arrival.

    Time to a deadline stands for the deadline; ports are counted modulo those there were.
    """
    own = family(workload)
    heads = getattr(workload, own.name).to_pylist()
    parts = [part for part in own.parts if part != "job_constraints"]
    rows = {part: [[*row.items()][1:] for row in getattr(workload, part).to_pylist()] for part in parts}
    first = {part: np.concatenate([[0], np.cumsum(row_counts(workload, part))]) for part in parts}
    found: Counter[str] = Counter()
    for n, head in enumerate(heads):
        if head.get("deadline_s") is not None:
            head["deadline_s"] = round(head["deadline_s"] - head[own.arrival], 3)
        own_rows = [(part, rows[part][first[part][n] : first[part][n + 1]]) for part in parts]
        stated = [
            (part, sorted((name, value % PORTS if name in ("ingress", "egress") else value)
                          for name, value in row if name not in without and value is not None))
            for part, several_ in own_rows for row in several_
        ]  # fmt: skip
        left = {own.key, own.arrival, *without}
        found[repr((sorted((k, v) for k, v in head.items() if k not in left and v is not None), stated))] += 1
    return found


def is_in_order(workload: Any3) -> bool:
    """Whether ids differ, arrivals are in order, and each part's rows lie in the order of what arrives."""
    own = family(workload)
    heads = getattr(workload, own.name)
    ids = column(heads, own.key)
    return (
        len(set(ids.tolist())) == len(ids)
        and bool((np.diff(column(heads, own.arrival)) >= 0).all())
        and all(
            np.repeat(ids, row_counts(workload, part)).tolist()
            == getattr(workload, part)[own.key].to_pylist()
            for part in own.parts
        )
    )


def halves(workload: Any3) -> list[Any3]:
    """What arrives before the last arrival, and then."""
    own = family(workload)
    last_s = float(column(getattr(workload, own.name), own.arrival)[-1])
    return [time_slice(workload, 0.0, last_s), time_slice(workload, last_s)]


RESOURCES = ("cpu_cores", "memory", "memory_gib", "disk_in", "attr:gpus", "attr:x")
ALL, SOME, DRAWN = "all", "some", "drawn"
"""All of what there was is there once; some of it at most once; or what is there was there."""
Step = tuple[Callable[[Any], list[Any]], str | int, tuple[str, ...]]
OF_ALL: dict[str, Step] = {
    "slice": (halves, ALL, ()),
    "sample": (lambda w: [sample(w, count=2, seed=4)], SOME, ()),
    "replicate": (lambda w: [replicate(w, 3)], 3, ()),
    "resample": (lambda w: [resample(w, 20_000.0, seed=3)], DRAWN, ()),
    "merge": (lambda w: [merge([w, w])], 2, ()),
    "retime": (lambda w: [retime(w, "bursty", seed=4)], ALL, ()),
}
OF_JOBS: dict[str, Step] = {
    "truncate": (lambda w: [truncate(w, 1e3)], ALL, ()),
    "split": (lambda w: [*split(w).values()], ALL, ()),
    "constrain": (lambda w: [constrain(w, "cores >= 2: 50%")], ALL, ("constraint",)),
    "demands": (lambda w: [demands(w, "cpu_cores=1 disk_in=0.5: 50%")], ALL, RESOURCES),
    "priorities": (lambda w: [priorities(w, "7: 50%")], ALL, ("priority",)),
}
OF_COFLOWS: dict[str, Step] = {
    "filter": (lambda w: [keep_coflows(w, wider_than=0)], ALL, ()),
    "deadlines": (lambda w: [deadlines(w)], ALL, ("deadline_s",)),
    "weights": (lambda w: [weights(w)], ALL, ("weight",)),
    "draw": (lambda w: [draw(w, 9)], DRAWN, ()),
}
TRIED = [
    *((kind, name) for kind in WORKLOADS for name in OF_ALL),
    *((kind, name) for kind in ("jobs", "dags") for name in OF_JOBS),
    *(("coflows", name) for name in OF_COFLOWS),
]


def test_every_transformation_is_tried() -> None:
    """`scale` moves what arrives as `retime` does; `skew` and `jobs` change what belongs to a coflow."""
    assert {*TRANSFORMATIONS} == {*OF_ALL, *OF_JOBS, *OF_COFLOWS, "scale", "skew", "jobs"}


@pytest.mark.parametrize(("kind", "name"), TRIED)
@settings(max_examples=10)
@given(data=st.data())
def test_what_belongs_together_stays_together(kind: str, name: str, data: st.DataObject) -> None:
    workload = data.draw(WORKLOADS[kind])
    step, kept, without = (OF_ALL | OF_JOBS | OF_COFLOWS)[name]
    made = step(workload)
    assert all(map(is_in_order, made))
    before, after = content(workload, without), sum((content(one, without) for one in made), Counter())
    if kept in (SOME, ALL) or isinstance(kept, int):
        times = kept if isinstance(kept, int) else 1
        assert not after - Counter({row: times * count for row, count in before.items()})
        assert after.total() == (2 if kept == SOME else times * before.total())
    else:
        assert after.keys() <= before.keys()
    if len(made) == 1 and name != "merge":
        assert redo([workload], history(made[0])[-1]).fingerprint() == made[0].fingerprint()
    if name == "split" and len(made) > 1:
        assert content(merge(made)) == before


@pytest.mark.parametrize(("kind", "name"), TRIED)
@settings(max_examples=2)
@given(data=st.data())
def test_what_is_transformed_is_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, kind: str, name: str, data: st.DataObject
) -> None:
    """Merged tables too have their columns in the order of the schema."""
    step = (OF_ALL | OF_JOBS | OF_COFLOWS)[name][0]
    for made in step(data.draw(WORKLOADS[kind])):
        folder: Path = tmp_path_factory.mktemp("w") / "made"
        assert save_workload(made, folder) == ()
        again = load_workload(folder)
        assert again.fingerprint() == made.fingerprint()
        assert history(again) == history(made)
