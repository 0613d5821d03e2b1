"""Alibaba's cluster trace of 2017, by rows in the published form: the first job's are of the trace itself."""

import gzip

import pytest

from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.readers.alibaba_2017 import convert_alibaba_2017, read_alibaba_2017
from workloads.readers.report import Report

# Job 12702 has a task of three instances (29 in the trace). Job 4 has two tasks that need other things, and the second
# of them also a row of a try that failed. Job 5 failed, 6 began before the trace, 7 was running when it ended.
TASKS = """\
59581,59592,12702,79304,3,Terminated,100,0.005404705821447985
10000,10050,4,11,2,Terminated,50,0.0207
10000,10020,4,12,1,Failed,200,0.0138
10010,10100,4,12,1,Terminated,200,0.0138
20000,20010,5,13,1,Failed,100,0.01
0,20010,6,14,1,Terminated,100,0.01
85000,0,7,15,1,Running,100,0.01
"""
INSTANCES = """\
59581,59592,12702,79304,446,Terminated,1,1,1.01,0.12,0.035296249320529084,0.03176558900421919
59581,59591,12702,79304,928,Terminated,1,1,1.14,0.13,0.035296249320529084,0.03171381979137007
59582,59592,12702,79304,724,Terminated,1,1,0.87,0.09,0.026573136955452593,0.022990707426293583
10000,10020,4,11,1,Failed,1,2,,,,
10020,10050,4,11,2,Terminated,2,2,0.5,0.5,0.01,0.01
10000,10040,4,11,3,Terminated,1,1,0.5,0.5,0.01,0.01
10040,10035,4,11,3,Terminated,1,1,0.5,0.5,0.01,0.01
-20,10040,4,11,3,Terminated,1,1,0.5,0.5,0.01,0.01
60000,60100,,,3,Terminated,1,1,0.5,0.5,0.01,0.01
0,0,4,12,,Waiting,0,0,,,,
20000,20010,5,13,4,Failed,1,1,,,,
"""
MACHINES = """\
0,1148,add,,64,0.690006,1.0
0,1,add,,64,0.68997,1.0
0,20,add,,32,0.345003,1.0
40000,1,softerror,agent_check,,,
50000,20,harderror,disk,32,0.3,1
"""


def folder_of(path, tasks=TASKS, instances=None, machines=None):
    path.mkdir(exist_ok=True)
    for name, text in (("batch_task", tasks), ("batch_instance", instances), ("server_event", machines)):
        if text is not None:
            (path / f"{name}.csv").write_text(text)
    return path


def test_jobs_tasks_and_demands_by_hand(tmp_path):
    report = Report()
    workload = read_alibaba_2017(folder_of(tmp_path / "in", TASKS, INSTANCES, MACHINES), report=report)
    assert workload.jobs["job_id"].to_pylist() == [4, 12702]
    assert workload.jobs["submit_s"].to_pylist() == [10000, 59581]
    assert workload.jobs["num_tasks"].to_pylist() == [4, 3]
    # Task 12 of job 4 has no instances that ran: one of 90 s. Of task 11 one took no time, by its times.
    assert workload.tasks["duration_s"].to_pylist() == [40, 30, 0, 90, 10, 11, 10]
    assert workload.jobs["mean_task_s"].to_pylist() == pytest.approx([40, 31 / 3])
    assert workload.jobs["cpu_cores"].to_pylist() == [None, 1]
    assert workload.tasks["cpu_cores"].to_pylist() == [0.5, 0.5, 0.5, 2, None, None, None]
    assert workload.jobs["memory"].to_pylist() == [None, pytest.approx(0.005404705821447985 / 0.690006)]
    shares = [0.0207 / 0.690006] * 3 + [0.0138 / 0.690006]
    assert workload.tasks["memory"].to_pylist()[:4] == pytest.approx(shares)
    assert report.lines() == [
        "read 7 rows of batch_task",
        "read 5 rows of server_event",
        "read 3 machines, the nodes of cluster.parquet",
        "read 3 stages kept",
        "read 11 rows of batch_instance",
        "read 7 tasks kept",
        "repaired 7: plans of CPU, of median 100: taken as hundredths",
        "repaired 1: attempts of instances that end before they start: taken as 0 s long",
        "repaired 1: stages whose instances are not instance_num: the instances taken",
        "repaired 1: stages without instances in batch_instance: instance_num of them, as long as the stage",
        "dropped 2: events of errors of machines: a cluster does not change",
        "dropped 3: jobs without a whole set of stages",
        "dropped 1: rows of batch_task for a stage that has another row",
        "dropped 1: stages that are failed",
        "dropped 1: stages that are running",
        "dropped 1: stages that start or end outside the trace",
        "dropped 1: attempts of instances outside the trace",
        "dropped 2: attempts of instances that are failed",
        "dropped 1: attempts of instances that are waiting",
        "dropped 1: attempts of instances without a job or a stage",
    ]


