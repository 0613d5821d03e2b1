"""Every option of every generator and of every transformation changes the workload: none is accepted and ignored."""

from __future__ import annotations

import inspect
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.workloads.family_examples import coflows_of
from workloads.arrow import column
from workloads.catalogue import _GENERATORS, load_workload, options_without_meaning
from workloads.coflows import CoflowWorkload
from workloads.generators.arrivals import PROCESSES
from workloads.generators.published import DURATIONS
from workloads.generators.query_dags import BENCHMARKS, MIXES
from workloads.generators.synthetic import SERVICES, TASK_COUNTS
from workloads.jobs import JobWorkload, make_workload
from workloads.options import NEEDS, option_defaults
from workloads.transform import TRANSFORMATIONS
from workloads.transform.primitives import Workload

SMALL = {"jobs": 60, "tasks": 700, "coflows": 40, "nodes": 50, "ports": 20}
VALUES: dict[str, tuple[Any, ...]] = {
    "jobs": (70,),
    "coflows": (50,),
    "seed": (2,),
    "load": (0.4,),
    "nodes": (80,),
    "ports": (30,),
    "slots": (2,),
    "arrivals": PROCESSES,
    "burst_ratio": (9.0,),
    "burst_jobs": (3.0,),
    "period_s": (100.0,),
    "amplitude": (0.9,),
    "task_counts": TASK_COUNTS,
    "tasks_per_job": (3,),
    "service": SERVICES,
    "mean_task_s": (2.0,),
    "cv": (3.0,),
    "alpha": (3.0,),
    "long_tasks": (0.4,),
    "long_ratio": (4.0,),
    "long_jobs": (0.3,),
    "long_tasks_per_job": (4,),
    "long_mean_task_s": (30.0,),
    "port_speed_bps": (5e8,),
    "mean_width": (30.0,),
    "mean_size_bytes": (1e9,),
    "skew": (3.0,),
    "durations": tuple(DURATIONS),
    "single_share": (0.3,),
    "least_width": (5,),
    "most_width": (30,),
    "mean_flow_bytes": (1e6,),
    "flow_sd": (0.4,),
    "wide_ratio": (1.0,),
    "deadline_least": (1.5,),
    "deadline_most": (4.0,),
    "deadline_share": (0.5,),
    "heavy_share": (0.3,),
    "heavy_weight": (5.0,),
    "rate_per_s": (9.0,),
    "batch_least": (3,),
    "batch_most": (8,),
    "mix": (*MIXES, BENCHMARKS),
    "mean_gap_s": (5.0,),
    "task_cv": (0.5,),
    "diversity": (0.2,),
    "one_to_one": (0.8,),
    "tenants": (3,),
    "tasks": (900,),
    "span_s": (100.0,),
    "map_only": (0.2,),
    "bytes_scale": (0.0, 2.0),
}
"""Values of the options of generators; of those that are choices all."""
WITH: dict[str, dict[str, Any]] = {
    "task_counts": {"tasks_per_job": 3},
    "long_tasks_per_job": {"long_jobs": 0.3},
    "long_mean_task_s": {"long_jobs": 0.3},
    "heavy_weight": {"heavy_share": 0.3},
    "batch_least": {"batch_most": 5},
}
"""What it takes for an option to count, besides what it needs."""


@pytest.mark.parametrize("name", _GENERATORS)
def test_every_option_of_a_generator_changes_the_workload(name: str) -> None:
    defaults = option_defaults(_GENERATORS[name])
    ignored = []
    for option in defaults:
        assert option in VALUES, (
            f"no value is tried of the option {option} of the generator {name}: add some that change the workload to "
            "VALUES of tests/workloads/test_every_option.py"
        )
        given = {k: v for k, v in SMALL.items() if k in defaults} | WITH.get(option, {})
        other, wanted = NEEDS.get(option, ("", ()))
        given |= {other: wanted[0]} if other in defaults and wanted else {}
        values = dict.fromkeys((given.get(option, defaults[option]), *VALUES[option]))
        found = {
            value: content(load_workload(name, options=given | {option: value}))
            for value in values
            if value is not None
        }
        if None in values:
            found[None] = content(load_workload(name, options=given))
        assert len(found) > 1, f"the value of {option} in VALUES is the one that holds for {name} anyway"
        ignored += [f"{option}: {a} or {b}" for a, b in combinations(found, 2) if found[a] == found[b]]
    assert not ignored, f"{name} gives the same with {', '.join(ignored)}"


