"""The Standard Workload Format as programs write it beside its definition, and jobs that wait for others."""

import zipfile
from pathlib import Path

import pytest

from workloads.catalogue import load_workload
from workloads.dags import DagWorkload
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.jobs import JobWorkload
from workloads.requests import NO_GANG, gang_nodes

NAMES = "id submit wait runtime cpus cpu mem cpusreq walltime memreq status user group app queue part precjob think"


def line(
    number: int, submit_s: int, run_s: int, processors: int, preceding: int = -1, think_s: int = -1
) -> str:
    return f"{number} {submit_s} 0 {run_s} {processors} -1 -1 {processors} {run_s} -1 1 1 1 1 1 1 {preceding} {think_s}"


CHAINS = [
    line(1, 20, 1200, 1),
    line(2, 20, 2100, 5, preceding=1, think_s=0),
    line(7, 30, 60, 2),
    line(3, 20, 900, 1, preceding=2, think_s=5),
    line(4, 25, 10, 1, preceding=99),
    line(5, 40, 10, 1, preceding=5),
]


def read(folder: Path, lines: list[str], name: str = "log.swf", **options: str) -> JobWorkload:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_workload(str(path), format=recognise(path), options=options)


@pytest.mark.parametrize("name", ["log.swf", "log.txt"])
def test_a_line_of_names_and_fields_behind_the_18(tmp_path: Path, name: str) -> None:
    plain = read(tmp_path, [line(1, 5, 10, 2), line(2, 9, 20, 1)])
    extra = [f"{line(1, 5, 10, 2)} {{1,2}} q_1d 1:ppn=64:cl_a#excl", f"{line(2, 9, 20, 1)} DAG-1 2"]
    found = read(tmp_path, ["# a comment", f"\ufeff{NAMES} DAG task", *extra, f"{NAMES} DAG task"][1:], name)
    assert found.fingerprint() == plain.fingerprint()
    assert "repaired 2: lines with more than 18 fields: the first 18 taken" in found.notes
    assert any(note.startswith("repaired") and "names of fields" in note for note in found.notes)


def test_names_in_place_of_numbers_that_are_not_used(tmp_path: Path) -> None:
    named = "1 5 0 10 2 -1 -1 2 10 -1 1 ada staff sim.sh long node-1 -1 -1"
    users = [
        "ada",
        "nan",
        "1e5",
        "+7",
        "u\xa0x",
        "٣",
    ]  # names, though Python takes some for numbers or blanks
    found = read(tmp_path, [*(named.replace("ada", user) for user in users), line(2, 9, 20, 1)])
    assert found.jobs["tenant"].to_pylist() == [*users, "user-1"]


def test_comments_of_other_programs(tmp_path: Path) -> None:
    assert read(tmp_path, ["# one", "; two", line(1, 5, 10, 2)], "log.txt").num_tasks == 2


def test_names_in_the_middle_are_no_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: field job_number: 'id' is not a number"):
        read(tmp_path, [line(1, 5, 10, 2), NAMES])


def test_an_archive_has_one_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("README", "About this log.")
        archive.writestr("one.swf", line(1, 5, 10, 2))
    assert load_workload(tmp_path / "log.zip", format="swf").num_tasks == 2
    with zipfile.ZipFile(tmp_path / "log.zip", "a") as archive:
        archive.writestr("two.swf", line(1, 5, 10, 2))
    with pytest.raises(InputError, match=r"holds 2 files: 'one.swf', 'two.swf'; want one log"):
        load_workload(tmp_path / "log.zip", format="swf")


def test_jobs_that_wait_for_others_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, CHAINS)
    assert (found.num_jobs, found.num_tasks) == (6, 11)
    assert any(note.startswith("repaired 2: jobs that wait for a preceding job") for note in found.notes)
    plain = read(tmp_path, [line(1, 5, 10, 2), line(2, 9, 20, 1)])
    assert plain.notes == ()


def test_or_are_stages_of_one_job(tmp_path: Path) -> None:
    """For a preceding job that is not there, or is the job itself, nothing waits, and a note counts them."""
    found = read(tmp_path, CHAINS, family="dags")
    assert isinstance(found, DagWorkload)
    assert found.jobs["submit_s"].to_pylist() == [0.0, 5.0, 10.0, 20.0]
    assert found.stages["num_tasks"].to_pylist() == [1, 5, 1, 1, 2, 1]
    assert found.stages["mean_task_s"].to_pylist() == [1200.0, 2100.0, 900.0, 10.0, 60.0, 10.0]
    assert [edge[1:] for edge in zip(*(found.edges[c].to_pylist() for c in found.edges.column_names), strict=True)] == [
        (0, 1), (1, 2),
    ]  # fmt: skip
    assert "repaired 1: think times after a preceding job: left out" in found.notes
    assert any(
        note.startswith("repaired 2: jobs whose preceding job is not on a line before")
        for note in found.notes
    )
    assert not any("independent" in note for note in found.notes)