def test_without_instances_they_last_as_long_as_their_task(tmp_path):
    workload = read_alibaba_2017(folder_of(tmp_path / "in"))
    assert workload.tasks["duration_s"].to_pylist() == [50, 50, 90, 11, 11, 11]
    assert workload.jobs["memory"].to_pylist()[1] == pytest.approx(0.005404705821447985)
    assert any(
        "plans of memory without machines: taken as shares of the largest" in n for n in workload.notes
    )
    more = read_alibaba_2017(
        folder_of(tmp_path / "in", TASKS + "20000,20010,5,16,1,Terminated,,\n"), unfinished="task"
    )
    assert more.jobs["job_id"].to_pylist() == [4, 5, 12702]
    assert more.jobs["cpu_cores"].to_pylist() == [None, None, 1]


def test_the_unit_of_plans_is_found_or_given(tmp_path):
    text = "10,20,1,1,1,Terminated,0.5,0.1\n10,20,1,2,1,Terminated,2,0.1\n10,20,2,3,1,Terminated,1,-1\n"
    source = folder_of(tmp_path / "in", text)
    for unit in ("auto", "cores"):
        workload = read_alibaba_2017(source, plan_cpu=unit)
        assert workload.tasks["cpu_cores"].to_pylist() == [0.5, 2, None]
        assert workload.jobs["cpu_cores"].to_pylist() == [None, 1]
        assert workload.jobs["memory"].to_pylist() == [0.1, None]
    assert read_alibaba_2017(source, plan_cpu="hundredths").tasks["cpu_cores"].to_pylist()[:2] == [
        0.005,
        0.02,
    ]


def test_it_is_known_by_its_columns_and_not_taken_for_2018(tmp_path):
    want = read_alibaba_2017(folder_of(tmp_path / "in", TASKS, INSTANCES, MACHINES)).fingerprint()
    assert recognise(tmp_path / "in") == "alibaba-2017"
    assert load_workload(tmp_path / "in").fingerprint() == want
    assert load_workload(tmp_path / "in" / "batch_task.csv").num_tasks == 6
    header = "create_timestamp,modify_timestamp,job_id,task_id,instance_num,status,plan_cpu,plan_mem\n"
    headed = header + TASKS.replace("12702", "12702.0").replace("79304", "79304.0")
    other = folder_of(tmp_path / "other", None, INSTANCES, MACHINES)
    (other / "my tasks.csv.gz").write_bytes(gzip.compress(headed.encode()))
    assert recognise(other) == "alibaba-2017"
    with pytest.raises(
        InputError, match=r"this is batch_task of Alibaba's cluster trace of 2017; want batch_task of"
    ):
        load_workload(tmp_path / "in", format="alibaba-2018")


def test_its_machines_are_a_cluster(tmp_path):
    source = folder_of(tmp_path / "in", TASKS, machines=MACHINES)
    for path in (source, source / "server_event.csv"):
        cluster = load_cluster(path)  # 1, 20, 1148
        assert cluster.attribute("slots").tolist() == [64, 32, 64]
        assert cluster.attribute("cores").tolist() == [64, 32, 64]
        gib = cluster.attribute("memory") / (1 << 30)
        assert gib.tolist() == pytest.approx([256 * 0.68997 / 0.690006, 256 * 0.345003 / 0.690006, 256])
        assert "dropped 2: events of errors of machines: a cluster does not change" in cluster.notes


def test_the_largest_machine_has_all_of_the_memory(tmp_path):
    tasks = TASKS.replace("0.0138", "0.69")  # 100 * 0.69 / 0.69 is above 100 in floating point
    workload = read_alibaba_2017(folder_of(tmp_path / "in", tasks, machines="0,1,add,,64,0.69,1.0\n"))
    assert max(filter(None, workload.tasks["memory"].to_pylist())) == 1.0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,3,4,1,Terminated,x,1", "line 8: field plan_cpu: 'x' is not a number"),
        ("1,2,j_3,4,1,Terminated,1,1", "line 8: field job_id: 'j_3' is not a whole number"),
        ("1,2,3,4.5,1,Terminated,1,1", "line 8: field task_id: '4.5' is not a whole number"),
        ("1,2,3,4,1.5,Terminated,1,1", "line 8: field instance_num: '1.5'; want a whole number"),
        (
            "1,5000000000,3,4,1,Terminated,1,1",
            "line 8: field modify_timestamp: '5000000000'; are the times in",
        ),
        (
            "1,2,3,4,1,Terminated,1",
            "line 8: field plan_mem: the line ends after 7 of 8 fields; want create_timestamp",
        ),
    ],
)
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, row, message):
    source = folder_of(tmp_path / "in", TASKS + row + "\n")
    with pytest.raises(InputError) as caught:
        convert_alibaba_2017(source, tmp_path / "out")
    assert str(caught.value).startswith(f"{source / 'batch_task.csv'}: {message}")


def test_what_is_missing_is_named(tmp_path):
    source = folder_of(tmp_path / "in")
    with pytest.raises(InputError, match=r"holds no batch_instance\.csv"):
        convert_alibaba_2017(source, tmp_path / "out", instances=True)
    folder_of(source, "1,2,3,4,1,Failed,1,1\n")
    with pytest.raises(InputError, match="no job of batch_task is complete"):
        convert_alibaba_2017(source, tmp_path / "out")
