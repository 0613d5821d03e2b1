import gzip
import re
from collections import Counter, defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.alibaba_files import (
    CUT,
    INSTANCES_A,
    JOB_A,
    MACHINES,
    archive,
    folder_of,
    refused,
    stage,
    tables,
)
from workloads.readers import alibaba_2018
from workloads.readers.alibaba_2018 import recognises
from workloads.readers.report import Report


def test_many_alike_tasks_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(alibaba_2018, "_ROWS_PER_BATCH", 4)
    rows = (
        stage("j_1", "M1", number=9)
        + stage("j_1", "R2_1", number=3, start=110, end=130)
        + stage("j_2", "M1", number=1)
    )
    got = tables(folder_of(tmp_path / "in", rows), tmp_path / "out")["tasks"]
    assert got["duration_s"] == [10.0] * 9 + [20.0] * 3 + [10.0]
    assert got["stage"] == [0] * 9 + [1] * 3 + [0]


def test_all_forms_of_the_files_are_read_alike(tmp_path):
    files = {"batch_instance.csv": INSTANCES_A, "batch_task.csv": JOB_A, "machine_meta.csv": MACHINES}
    want = tables(folder_of(tmp_path / "plain", JOB_A, INSTANCES_A, MACHINES), tmp_path / "out")
    published, packed, shards = (tmp_path / name for name in ("published", "packed", "shards"))
    for folder in (published, packed, shards):
        folder.mkdir()
    for name, text in files.items():
        archive(published / name.replace(".csv", ".tar.gz"), {name: text})
        (packed / f"{name}.gz").write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
        lines = text.splitlines(keepends=True)
        for i in range(2):
            (shards / name.replace(".csv", f"_{i}.csv")).write_text("".join(lines[i::2]))
    (published / "machine_usage.tar.gz").write_bytes(b"not read")
    sources = [published, packed, shards, archive(tmp_path / "all.zip", files)]
    sources.append(archive(tmp_path / "all.tar.gz", {f"trace/{name}": text for name, text in files.items()}))
    for i, source in enumerate(sources):
        assert recognises(source)
        assert tables(source, tmp_path / f"out{i}") == want, source


def test_what_is_not_this_trace_is_not_recognised(tmp_path):
    (tmp_path / "w.tr").write_text("0 1 1 1\n")
    for path in (tmp_path, tmp_path / "w.tr", tmp_path / "nothing"):
        assert not recognises(path)
    assert recognises(Path("batch_task.csv"))


# The rules once more, a job at a time in plain Python.

NAMES = ["M1", "R2_1", "J3_1_2", "M3_4", "R4_3", "J2_2_9", "R1_1_3", "task_x", "Merge", "J4_2_Stg1", CUT]
ROWS = st.tuples(
    st.sampled_from(["j_1", "j_2", "j_30"]),
    st.sampled_from(NAMES),
    st.sampled_from(["Terminated"] * 9 + ["Failed"]),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 3),
)


def has_cycle(edges) -> bool:
    """Return whether stages remain that wait for others, when those that wait for none are taken away."""
    while edges and (ready := {p for p, _ in edges} - {c for _, c in edges}):
        edges = {(p, c) for p, c in edges if p not in ready}
    return bool(edges)


def parts_of(name):
    """Return the numbers in a name: the stage's own, and those it depends on; none of one that stands alone."""
    found = name.rpartition("_")[0] if len(name) == 50 else name
    return (
        re.findall("[0-9]+", found.split("_Stg")[0])
        if re.fullmatch(r"[A-Z]+\d+(_\d+)*(_Stg\d)?", found)
        else []
    )


def expected(rows, unfinished, starts):
    """Return {job: [(name, instances, seconds)]}, {job: {(parent, child)}} by the rules of the module."""
    known = defaultdict(dict)
    bad = set()
    for job, name, status, start, end, number in sorted(
        rows, key=lambda r: (r[2] != "Terminated", r[3], r[4], r[5])
    ):
        known[job].setdefault(name, (status, start, end, number))
    stages, edges = {}, {}
    for job, by_name in known.items():
        good = {
            name: (start, end, number)
            for name, (status, start, end, number) in by_name.items()
            if status == "Terminated" and start > 0 and end > 0 and number > 0
        }
        if len(good) < len(by_name):
            bad.add(job)
        if not good or (unfinished == "job" and job in bad):
            continue
        parts = {n: parts_of(n) for n in good}
        order = sorted(good, key=lambda n: (not parts[n], int((parts[n] or [0])[0]), n))
        graph = {
            (order.index(p), order.index(n))
            for n in order
            for d in parts[n][1:]
            for p in order
            if parts[p] and parts[p][0] == d != parts[n][0]
        }
        if has_cycle(graph):
            first = [int((parts[n] or [0])[0]) for n in order]
            graph = {(p, c) for p, c in graph if first[p] < first[c]}
        edges[job] = sorted(graph)
        took = []
        for at, name in enumerate(order):
            start, end, number = good[name]
            ready = max([start, *(good[order[p]][1] for p, c in graph if c == at and starts == "ready")])
            took.append((name, number, max(min(end - start, end - ready), 0)))
        stages[job] = (min(start for start, _, _ in good.values()), took)
    return stages, edges


@settings(max_examples=12)
@given(
    st.lists(ROWS, min_size=1, max_size=14),
    st.sampled_from(["job", "task"]),
    st.sampled_from(["ready", "registered"]),
)
def test_any_table_is_resolved_by_the_rules(tmp_path_factory, rows, unfinished, starts):
    stages, edges = expected(rows, unfinished, starts)
    folder = tmp_path_factory.mktemp("alibaba")
    text = "".join(stage(job, n, status, start, end, number) for job, n, status, start, end, number in rows)
    source = folder_of(folder / "in", text)
    if not stages:
        said = refused(source, folder / "out", unfinished=unfinished)
        assert "no job of batch_task is complete" in said
        assert "dropped" in said
        return
    report = Report()
    got = tables(source, folder / "out", unfinished=unfinished, starts=starts, report=report)
    jobs = sorted(stages, key=lambda j: (stages[j][0], int(j[2:])))
    assert got["jobs"]["job_id"] == [int(j[2:]) for j in jobs]
    assert got["jobs"]["submit_s"] == [stages[j][0] for j in jobs]
    assert got["stages"]["name"] == [n for j in jobs for n, _, _ in stages[j][1]]
    assert got["stages"]["stage"] == [i for j in jobs for i in range(len(stages[j][1]))]
    assert got["tasks"]["duration_s"] == [s for j in jobs for _, n, s in stages[j][1] for _ in range(n)]
    assert got["tasks"]["job_id"] == [int(j[2:]) for j in jobs for _, n, _ in stages[j][1] for _ in range(n)]
    assert list(zip(*got["edges"].values(), strict=True)) == [
        (int(j[2:]), p, c) for j in jobs for p, c in edges[j]
    ]
    kept = Counter(got["stages"]["job_id"]).total()
    dropped = sum(
        int(line.split()[1][:-1])
        for line in report.lines()
        if line.startswith("dropped") and "jobs without" not in line
    )
    assert kept + dropped == len(rows)  # nothing is lost without a word
