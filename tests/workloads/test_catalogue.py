import json

import pytest

from workloads.catalogue import generators, known_trace, load_workload, save_workload
from workloads.errors import InputError
from workloads.info import QUANTILES, describe, render
from workloads.jobs import make_workload


@pytest.fixture
def workload():
    return make_workload(
        "w", [0.0, 1.0, 3.0], [1, 2, 1], [5.0, 1.0, 2.0, 50.0], short_cutoff_s=10.0, long_partition=0.9
    )


def test_generators_are_listed_with_their_parameters():
    names = [
        "cloudera-c",
        "deadline-coflows",
        "facebook",
        "facebook-mapreduce",
        "google",
        "poisson",
        "query-dags",
        "synthetic",
        "synthetic-coflows",
        "yahoo",
    ]
    assert sorted(generators()) == names
    assert "jobs=24262" in generators()["yahoo"]
    assert all("\n" not in line for line in generators().values())


def test_generators_are_reached_by_name_with_options_as_text():
    workload = load_workload("yahoo", seed=4, options={"jobs": "300", "load": "50%", "nodes": 100})
    assert (
        workload.fingerprint()
        == load_workload("yahoo", seed=4, options={"jobs": 300, "load": 0.5, "nodes": 100}).fingerprint()
    )
    assert workload.num_jobs == 300
    fast = load_workload(
        "poisson", options={"jobs": "10", "mean_task_s": "10 ms", "service": "deterministic"}
    )
    assert fast.tasks["duration_s"].to_pylist() == [0.01] * 10
    assert load_workload("poisson", options={"load": "110%", "jobs": 10}).num_jobs == 10


def test_a_misspelt_path_names_the_nearest(tmp_path):
    (tmp_path / "trace.tr").write_text("0 1 1 1\n")
    with pytest.raises(InputError, match=r"did you mean 'trace\.tr'"):
        load_workload(tmp_path / "tracee.tr")


@pytest.mark.parametrize("name", ["w", "w.tr", "w.tr.gz", "yahoo.tr"])
def test_saved_workloads_are_loaded_by_path(tmp_path, workload, name):
    found = save_workload(workload, tmp_path / name)
    assert load_workload(str(tmp_path / name)).fingerprint() == workload.fingerprint()
    assert (tmp_path / name).is_dir() == (name == "w")
    assert bool(found) == (name != "w")
    with pytest.raises(InputError, match="exists already"):
        save_workload(workload, tmp_path / name)
    save_workload(workload, tmp_path / name, overwrite=True)
    with pytest.raises(InputError, match="takes no options, got jobs"):
        load_workload(tmp_path / name, options={"jobs": 1})


def test_formats_can_be_named(tmp_path, workload):
    save_workload(workload, tmp_path / "w.txt", "tr")
    assert load_workload(tmp_path / "w.txt").num_tasks == 4
    with pytest.raises(InputError, match="unknown format 'parket'; did you mean 'parquet'"):
        save_workload(workload, tmp_path / "v", "parket")
    with pytest.raises(InputError, match="swim is read, not written; what is written: parquet, tr, "):
        save_workload(workload, tmp_path / "v", "swim")
    with pytest.raises(InputError, match="the format coflowlib holds coflows, and w is of jobs"):
        save_workload(workload, tmp_path / "v", "coflowlib")
    (tmp_path / "folder.tr").mkdir()
    with pytest.raises(InputError, match="is a folder; format 'tr' writes a file"):
        save_workload(workload, tmp_path / "folder.tr", overwrite=True)


def test_a_name_that_is_too_long_for_the_system_is_refused(tmp_path, workload):
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        save_workload(workload, tmp_path / f"{'x' * 300}.tr")


def test_a_table_instead_of_its_folder_is_named(tmp_path, workload):
    save_workload(workload, tmp_path / "w")
    with pytest.raises(InputError, match="give the folder"):
        load_workload(tmp_path / "w" / "jobs.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: is an empty folder; formats: parquet, tr, google-2011"):
        load_workload(tmp_path / "empty")


@pytest.mark.parametrize(
    ("stem", "known"),
    [
        ("YH1_sub", (90.5811, 0.98)),
        ("yahoo", (90.5811, 0.98)),
        ("GOOG_subtrace.tr", (1129.532, 0.83)),
        ("google2011", (1129.532, 0.83)),
        ("fb-2010", (76.5951, 0.98)),
        ("CC-c", (272.783, 0.91)),
        ("cloudera-c", (272.783, 0.91)),
        ("mine", None),
        ("my_YH", None),
    ],
)
def test_published_traces_are_known_by_name(stem, known):
    assert known_trace(stem) == known


def test_the_description_has_the_numbers(workload):
    d = describe(workload, [4])
    assert (d["jobs"], d["tasks"], d["span_s"], d["mean_gap_s"]) == (3, 4, 3.0, 1.5)
    assert d["gap_cv"] == pytest.approx(0.5 / 1.5)
    assert d["task_seconds"] == 58.0
    assert d["busy_nodes"] == pytest.approx(58 / 3)
    assert d["offered_load"] == {4: pytest.approx(58 / 12)}
    short, long = d["classes"]["short"], d["classes"]["long"]
    assert (short["jobs"], long["jobs"]) == (2, 1)
    assert short["work_share"] == pytest.approx(8 / 58)
    assert long["job_share"] == pytest.approx(1 / 3)
    assert short["num_tasks"][QUANTILES.index(50)] == 1.5
    assert long["mean_task_s"] == [50.0] * 11
    json.dumps(d)


def test_the_description_is_readable(workload):
    text = render(describe(workload, [4]))
    assert text.startswith("w: 3 jobs, 4 tasks\n")
    assert "long jobs: 1 (33.33%), 86.21% of task-seconds" in text
    assert "4.83 on 4 one-slot nodes" in text


def test_workloads_without_span_or_class_are_described():
    one = make_workload("one", [0.0], [1], [0.0], notes=("said",))
    d = describe(one)
    assert d["busy_nodes"] is None
    assert list(d["classes"]) == ["all"]
    assert "note: said" in render(d)
    all_short = make_workload("short", [0.0, 1.0], [1, 1], [1.0, 1.0], short_cutoff_s=5.0)
    assert "long jobs: 0 (0.00%)" in render(describe(all_short))