def content(workload: Any) -> tuple[Any, ...]:
    """What a workload is to a scheduler: its tables, and for jobs where short ends and what long jobs may use."""
    own = (workload.short_cutoff_s, workload.long_partition) if isinstance(workload, JobWorkload) else ()
    return (workload.fingerprint(), *own)


def test_options_without_effect_are_named_with_what_they_need() -> None:
    assert options_without_meaning("yahoo", {"burst_ratio": "9"}) == {
        "burst_ratio": "goes with arrivals=bursty, and arrivals is poisson"
    }
    assert options_without_meaning("yahoo", {"burst_ratio": "9", "arrivals": "bursty"}) == {}
    assert options_without_meaning("yahoo", {"burst_ratio": "5"}) == {}  # what holds anyway does no harm
    assert list(options_without_meaning("synthetic", {"long_mean_task_s": "3 s"})) == ["long_mean_task_s"]
    assert options_without_meaning("synthetic", {"long_mean_task_s": "3 s", "long_jobs": 0}) == {}
    assert options_without_meaning("some.tr", {"cv": 3}) == {}
    known = {
        option: option_defaults(make) for make in _GENERATORS.values() for option in option_defaults(make)
    }
    for option, (other, _) in NEEDS.items():
        assert other in known[option]


# Transformations: a workload, options that make it work, and values of each option.


def jobs() -> JobWorkload:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 5, 40)
    return make_workload(
        "some",
        np.cumsum(rng.exponential(2.0, 40)),
        counts,
        rng.exponential(5.0, counts.sum()),
        short_cutoff_s=5.0,
    )


