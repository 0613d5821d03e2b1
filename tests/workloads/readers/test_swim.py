import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.log_files import durations
from workloads.readers.report import Report
from workloads.readers.swim import read_swim, recognises

SMALL = {"block_bytes": 100, "reduce_bytes": 100, "task_bytes_per_s": 10.0, "min_task_s": 1.0}


def write(path, *rows, joint="\t"):
    path.write_text("".join(joint.join(map(str, row)) + "\n" for row in rows))
    return path


def test_what_is_not_swim_is_not_recognised(tmp_path):
    path = tmp_path / "w"
    for text in ("0\t3\t1\t1\t1\t1\n", "job0 1 1 2 3 4\n", "job0\t1\t1\t2\t3\n", "job0\t1\t1\tx\t3\t4\n", ""):
        path.write_text(text)
        assert not recognises(path), text
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "nothing")


def test_gzip_blank_lines_and_carriage_returns(tmp_path):
    text = b"\njob0\t1\t1\t5\t6\t7\r\n\n\t\t\njob1\t2\t1\t5\t6\t7"
    (tmp_path / "a.tsv").write_bytes(text)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(text))
    plain, packed = read_swim(tmp_path / "a.tsv"), read_swim(tmp_path / "b.tsv.gz")
    assert plain.fingerprint() == packed.fingerprint()
    assert (plain.name, packed.name) == ("a", "b")


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
