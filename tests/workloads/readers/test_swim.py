import gzip
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.log_files import durations
from workloads.conversion import as_jobs
from workloads.errors import InputError
from workloads.readers.report import Report
from workloads.readers.swim import read_swim, recognises

SMALL = {"block_bytes": 100, "reduce_bytes": 100, "task_bytes_per_s": 10.0, "min_task_s": 1.0}


def write(path, *rows, joint="\t"):
    path.write_text("".join(joint.join(map(str, row)) + "\n" for row in rows))
    return path


def test_a_job_by_hand(tmp_path):
    # 250 B in 3 maps, that write 500 B: 300, 300 and 150 B; 500 + 100 B by 6 reducers: 100 B each.
    path = write(tmp_path / "w.tsv", ("job7", 3, 3, 250, 500, 100))
    workload = read_swim(path, **SMALL)
    assert durations(workload) == [[30.0, 30.0, 15.0] + [10.0] * 6]
    assert workload.jobs["job_id"].to_pylist() == [7]
    assert workload.jobs["submit_s"].to_pylist() == [3.0]
    assert workload.name == "w"
    assert "block_bytes=100 reduce_bytes=100 machines=None" in workload.metadata["parameters"]
    assert workload.notes[0] == "w.tsv has bytes, not tasks: numbers of tasks and durations were made of them"


@pytest.mark.parametrize(
    ("sizes", "options", "tasks"),
    [
        ((0, 0, 0), {}, [1.0, 1.0]),  # a map and a reducer at least, as in SWIM's replay
        ((0, 0, 0), {"map_only": True}, [1.0]),
        ((0, 0, 300), {}, [1.0, 10.0, 10.0, 10.0]),
        ((0, 0, 300), {"map_only": True}, [30.0]),  # the map writes the output
        ((200, 0, 100), {"map_only": True}, [15.0, 15.0]),
        ((200, 1, 99), {"map_only": True}, [10.05, 10.05, 10.0]),
        ((100, 150, 0), {}, [25.0, 7.5, 7.5]),  # 1.5 reducers are 2
        ((100, 149, 0), {}, [24.9, 14.9]),
        ((1, 0, 1100), {"machines": 10}, [1.0, 55.0, 55.0]),  # 11 of 10 machines: a fifth of these
        ((1, 0, 1000), {"machines": 10}, [1.0] + [10.0] * 10),
        ((1, 0, 500), {"machines": 4}, [1.0, 50.0]),
    ],
)
def test_the_rules(tmp_path, sizes, options, tasks):
    workload = read_swim(write(tmp_path / "w.tsv", ("job0", 0, 0, *sizes)), **SMALL, **options)
    assert durations(workload) == [pytest.approx(tasks)]


def test_the_published_files_as_they_are(tmp_path):
    rows = [("job0", 49, 49, 740773, 2339561, 627471), ("job1", 101, 52, 10274791099, 0, 151953102)]
    path = write(tmp_path / "FB-2009_samples_24_times_1hr_0.tsv", *rows)
    workload = read_swim(path)
    assert workload.metadata["read"] == "2 jobs; 0 input paths, which are not used"
    assert "machines=600" in workload.metadata["parameters"]
    assert workload.jobs["num_tasks"].to_pylist() == [2, 154 + 2]
    assert recognises(path)
    rows = [(*row, "inputPath1", "", "") for row in rows]
    path = write(tmp_path / "FB-2010_samples_24_times_1hr_withInputPaths_0", *rows)
    with_paths = read_swim(path)
    assert "machines=3000" in with_paths.metadata["parameters"]
    assert with_paths.metadata["read"] == "2 jobs; 2 input paths, which are not used"
    assert with_paths.fingerprint() == workload.fingerprint()
    assert recognises(path)


def test_what_is_not_swim_is_not_recognised(tmp_path):
    path = tmp_path / "w"
    for text in ("0\t3\t1\t1\t1\t1\n", "job0 1 1 2 3 4\n", "job0\t1\t1\t2\t3\n", "job0\t1\t1\tx\t3\t4\n", ""):
        path.write_text(text)
        assert not recognises(path), text
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "nothing")


def test_reducers_are_limited_by_the_machines_of_the_trace(tmp_path):
    path = write(tmp_path / "FB-2009_x.tsv", ("job0", 0, 0, 1, 0, 601 << 26))
    assert read_swim(path).num_tasks == 1 + 120
    assert read_swim(path, machines=601).num_tasks == 1 + 601


