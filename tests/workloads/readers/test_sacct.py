"""What Slurm's accounting prints: which lines are one job, what lines without a value are, and forms of the output."""

from itertools import pairwise
from pathlib import Path

import pytest

from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.jobs import JobWorkload
from workloads.requests import NO_GANG, gang_nodes

HEAD = "JobID|User|Submit|Start|End|Elapsed|AllocCPUS|State"
ROW = "5|ada|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:50|00:01:40|4|COMPLETED"
RAN_AGAIN = """\
5|ada|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:50|00:01:40|4|NODE_FAIL
5|ada|2026-01-01T00:01:50|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|4|COMPLETED
6|ada|2026-01-01T00:00:30|2026-01-01T00:01:00|2026-01-01T00:01:50|00:00:50|2|PREEMPTED
6|ada|2026-01-01T00:00:30|2026-01-01T00:04:00|2026-01-01T00:05:00|00:01:00|2|COMPLETED
8_1|bob|2026-01-01T00:01:00|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|1|REQUEUED
8_2|bob|2026-01-01T00:01:00|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|1|COMPLETED
8_1|bob|2026-01-01T00:05:20|2026-01-01T00:06:00|2026-01-01T00:06:07|00:00:07|1|COMPLETED"""


def read(folder: Path, text: str, **options: str) -> JobWorkload:
    path = folder / "jobs.txt"
    path.write_text(text, encoding="utf-8")
    return load_workload(str(path), format=recognise(path), options=options)


def jobs_of(workload: JobWorkload) -> list[tuple[float, list[float]]]:
    arrays = workload.arrays()
    seconds = (arrays.duration_ns / 1e9).tolist()
    tasks = [seconds[a:b] for a, b in pairwise(arrays.first_task)]
    return list(zip((arrays.submit_ns / 1e9).tolist(), tasks, strict=True))


def test_a_job_is_its_cluster_id_and_submission(tmp_path: Path) -> None:
    """Ids begin again after years, and every cluster has its own."""
    rows = [
        "alpha|7|2023-05-01T00:00:00|01:00|1",
        "beta|7|2023-05-01T00:00:00|02:00|2",
        "alpha|7|2026-05-01T00:00:00|03:00|1",
        "alpha|8_1|2023-05-01T00:00:05|00:10|1",
        "beta|8_2|2023-05-01T00:00:05|00:20|1",
        "alpha|8_2|2023-05-01T00:00:05|00:30|1",
    ]
    found = read(tmp_path, "\n".join(["Cluster|JobID|Submit|Elapsed|AllocCPUS", *rows]))
    years = (365 * 3 + 1) * 86400.0
    assert jobs_of(found) == [
        (0.0, [60.0]), (0.0, [120.0, 120.0]), (5.0, [10.0, 30.0]), (5.0, [20.0]), (years, [180.0]),
    ]  # fmt: skip
    assert "repaired" not in " ".join(found.notes)


def test_each_run_of_a_job_is_a_job(tmp_path: Path) -> None:
    """One with the submission of the run before arrives when that one ended."""
    found = read(tmp_path, f"{HEAD}\n{RAN_AGAIN}")
    assert jobs_of(found) == [
        (0.0, [100.0] * 4), (30.0, [50.0] * 2), (60.0, [200.0, 200.0]), (110.0, [200.0] * 4), (110.0, [60.0] * 2),
        (320.0, [7.0]),
    ]  # fmt: skip
    assert "repaired 3: runs of jobs that had run before" in " ".join(found.notes)


def test_runs_again_of_components_go_together(tmp_path: Path) -> None:
    """They ended together; elements of an array, each by itself."""
    rows = [
        f"{number}|2026-01-01T00:00:00|2026-01-01T00:0{start}:00|0{minutes}:00|1|{state}"
        for number, start, minutes, state in (
            ("5+0", 1, 2, "PREEMPTED"), ("5+1", 1, 2, "PREEMPTED"), ("5+0", 5, 1, "FAILED"), ("5+1", 5, 1, "FAILED"),
            ("6_1", 1, 2, "PREEMPTED"), ("6_2", 1, 3, "PREEMPTED"), ("6_1", 5, 1, "FAILED"), ("6_2", 5, 1, "FAILED"),
        )
    ]  # fmt: skip
    found = read(tmp_path, "\n".join(["JobID|Submit|Start|Elapsed|AllocCPUS|State", *rows]))
    assert jobs_of(found) == [
        (0.0, [120.0, 120.0]), (0.0, [120.0, 180.0]), (180.0, [60.0, 60.0]), (180.0, [60.0]), (240.0, [60.0]),
    ]  # fmt: skip