def coflows() -> CoflowWorkload:
    rng = np.random.default_rng(4)
    rows = []
    for k in range(30):
        pairs = rng.choice(36, rng.integers(2, 20), replace=False)
        rows.append(
            (float(k), None, {(int(p) // 6, int(p) % 6): float(rng.integers(1, 50)) * 1e6 for p in pairs})
        )
    return coflows_of(rows, ports=6)


Tried = dict[str, tuple[str, ...]]
CASES: dict[str, list[tuple[Any, dict[str, str], Tried]]] = {
    "scale": [
        (jobs, {"load": "50%", "nodes": "20"}, {"load": ("80%",), "nodes": ("30",), "slots": ("2",)}),
        (
            coflows,
            {"load": "50%", "port_speed_bps": "1 Gbps"},
            {"load": ("80%",), "port_speed_bps": ("2 Gbps",)},
        ),
    ],
    "slice": [
        (
            jobs,
            {"start_s": "10 s", "end_s": "60 s"},
            {"start_s": ("20 s",), "end_s": ("40 s",), "rebase": ("no",)},
        )
    ],
    "sample": [
        (jobs, {"share": "40%"}, {"share": ("70%",), "seed": ("2",)}),
        (jobs, {"count": "10"}, {"count": ("20",), "seed": ("2",)}),
        (coflows, {"share": "40%"}, {"share": ("70%",), "seed": ("2",)}),
    ],
    "replicate": [
        (jobs, {"copies": "2"}, {"copies": ("3",), "jitter_s": ("9 s",), "seed": ("2",)}),
        (coflows, {"copies": "2"}, {"copies": ("3",), "jitter_s": ("9 s",)}),
    ],
    "resample": [
        (jobs, {"block_s": "20 s"}, {"block_s": ("40 s",), "seed": ("2",)}),
        (coflows, {"block_s": "2 s"}, {"block_s": ("4 s",), "seed": ("2",)}),
    ],
    "merge": [
        (lambda: [jobs(), later(jobs())], {}, {"label": ("yes",), "align": ("yes",), "name": ("both",)})
    ],
    "truncate": [(jobs, {"cap_s": "8 s"}, {"cap_s": ("4 s",)})],
    "filter": [
        (coflows, {"wider_than": "3", "skew_above": "2"}, {"wider_than": ("9",), "skew_above": ("20",)})
    ],
    "skew": [
        (coflows, {}, {"cv_median": ("0.1",), "cv_p90": ("1.5",), "of": ("flows",), "seed": ("2",)}),
    ],
    "deadlines": [
        (
            coflows,
            {"port_speed_bps": "1 Gbps"},
            {
                "least": ("1.5",),
                "most": ("4",),
                "share": ("50%",),
                "port_speed_bps": ("2 Gbps",),
                "seed": ("2",),
            },
        )
    ],
    "weights": [(coflows, {}, {"heavy_share": ("60%",), "heavy_weight": ("3",), "seed": ("2",)})],
    "draw": [
        (
            coflows,
            {"count": "20"},
            {"count": ("25",), "max_width": ("9",), "ports": ("3",), "seed": ("2",)},
        )
    ],
    "retime": [
        (coflows, {}, {"arrivals": ("bursty", "diurnal", "at-once"), "rate_per_s": ("9",), "seed": ("2",)}),
        (jobs, {"batch_most": "5"}, {"batch_least": ("3",), "batch_most": ("9",)}),
        (jobs, {"arrivals": "bursty"}, {"burst_ratio": ("9",), "burst_jobs": ("3",)}),
        (coflows, {"arrivals": "diurnal"}, {"period_s": ("10 s",), "amplitude": ("90%",)}),
    ],
    "jobs": [
        (
            coflows,
            {"port_speed_bps": "1 Gbps"},
            {
                "shuffle_share": ("20%",),
                "map_share": ("20%",),
                "port_speed_bps": ("2 Gbps",),
                "seed": ("2",),
            },
        )
    ],
    "constrain": [
        (
            jobs,
            {"model": "cores >= 16: 40%, clock >= 3 GHz: 40%", "soft": "cores"},
            {
                "model": ("phoenix", "cores >= 8: 20%"),
                "combined": ("yes",),
                "jobs": ("short", "long"),
                "soft": ("clock",),
                "price": ("3",),
                "seed": ("2",),
            },
        )
    ],
    "demands": [(jobs, {}, {"model": ("cpu_cores=1", "cpu_cores=1: 50%"), "seed": ("2",)})],
    "priorities": [(jobs, {}, {"model": ("0: 50%", "1: 50%"), "seed": ("2",)})],
    "split": [],
}
"""By transformation: what makes the workload, a base, and values of options that must change what comes out."""


def later(workload: JobWorkload) -> JobWorkload:
    arrays = workload.arrays()
    return make_workload(
        "later",
        column(workload.jobs, "submit_s") + 5,
        np.diff(arrays.first_task),
        column(workload.tasks, "duration_s"),
    )


def made(name: str, make: Any, given: dict[str, str]) -> tuple[Any, ...]:
    step = TRANSFORMATIONS[name]
    workload: Workload = step.function(make(), **step.parse(given))
    return (*content(workload), workload.name)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_every_option_of_a_transformation_changes_the_workload(name: str) -> None:
    tried, ignored = set(), []
    for make, base, options in CASES[name]:
        for option, values in options.items():
            tried.add(option)
            found = {"base": made(name, make, base)}
            found |= {value: made(name, make, base | {option: value}) for value in values}
            ignored += [f"{option}: {a} or {b}" for a, b in combinations(found, 2) if found[a] == found[b]]
    known = {option.name for option in TRANSFORMATIONS[name].options}
    assert tried == known, (
        f"add values of {known - tried} of {name} to CASES of tests/workloads/test_every_option.py"
    )
    assert not ignored, f"{name} gives the same with {', '.join(ignored)}"


def test_options_of_a_transformation_are_those_of_its_function() -> None:
    for name, step in TRANSFORMATIONS.items():
        own = list(inspect.signature(step.function).parameters)[1:]
        assert [option.name for option in step.options] == own or name == "constrain", name