def test_gzip_blank_lines_and_carriage_returns(tmp_path):
    text = b"\njob0\t1\t1\t5\t6\t7\r\n\n\t\t\njob1\t2\t1\t5\t6\t7"
    (tmp_path / "a.tsv").write_bytes(text)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(text))
    plain, packed = read_swim(tmp_path / "a.tsv"), read_swim(tmp_path / "b.tsv.gz")
    assert plain.fingerprint() == packed.fingerprint()
    assert (plain.name, packed.name) == ("a", "b")


def test_wrong_gaps_and_names_are_repaired_and_reported(tmp_path):
    rows = [("job_a", 10, 10, 1, 1, 1), ("job1", 5, 7, 1, 1, 1), ("job2", 12, 2, 1, 1, 1)]
    report = Report()
    workload = read_swim(write(tmp_path / "w.tsv", *rows), report=report)
    assert workload.jobs["submit_s"].to_pylist() == [5.0, 10.0, 12.0]
    assert workload.jobs["job_id"].to_pylist() == [0, 1, 2]
    assert report.lines()[2:] == [
        "repaired 2: gaps that are not those of the submit times: submit times taken",
        "repaired 3: job names that are not 'job' and a number: jobs numbered by their place",
    ]
    assert set(report.lines()) <= set(workload.notes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("job1\t1\t1\t5\t6", "field reduce_output_bytes: the line ends after 5 fields; want 'job_id\\tsubmit_s"),
        ("job1 1 1 5 6 7", "field submit_s: the line ends after 1 fields"),
        ("job1\t1\t1\t5\t6\t7\tpath\t8", "field 8: the line has 8 fields"),
        ("job1\tx\t1\t5\t6\t7", "field submit_s: 'x' is not a number"),
        ("job1\t1\t\t5\t6\t7", "field gap_s: '' is not a number"),
        ("job1\t1\t1\t1_0\t6\t7", "field map_input_bytes: '1_0' is not a number"),
        ("job1\t-1\t1\t5\t6\t7", "field submit_s: -1.0 is negative"),
        ("job1\tinf\t1\t5\t6\t7", "field submit_s: inf is not a finite number"),
        ("job1\t1\t1\t5\t-6\t7", "field shuffle_bytes: -6.0 is not a size"),
        ("job1\t1\t1\t5\t6\tnan", "field reduce_output_bytes: nan is not a size"),
        ("job1\t1\t1\t5.5\t6\t7", "field map_input_bytes: 5.5 is not a size"),
        ("job1\t1\t1\t1e19\t6\t7", "field map_input_bytes: 1e+19 is not a size"),
        ("job1\t1\t1\t1e18\t6\t7", "makes 14,901,161,199 tasks, more than "),
    ],
)  # fmt: skip
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, line, message):
    path = tmp_path / "w.tsv"
    path.write_text(f"job0\t1\t1\t5\t6\t7\n\n{line}\njob9\t1\t1\t5\t6\t7\n")
    with pytest.raises(InputError) as caught:
        read_swim(path)
    assert str(caught.value).startswith(f"{path}: line 3: {message}")


def test_files_and_options_that_cannot_be_are_named(tmp_path):
    path = tmp_path / "w.tsv"
    path.write_text("\n")
    with pytest.raises(InputError, match="the file holds no job"):
        read_swim(path)
    write(path, ("job0", 0, 0, 1, 1, 1), ("job0", 1, 1, 1, 1, 1))
    with pytest.raises(InputError, match="field job_id: 0 is given twice"):
        read_swim(path)
    for field, value in (
        ("block_bytes", 0),
        ("reduce_bytes", -1),
        ("machines", 0),
        ("task_bytes_per_s", float("nan")),
        ("min_task_s", -1.0),
    ):
        with pytest.raises(InputError, match=f"^field {field}: "):
            read_swim(path, **{field: value})
    write(path, ("job0", 0, 0, 1, 1, 1), ("job1", 1, 1, 1, 10**9, 1))
    with pytest.raises(InputError, match=r"line 2: field duration of a task: .* is more than"):
        read_swim(path, task_bytes_per_s=1e-3, reduce_bytes=10**10)


SIZES = st.one_of(st.just(0), st.integers(0, 10_000))