def test_or_the_last_run_counts(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}\n{RAN_AGAIN}", runs="last")
    assert jobs_of(found) == [(0.0, [200.0] * 4), (30.0, [60.0] * 2), (60.0, [200.0, 7.0])]
    assert "dropped 3: runs that another run of the job followed" in " ".join(found.notes)
    apart = read(tmp_path, f"{HEAD}\n{RAN_AGAIN}", runs="last", arrays="jobs")
    assert jobs_of(apart)[2:] == [(60.0, [200.0]), (60.0, [7.0])]


def test_a_job_that_failed_long_before_is_no_earlier_run(tmp_path: Path) -> None:
    other = ROW.replace("2026-01-01", "2029-01-01")
    found = read(tmp_path, f"{HEAD}\n{ROW.replace('COMPLETED', 'NODE_FAIL')}\n{other}", runs="last")
    assert found.num_jobs == 2


def test_parts_of_a_job_that_was_resized_follow_each_other(tmp_path: Path) -> None:
    second = ROW.replace("00:00:10|2026-01-01T00:01:50|00:01:40|4", "00:01:50|2026-01-01T00:02:00|00:00:10|2")
    text = f"{HEAD}\n{ROW.replace('COMPLETED', 'RESIZING')}\n{second}"
    for runs in ("each", "last"):
        assert jobs_of(read(tmp_path, text, runs=runs)) == [(0.0, [100.0] * 4), (110.0, [10.0, 10.0])]


def test_what_two_dumps_repeat_counts_once(tmp_path: Path) -> None:
    """The second has other fields, and its lines of the first one's jobs know their end."""
    going = "9|bob|2026-01-01T00:00:20|2026-01-01T00:00:30|Unknown|00:00:05|1|RUNNING"
    ended = "2026-01-01T00:00:30|2026-01-01T00:01:30|60|9|2026-01-01T00:00:20|1|COMPLETED"
    other = "Start|End|ElapsedRaw|JobID|Submit|AllocCPUS|State"
    found = read(
        tmp_path, "\n".join([HEAD, ROW, going, HEAD, ROW, RAN_AGAIN, RAN_AGAIN, other, ended, ended])
    )
    once = read(tmp_path, "\n".join([HEAD, ROW, RAN_AGAIN, other, ended]))
    assert jobs_of(found) == jobs_of(once)
    assert "dropped 10: lines about a run that another line is about" in " ".join(found.notes)