def test_unknown_submissions_are_dropped_and_large_numbers_named(tmp_path: Path) -> None:
    found = read(tmp_path, [line(1, -1, 10, 2), line(2, 9, 20, 1)])
    assert found.num_tasks == 1
    assert "dropped 1: jobs whose submit time is not known (-1)" in found.notes
    with pytest.raises(InputError, match="field family: 'coflows' is neither 'jobs' nor 'dags'"):
        read(tmp_path, [line(1, 0, 10, 1)], family="coflows")
    with pytest.raises(InputError, match=f"field allocated_processors: '{2**62}' is out of range"):
        read(tmp_path, [line(1, 0, 10, 2**62)])


def test_estimates_of_stages(tmp_path: Path) -> None:
    lines = [line(1, 0, 10, 1), line(2, 0, 20, 3, preceding=1)]
    asked = [
        text.replace(f" {run_s} -1 1 1", f" {5 * run_s} -1 1 1")
        for text, run_s in zip(lines, (10, 20), strict=True)
    ]
    found = read(tmp_path, asked, family="dags", estimates="requested-time")
    assert found.stages["mean_task_s"].to_pylist() == [50.0, 100.0]
    assert found.jobs["mean_task_s"].to_pylist() == [(50 + 3 * 100) / 4]


ASKING = [
    "1 0 0 10 4 -1 999 4 300 1048576 1 1 1 1 1 1 -1 -1",  # 1 GiB a processor
    "2 5 0 10 5 -1 999 5 -1 -1 1 1 1 1 1 1 -1 -1",
    "3 9 0 10 1 -1 -1 1 0 0 1 1 1 1 1 1 -1 -1",
]


def test_jobs_state_cores_memory_gangs_and_requested_times(tmp_path: Path) -> None:
    found = read(tmp_path, ASKING)
    assert found.resources == ("cpu_cores", "memory_gib")
    assert found.jobs["cpu_cores"].to_pylist() == [1, 1, 1]
    assert found.jobs["memory_gib"].to_pylist() == [1.0, None, None]
    assert found.tasks.num_columns == 2  # no demands of single tasks
    assert gang_nodes(found.jobs).tolist() == [0, 0, 0]
    assert found.jobs["requested_s"].to_pylist() == [300.0, None, None]
    assert "priority" not in found.jobs.column_names
    assert "6 tasks that state no memory_gib" in found.metadata["read"]
    assert found.notes == ()


def test_a_remainder_of_processors_needs_less(tmp_path: Path) -> None:
    found = read(tmp_path, ASKING, processors_per_task="4", gangs="no")
    assert gang_nodes(found.jobs).tolist() == [NO_GANG] * 3
    demands = found.demands()
    assert found.jobs["num_tasks"].to_pylist() == [1, 2, 1]
    assert demands.vector[demands.of_task].tolist() == [[4, 4], [4, 0], [1, 0], [1, 0]]


def test_requested_memory_of_other_logs(tmp_path: Path) -> None:
    assert read(tmp_path, ASKING, requested_memory="per-job").jobs["memory_gib"][0].as_py() == 0.25
    assert read(tmp_path, ASKING, requested_memory="ignored").resources == ("cpu_cores",)
    in_bytes = [ASKING[0].replace("1048576", str(64 << 30)), ASKING[2]]
    found = read(tmp_path, in_bytes)
    assert found.resources == ("cpu_cores",)
    assert found.notes[-1].startswith("dropped 1: requested memories of more than 1 TiB a processor")
    with pytest.raises(InputError, match="line 1: field requested_memory: '2G' is not a number"):
        read(tmp_path, [ASKING[0].replace("1048576", "2G")])


def test_stages_have_demands_and_are_not_gangs(tmp_path: Path) -> None:
    found = read(tmp_path, [*ASKING, "4 9 0 10 2 -1 -1 2 60 524288 1 1 1 1 1 1 2 -1"], family="dags")
    assert found.stages["cpu_cores"].to_pylist() == [1, 1, 1, 1]
    assert found.stages["memory_gib"].to_pylist() == [1.0, 0.0, 0.5, 0.0]
    assert not {"gang_nodes", "requested_s"} & {*found.jobs.column_names}