@given(st.lists(st.tuples(st.integers(0, 1000), SIZES, SIZES, SIZES), min_size=1, max_size=8), st.booleans())
def test_all_bytes_are_moved_by_tasks_of_the_right_size(tmp_path_factory, jobs, map_only):
    submits = np.cumsum([gap for gap, *_ in jobs])
    rows = [(f"job{i}", s, j[0], *j[1:]) for i, (s, j) in enumerate(zip(submits, jobs, strict=True))]
    path = write(tmp_path_factory.mktemp("swim") / "w.tsv", *rows)
    report = Report()
    options = SMALL | {"min_task_s": 0.0, "map_only": map_only}
    workload = read_swim(path, report=report, **options)
    assert workload.jobs["submit_s"].to_pylist() == submits.tolist()
    assert report.notes() == ()
    for (_, read, shuffled, written), tasks in zip(jobs, durations(workload), strict=True):
        moved = read + shuffled + (shuffled + written if shuffled or not map_only else written)
        assert sum(tasks) == pytest.approx(moved / 10)
        maps = max(-(-read // 100), 1)
        alone = map_only and not shuffled
        assert len(tasks) == maps + (0 if alone else max((2 * (shuffled + written) + 100) // 200, 1))
    least = read_swim(path, **(options | {"min_task_s": 7.0}))
    assert durations(least) == [[max(t, 7.0) for t in tasks] for tasks in durations(workload)]


def test_as_dags_reducers_come_after_maps(tmp_path):
    rows = [("job3", 0, 0, 250, 500, 100), ("job4", 5, 5, 150, 0, 70), ("job9", 6, 1, 0, 1, 0)]
    path = write(tmp_path / "w.tsv", *rows)
    dags = read_swim(path, family="dags", map_only=True, **SMALL)
    jobs = read_swim(path, map_only=True, **SMALL)
    assert as_jobs(dags).fingerprint() == jobs.fingerprint()
    assert dags.metadata == jobs.metadata
    assert dags.stages.select(["job_id", "stage", "name", "num_tasks"]).to_pydict() == {
        "job_id": [3, 3, 4, 9, 9],
        "stage": [0, 1, 0, 0, 1],
        "name": ["map", "reduce", "map", "map", "reduce"],
        "num_tasks": [3, 6, 2, 1, 1],
    }
    edges = {"job_id": [3, 9], "parent": [0, 0], "child": [1, 1], "size_bytes": [500.0, 1.0]}
    assert dags.edges.to_pydict() == edges
    assert dags.stages["input_bytes"].to_pylist() == [250.0, 0.0, 150.0, 0.0, 0.0]
    always = read_swim(path, family="dags", **SMALL)
    assert always.edges["size_bytes"].to_pylist() == [500.0, 0.0, 1.0]
    path = write(tmp_path / "large.tsv", ("job3", 0, 0, 2 * 10**18, 0, 0))
    with pytest.raises(InputError, match=r"large\.tsv: line 1: field map_input_bytes: 2e\+18 is not a size"):
        read_swim(path, family="dags")


@given(st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=8), st.booleans(), st.randoms())
def test_dags_have_all_bytes_of_input_and_shuffle(tmp_path_factory, jobs, map_only, random):
    rows = [(f"job{i}", random.randrange(9), 0, *sizes) for i, sizes in enumerate(jobs)]
    path = write(tmp_path_factory.mktemp("swim") / "w.tsv", *rows)
    dags = read_swim(path, family="dags", map_only=map_only, **SMALL)
    sent = dict(zip(dags.edges["job_id"].to_pylist(), dags.arrays().edge_bytes.tolist(), strict=True))
    read = dict.fromkeys(range(len(jobs)), 0.0)
    for stage in dags.stages.to_pylist():
        read[stage["job_id"]] += stage["input_bytes"]
    for job, sizes in enumerate(jobs):
        assert (read[job], sent.get(job, 0.0)) == sizes[:2]


def test_a_hundred_mutated_files_are_refused_in_one_line_that_names_the_place(tmp_path):
    rng = random.Random(4)
    wrong = [
        b"abc",
        b"1_000",
        b"nan",
        b"-1",
        b"0x10",
        b"1e400",
        b"1,5",
        b"1\x002",
        b"\xff\xfe",
        b"\x1b[31m",
        b"",
    ]
    for i in range(110):
        rows = [
            [b"job%d" % j, b"%d" % j, b"1", *(b"%d" % rng.randrange(10**9) for _ in "abc")] for j in range(5)
        ]
        at = rng.randrange(5)
        change = i % 3
        if change == 0:
            # A gap may be negative; that it is not that of the submit times is repaired.
            field = rng.choice([1, 3, 4, 5])
            rows[at][field] = rng.choice(wrong)
        elif change == 1:
            rows[at] = rows[at][: rng.randrange(1, 6)]
        else:
            rows[at] += [b"path", b"", rng.choice(wrong[:-1])]
        data = b"".join(b"\t".join(row) + b"\n" for row in rows)
        path = tmp_path / f"{i}.tsv"
        path.write_bytes(gzip.compress(data) if i % 2 else data)
        with pytest.raises(InputError) as caught:
            read_swim(path)
        text = str(caught.value)
        assert text.startswith(f"{path}: line {at + 1}: field "), text
        assert text.isprintable()
        assert len(text) < 300 + len(str(path))