def test_runs_alike_without_their_start_differ_by_their_state(tmp_path: Path) -> None:
    rows = [f"5|2026-01-01T00:00:00|00:10|2|{state}" for state in ("NODE_FAIL", "COMPLETED", "COMPLETED")]
    found = read(tmp_path, "\n".join(["JobID|Submit|Elapsed|AllocCPUS|State", *rows]))
    assert jobs_of(found) == [(0.0, [10.0] * 2)] * 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("00:01:40", "INVALID", "jobs whose Elapsed is INVALID"),
        ("00:01:40", "-00:00:05", "jobs whose Elapsed is negative"),
        ("00:01:40", "49710-06:28:14", "jobs whose Elapsed is no value"),
        ("00:00:00|", "00:00:00|?|", "lines with another number of fields than the first line"),
        ("2026-01-01T00:00:00", "Unknown", "jobs whose Submit is Unknown"),
        ("2026-01-01T00:00:00", "1970-01-01T01:00:00", "jobs whose Submit is no value"),
        ("COMPLETED", "RUNNING", "jobs that had not ended"),
        ("00:01:40|4|COMPLETED", "00:00:00|0|CANCELLED by 7", "jobs that never ran"),
    ],
)
def test_a_line_without_a_value_is_left_out_and_counted(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    found = read(tmp_path, f"{HEAD}\n{ROW.replace(old, new, 1)}\n{ROW.replace('5|', '6|', 1)}")
    assert jobs_of(found) == [(0.0, [100.0] * 4)]
    assert f"dropped 1: {reason}" in " ".join(found.notes)
    with pytest.raises(InputError, match=f"holds no job that ran: dropped 1: {reason}"):
        read(tmp_path, f"{HEAD}\n{ROW.replace(old, new, 1)}")


@pytest.mark.parametrize(
    ("fields", "values", "tasks", "note"),
    [
        ("NCPUS|AllocTRES", "3|cpu=9", 3, ""),
        ("AllocCPUS|AllocTRES", "0|billing=7,cpu=5,mem=4G", 5, ""),
        ("ReqCPUS|ReqTRES", "64|billing=64,cpu=64", 64, "allocated processors unknown: requested ones taken"),
        ("AllocCPUS|ReqTRES", "|cpu=16,gres/gpu=1", 16, "allocated processors unknown: requested ones taken"),
        ("NNodes|ReqMem", "7|4G", 1, "processors not known (print AllocCPUS): a task each"),
    ],
)
def test_processors_are_what_is_known_of_them(
    tmp_path: Path, fields: str, values: str, tasks: int, note: str
) -> None:
    found = read(tmp_path, f"JobID|Submit|ElapsedRaw|{fields}\n5|1767225600|100|{values}")
    assert jobs_of(found) == [(0.0, [100.0] * tasks)]
    assert note in " ".join(found.notes)


@pytest.mark.parametrize(
    ("listed", "elements"), [("1-3", 3), ("1-3%2", 3), ("1,5-7", 4), ("0-9:3,20,...", 5), ("4", 1)]
)
def test_a_row_of_several_elements_stands_for_each(tmp_path: Path, listed: str, elements: int) -> None:
    text = f"{HEAD}\n{ROW.replace('5|', f'5_[{listed}]|', 1)}"
    found = read(tmp_path, text)
    assert jobs_of(found) == [(0.0, [100.0] * 4 * elements)]
    assert ("list of elements is cut off" in " ".join(found.notes)) == listed.endswith("...")
    assert jobs_of(read(tmp_path, text, arrays="jobs")) == [(0.0, [100.0] * 4)] * elements


def test_more_elements_than_fit_are_refused_before_they_are_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: makes 100,000,000 elements, more than 5,000,000"):
        read(tmp_path, f"{HEAD}\n{ROW.replace('5|', '5_[0-99999999]|', 1)}", max_tasks="5000000")


def test_an_element_of_a_row_of_several_counts_once_beside_its_own_row(tmp_path: Path) -> None:
    """And is known when it runs again: element 2 of three that were preempted."""
    several, own = ROW.replace("5|", "5_[1-3]|", 1), ROW.replace("5|", "5_2|", 1)
    found = read(tmp_path, f"{HEAD}\n{several}\n{own}")
    assert jobs_of(found) == [(0.0, [100.0] * 12)]
    assert "dropped 1: lines about a run that another line is about: it counts once" in found.notes
    assert "read 2 lines of jobs that ran" in found.notes
    again = own.replace("T00:00:10", "T01:00:10").replace("T00:01:50", "T01:01:50")
    text = f"{HEAD}\n{several.replace('COMPLETED', 'PREEMPTED')}\n{again}"
    assert jobs_of(read(tmp_path, text)) == [(0.0, [100.0] * 12), (110.0, [100.0] * 4)]
    assert jobs_of(read(tmp_path, text, runs="last")) == [(0.0, [100.0] * 12)]


def test_numbers_out_of_range_and_with_a_point(tmp_path: Path) -> None:
    """A table of doubles, as pandas makes it of a column with gaps, has 4.0."""
    text = "JobID|Submit|ElapsedRaw|AllocCPUS\n5|1767225600|100.0|4.0\n6|1767225600|4294967291|4\n7|1767225600||4\n"
    found = read(tmp_path, text)
    assert jobs_of(found) == [(0.0, [100.0] * 4)]
    assert "dropped 1: jobs whose ElapsedRaw is no value" in found.notes
    assert "dropped 1: jobs whose ElapsedRaw is empty" in found.notes
    with pytest.raises(
        InputError, match=f"field AllocCPUS: '{2**62}' is out of range: want 15 digits at most"
    ):
        read(tmp_path, f"{HEAD}\n{ROW.replace('|4|', f'|{2**62}|')}")


@pytest.mark.parametrize("separator", [",", "\t", ";", "::", "^"])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    text = f"\ufeff{HEAD}\r\n{ROW}\r\n".replace("|", separator)
    assert jobs_of(read(tmp_path, text)) == [(0.0, [100.0] * 4)]


def test_csv_with_quotes(tmp_path: Path) -> None:
    """As pandas writes it, with a first column without a name."""
    rows = ['0,5,2026-01-01T00:00:00,"billing=3,cpu=3",00:10', '1,"6",2026-01-01T00:00:01,,00:20']
    found = read(tmp_path, "\n".join([',JobID,Submit,"AllocTRES",Elapsed', *rows]))
    assert jobs_of(found) == [(0.0, [10.0] * 3), (1.0, [20.0])]


def test_a_separator_within_a_name(tmp_path: Path) -> None:
    rows = [
        "c|5|make | tee log|4|2026-01-01T00:00:00|00:10|intel&ssd",
        "c|6|plain|2|2026-01-01T00:00:01|00:20|[haswell|knl]",
        "c|7|a|b|2|2026-01-01T00:00:02|00:20|[haswell|knl]",
    ]
    found = read(tmp_path, "\n".join(["Comment|JobID|JobName|AllocCPUS|Submit|Elapsed|Constraints", *rows]))
    assert jobs_of(found) == [(0.0, [10.0] * 4), (1.0, [20.0] * 2)]
    assert "repaired 2: lines with the separator within a text" in " ".join(found.notes)
    assert "dropped 1: lines with another number of fields" in " ".join(found.notes)


def test_a_separator_within_a_name_of_a_job_by_its_raw_id(tmp_path: Path) -> None:
    found = read(tmp_path, "JobIDRaw|JobName|Submit|Elapsed\n5|a|b|2026-01-01T00:00:00|00:10\n")
    assert jobs_of(found) == [(0.0, [10.0])]


def test_lines_end_with_a_separator_and_the_first_does_not(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}\n{ROW}|\n")
    assert jobs_of(found) == [(0.0, [100.0] * 4)]
    assert found.notes == ()


def test_comments_and_blanks_before_lines(tmp_path: Path) -> None:
    found = read(tmp_path, f"\n# sacct of March\n    {HEAD}\n\n    {ROW}\n# end\n")
    assert jobs_of(found) == [(0.0, [100.0] * 4)]


def test_days_and_hours_without_seconds(tmp_path: Path) -> None:
    assert jobs_of(read(tmp_path, "JobID|Submit|Elapsed\n5|1767225600|1-02:30\n")) == [(0.0, [95400.0])]


def test_without_a_header(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"line 1: the first line has no names of fields.*--noheader.*fields="
    ):
        read(tmp_path, ROW)
    assert jobs_of(read(tmp_path, ROW, fields=HEAD.replace("|", ",").lower())) == [(0.0, [100.0] * 4)]
    with pytest.raises(InputError, match="field Submit: is not among the fields"):
        read(tmp_path, ROW, fields="JobID,User,Elapsed")


@pytest.mark.parametrize("option", ["arrays", "runs", "tasks", "estimates"])
def test_a_value_that_an_option_does_not_have_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InputError, match=f"field {option}: 'most' is neither '"):
        read(tmp_path, f"{HEAD}\n{ROW}", **{option: "most"})


