"""Alibaba's cluster trace of 2017, by rows in the published form: the first job's are of the trace itself."""

import gzip

import pytest

from clusters.cluster import load_cluster
from workloads.catalogue import load_workload
from workloads.errors import InputError
from workloads.formats import recognise
from workloads.readers.alibaba_2017 import read_alibaba_2017

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
