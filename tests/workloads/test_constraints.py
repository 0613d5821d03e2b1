"""Constraints of jobs: their text, their tables, and how they travel with their jobs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.constrained import compared, constrained, names, placed, sets
from tests.workloads.family_examples import coflows_of
from workloads.constraints import (
    Constraint,
    constraint_sets,
    kind_of,
    parse_constraint,
    parse_constraint_set,
    set_of_job,
    set_text,
    with_constraints,
)
from workloads.conversion import as_jobs
from workloads.dags import make_dag_workload
from workloads.errors import InputError
from workloads.jobs import JobWorkload, make_workload
from workloads.readers.parquet import read_folder, read_parquet, write_parquet
from workloads.transform import merge, replicate, sample, scale, split, time_slice, truncate

MANY = settings(max_examples=20)
values = st.text("abc1.", min_size=1, max_size=4)


def two_jobs(**changes: Any) -> JobWorkload:
    return make_workload("w", [0.0, 1.5], [2, 1], [1.0, 3.0, 0.5], **changes)


def sets_by_tenant(workload: Any) -> dict[str, Any]:
    """The set of each job, by its tenant."""
    known = [*constraint_sets(workload), ()]
    tenants = workload.jobs["tenant"].to_pylist()
    return {t: known[s] for t, s in zip(tenants, set_of_job(workload).tolist(), strict=True)}


def tenants(workload: Any) -> set[str]:
    return set(workload.jobs["tenant"].to_pylist())


@given(compared.flatmap(lambda c: values.map(lambda v: c._replace(value=v))) | placed)
def test_the_text_of_a_constraint_reads_back(one: Constraint) -> None:
    assert parse_constraint(str(one)) == one
    assert parse_constraint_set(set_text([one, one])) == (one, one)


def test_jobs_show_the_kind_of_their_constraints() -> None:
    made = with_constraints(
        two_jobs(constraint=["gpu", "gpu"]), [parse_constraint_set("isa = x86 and same-rack")], [-1, 0]
    )
    assert made.jobs["constraint"].to_pylist() == [None, "isa+same-rack"]
    assert kind_of(parse_constraint_set("tags = a and tags = b and cores < 3")) == "tags+cores"


def test_workloads_without_constraints_are_what_they_were() -> None:
    """Fingerprints computed before there were constraints: results and resumed runs are known by them."""
    plain, labelled = two_jobs(), two_jobs(constraint=["gpu", None], tenant=["a", "b"])
    dag = make_dag_workload("d", [0.0], [2], [1, 2], [1.0, 2.0, 3.0], [(0, 0, 1)])
    assert plain.fingerprint() == "09d9c3f4b5288b5bb681efd5d1511846683e60132ba5de1e4c0112afec570fa3"
    assert labelled.fingerprint() == "e73c3038211ae95616a94d216820810416a437df1b8a044fd780bfe8c4fab9e1"
    assert dag.fingerprint() == "db425a992ade76b9fed83f4f063c93f1e0fb14d014196224bc4ea3d68f934c6d"
    assert with_constraints(plain, [()], [0, -1]).fingerprint() == plain.fingerprint()


def test_a_folder_without_constraints_has_no_files_of_them(tmp_path: Path) -> None:
    write_parquet(two_jobs(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.parquet", "tasks.parquet"]


@MANY
@given(constrained(), st.lists(sets, max_size=2))
def test_the_fingerprint_tells_contents_apart_and_not_codings(
    workload: Any, others: list[tuple[Constraint, ...]]
) -> None:
    known, of_job = constraint_sets(workload), set_of_job(workload)
    order = np.arange(len(known))[::-1]  # the same sets, numbered the other way, with unused ones before
    again = with_constraints(
        workload,
        [*others, *known[::-1]],
        np.where(of_job < 0, -1, len(others) + order[of_job] if len(known) else -1),
    )
    assert again.constraint_sets.equals(workload.constraint_sets)
    assert again.job_constraints.equals(workload.job_constraints)
    assert again.fingerprint() == workload.fingerprint()
    if others and others[0] not in [*known, ()]:
        other = with_constraints(workload, [others[0]], np.zeros(workload.num_jobs, np.int64))
        assert other.fingerprint() != workload.fingerprint()


def test_the_price_and_the_operator_count_in_the_fingerprint() -> None:
    texts = ("cores > 1", "cores > 1 soft", "cores > 1 soft 2", "cores < 1", "cpus > 1", "cores > 2")
    made = {with_constraints(two_jobs(), [parse_constraint_set(t)], [0, 0]).fingerprint() for t in texts}
    assert len(made) == len(texts)


@MANY
@given(constrained())
def test_parquet_keeps_the_constraints(tmp_path_factory: Any, workload: Any) -> None:
    folder = tmp_path_factory.mktemp("w")
    write_parquet(workload, folder)
    again = read_folder(folder)
    assert again.fingerprint() == workload.fingerprint()
    assert again.notes == ()
    assert sets_by_tenant(again) == sets_by_tenant(workload)
    assert sets_by_tenant(read_parquet(folder)) == sets_by_tenant(workload)  # DAGs as jobs


def test_tables_of_others_are_read(tmp_path: Path) -> None:
    """Arrivals and sets out of order, no prices, other widths, a kind that is stated already."""
    jobs = {
        "job_id": [7, 8, 9],
        "submit_s": [5.0, 1.0, 2.0],
        "num_tasks": [1, 1, 1],
        "mean_task_s": [1.0] * 3,
    }
    pq.write_table(pa.table(jobs | {"constraint": ["mine", None, None]}), tmp_path / "jobs.parquet")
    pq.write_table(pa.table({"job_id": [7, 8, 9], "duration_s": [1.0, 2.0, 3.0]}), tmp_path / "tasks.parquet")
    rows = {"set_id": pa.array([9, 4, 9], pa.int32()), "attribute": ["isa", "cores", "cores"]}
    rows |= {"operator": ["=", ">", "<"], "value": ["x86", "4", "9"]}
    pq.write_table(pa.table(rows), tmp_path / "constraint_sets.parquet")
    pq.write_table(pa.table({"job_id": [7, 8], "set_id": [9, 4]}), tmp_path / "job_constraints.parquet")
    workload = read_parquet(tmp_path)
    assert list(map(set_text, constraint_sets(workload))) == ["cores > 4", "isa = x86 and cores < 9"]
    assert workload.jobs.select(["job_id", "constraint"]).to_pydict() == {
        "job_id": [8, 9, 7],
        "constraint": ["cores", None, "mine"],
    }
    assert set_of_job(workload).tolist() == [0, -1, 1]


def test_a_constraint_twice_in_a_set_is_refused() -> None:
    with pytest.raises(InputError, match=r"cores > 4 soft 2\.0 is given twice in set 0"):
        with_constraints(two_jobs(), [parse_constraint_set("cores > 4 and cores > 4 soft 2")], [0, 0])


def test_constraints_of_another_workload_are_not_left_in_a_folder(tmp_path: Path) -> None:
    write_parquet(with_constraints(two_jobs(), [parse_constraint_set("cores > 4")], [0, 0]), tmp_path)
    for workload in (two_jobs(), coflows_of([(0.0, None, {(0, 1): 1.0})], 2)):
        with pytest.raises(InputError, match=r"holds .*another workload"):
            write_parquet(workload, tmp_path)
    (tmp_path / "constraint_sets.parquet").unlink()
    with pytest.raises(InputError, match=r"constraint_sets.parquet: no such file.*and job_constraints"):
        read_parquet(tmp_path)


@MANY
@given(constrained(), st.data())
def test_transformations_keep_the_constraints_of_each_job(workload: Any, data: Any) -> None:
    of = sets_by_tenant(workload)
    count = data.draw(st.integers(1, workload.num_jobs))
    made = [
        time_slice(workload, float(workload.jobs["submit_s"][0].as_py()), rebase=False),
        sample(workload, count=count, seed=data.draw(st.integers(0, 9))),
        truncate(workload, 10.0),
        replicate(workload, 3, jitter_s=0.0),
        *split(workload).values(),
    ]
    if workload.jobs["submit_s"][0].as_py() < workload.jobs["submit_s"][-1].as_py():
        made += [scale(workload, 0.5, 10), replicate(workload, 2, seed=3)]
    for one in made:
        assert sets_by_tenant(one) == {tenant: of[tenant] for tenant in tenants(one)}
        written = constraint_sets(one)
        assert len(set(written)) == len(written)
        assert sorted(set(set_of_job(one).tolist()) - {-1}) == list(range(len(written)))
    if not isinstance(workload, JobWorkload):
        assert sets_by_tenant(as_jobs(workload)) == of


@MANY
@given(constrained(dags=False), constrained(dags=False))
def test_merging_keeps_the_constraints_of_each_job(one: Any, other: Any) -> None:
    together = sets_by_tenant(merge([one, other], label=True))
    alone = {f"jobs#1/{t}": s for t, s in sets_by_tenant(one).items()}
    assert together == alone | {f"jobs#2/{t}": s for t, s in sets_by_tenant(other).items()}


def test_pandas_is_not_imported() -> None:
    program = (
        "import sys; from workloads.catalogue import load_workload; from workloads.transform import constrain;"
        "w = constrain(load_workload('poisson', options={'jobs': 10}), jobs='all'); w.fingerprint();"
        "from clusters import load_cluster;"
        "from clusters.feasibility import check_feasible; from clusters.matching import match;"
        "c = load_cluster('phoenix', 10); check_feasible(w, c, match(w, c)); sys.exit('pandas' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0


@given(names)
def test_sets_that_are_not_there_are_refused(name: str) -> None:
    constraint = Constraint(name, "=", "1")
    for of_job in ([0, 1], [-2, 0]):
        with pytest.raises(InputError, match=r"is not a set: there are 1"):
            with_constraints(two_jobs(), [[constraint]], of_job)
    with pytest.raises(InputError, match="1 sets for 2 jobs"):
        with_constraints(two_jobs(), [[constraint]], [0])


def with_table(name: str, changes: dict[str, Any]) -> JobWorkload:
    """What is read of jobs with another table of constraints, for calls/constraints.txt."""
    write_parquet(with_constraints(two_jobs(), [parse_constraint_set("cores > 4")], [0, -1]), Path("w"))
    path = Path("w") / f"{name}.parquet"
    pq.write_table(pa.table({**pq.read_table(path).to_pydict(), **changes}), path)
    return read_parquet(Path("w"))