def test_users_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    rows = [HEAD, ROW.replace("ada", "J\xf6"), ROW.replace("5|ada", "6|J\xe4")]
    path.write_bytes("\n".join(rows).encode("latin-1"))
    assert load_workload(str(path)).jobs["tenant"].to_pylist() == ["J\\xf6", "J\\xe4"]


def test_the_table_for_people_is_named(tmp_path: Path) -> None:
    text = "JobID                     Submit    Elapsed\n------------ ------------------- ----------\n5 x y\n"
    with pytest.raises(InputError, match=r"table for people.*--parsable2"):
        read(tmp_path, text)


def test_limits_in_minutes_and_of_the_partition(tmp_path: Path) -> None:
    text = "JobID|Submit|ElapsedRaw|TimelimitRaw\n5|1767225600|100|60\n6|1767225600|100|Partition_Limit\n"
    found = read(tmp_path, text, estimates="timelimit")
    assert found.jobs["mean_task_s"].to_pylist() == [3600.0, 100.0]
    assert "repaired 1: time limits not known: elapsed times taken" in " ".join(found.notes)


ASKING = [
    "JobID|Submit|Elapsed|AllocCPUS|NNodes|ReqMem|ReqTRES|AllocTRES|Timelimit|Priority|State",
    "1|2026-01-01T00:00:00|00:10|4|2|16G|billing=9,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1|cpu=4,mem=16G,node=2|1:00|5000|OK",
    "2|2026-01-01T00:00:01|00:10|2|1|128Mc|cpu=1,mem=128,node=1||UNLIMITED|7|OK",
    "3|2026-01-01T00:00:02|00:10|2||4Gn||cpu=2,mem=8G,node=2,gres/gpu:v100=1|||OK",
    "4|2026-01-01T00:00:03|00:10|2||0n||cpu=2,mem=1.50T,license/x=1|||OK",
    "5_1|2026-01-01T00:00:04|00:10|2|1|2000Mc||||1|OK",
    "5_2|2026-01-01T00:00:04|00:10|2|1|1G|cpu=2,mem=1G,license/x=1,gres/shard:a=3|||2|OK",
    "6+0|2026-01-01T00:00:05|00:10|1|1|||||3|OK",
    "6+1|2026-01-01T00:00:05|00:10|2|2|||||3|OK",
]


def test_jobs_state_what_they_asked_for(tmp_path: Path) -> None:
    found = read(tmp_path, "\n".join(ASKING))
    assert found.resources == ("cpu_cores", "memory_gib", "attr:gpus")
    assert found.jobs["cpu_cores"].to_pylist() == [1.0] * 6
    assert found.jobs["memory_gib"].to_pylist() == [4.0, 1 / 16, 4.0, 768.0, None, None]
    assert found.tasks["memory_gib"].to_pylist()[-7:] == [2000 / 1024] * 2 + [0.5] * 2 + [None] * 3
    assert found.jobs["attr:gpus"].to_pylist() == [0.5, None, 0.5, None, None, None]
    assert found.jobs["priority"].to_pylist() == [5000, 7, None, None, 2, 3]
    assert gang_nodes(found.jobs).tolist() == [2, 1, 2, 0, NO_GANG, 0]
    assert found.jobs["requested_s"].to_pylist() == [60.0, None, None, None, None, None]
    notes = " ".join(found.notes)
    assert "repaired 2: elements of arrays with several processors: not gangs" in notes
    assert "repaired 1: jobs whose tasks differ in priority" in notes
    assert "dropped 1: requests of 'license/x'" in notes
    assert "dropped 1: requests of 'gres/shard'" in notes
    assert "3 tasks that state no memory_gib" in notes


def test_options_of_gangs_and_tasks(tmp_path: Path) -> None:
    text = "\n".join(ASKING)
    one = read(tmp_path, text, tasks="one", arrays="jobs")
    assert one.jobs["cpu_cores"].to_pylist() == [4, 2, 2, 2, 2, 2, None]
    assert one.tasks["cpu_cores"].to_pylist()[-2:] == [1, 2]
    assert one.jobs["memory_gib"].to_pylist()[:2] == [16.0, 0.125]
    assert gang_nodes(one.jobs).tolist() == [1, 1, 1, 0, 1, 1, 0]
    assert set(gang_nodes(read(tmp_path, text, gang_nodes="any").jobs).tolist()) == {0, NO_GANG}
    assert "gang_nodes" not in read(tmp_path, text, gangs="no").jobs.column_names


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:2", 2), ("gpu:tesla:4", 4), ("gres:gpu:1", 1), ("craynetwork:1,gpu:1080:3", 3), ("gpu", 1),
        ("PER_NODE:gpu:2", 6), ("gpu:a100:2(IDX:0,1)", 2), ("gpu:0", None), ("mps:100", None), ("", None),
    ],
)  # fmt: skip
def test_gpus_of_older_versions(tmp_path: Path, gres: str, gpus: int | None) -> None:
    text = f"JobID|Submit|Elapsed|AllocCPUS|NNodes|ReqGRES\n1|2026-01-01T00:00:00|00:10|8|3|{gres}"
    found = read(tmp_path, text, tasks="one")
    assert (found.jobs["attr:gpus"][0].as_py() if "attr:gpus" in found.resources else None) == gpus


def test_thousands_of_nodes(tmp_path: Path) -> None:
    rows = [f"{n}|2026-01-01T00:00:00|00:10|4096|{nodes}" for n, nodes in enumerate(("1K", "1.50K", "1025"))]
    found = read(tmp_path, "\n".join(["JobID|Submit|Elapsed|AllocCPUS|NNodes", *rows]))
    assert gang_nodes(found.jobs).tolist() == [1024, 1536, 1025]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("|16G|", "|much|", "line 2: field ReqMem: 'much' is not a memory such as 4G or 4000Mc"),
        ("mem=16G,node=1", "mem=16X,node=1", "line 2: field ReqTRES: '16X' is not a memory"),
        ("|4|2|16G", "|4|two|16G", "line 2: field NNodes: 'two' is not a whole number"),
        ("|5000|", "|high|", "line 2: field Priority: 'high' is not a whole number"),
        ("gpu=2", "gpu=x", "line 2: field ReqTRES: 'x' is not a whole number"),
    ],
)
def test_wrong_requests(tmp_path: Path, old: str, new: str, why: str) -> None:
    text = "\n".join(ASKING[:2])
    if "ReqMem" in why:
        text = text.replace("mem=16G,node=1", "node=1")
    with pytest.raises(InputError, match=why):
        read(tmp_path, text.replace(old, new, 1))
