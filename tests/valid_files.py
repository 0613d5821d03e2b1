"""Small valid files of every kind that Emu reads, by format. `tests/mutations.py` changes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.clusters.cluster_files import EVERYTHING
from tests.workloads.alibaba_files import INSTANCES_A, JOB_A, MACHINES
from tests.workloads.family_examples import coflows_of, dags_of
from tests.workloads.google_2019_rows import write_cell
from tests.workloads.readers.test_tpch import save
from workloads.catalogue import save_workload
from workloads.jobs import make_workload

Fields = list[str]


def _all(line: int, fields: Fields) -> list[int]:
    return [*range(len(fields))]


def _none(line: int, fields: Fields) -> list[int]:
    return []


def _first(*columns: int) -> Callable[[int, Fields], list[int]]:
    return lambda line, fields: [*columns]


def _of_dags(line: int, fields: Fields) -> list[int]:
    """Of a line with a stage all but its name; none in a comment or an edge; else of all."""
    if fields[0] == "#" or fields[-1] in ("ata", "o2o"):
        return []
    return [*range(1, len(fields))] if fields[0].startswith("s") else [*range(min(len(fields), 3))]


def _any_number(line: int, fields: Fields) -> bool:
    return False


@dataclass(frozen=True)
class Form:
    """A format: its files, and what its first file cannot be without.

    Attributes
    ----------
    files : dict
        Texts, or the columns of a table, by name.
    separator : str
        Between the fields of a line of the first file; empty where it has no such lines.
    numbers : callable
        ``numbers(line, fields)``: the fields in which a number is needed, and none of which may be missing.
    counted : callable
        Whether a line must have as many fields as it has.
    one_more : int
        How many fields more make a line wrong.
    slow : bool
        Whether a database reads it, which takes a tenth of a second.
    """

    files: dict[str, str | dict]
    separator: str = ""
    numbers: Callable[[int, Fields], list[int]] = _none
    counted: Callable[[int, Fields], bool] = lambda line, fields: True
    one_more: int = 1
    slow: bool = False


BENCHMARK = "4 2\n7 0 2 3 1 2 0:4.0 1:1.0\n9 1500 1 2 1 2:0.5\n"
COFLOWLIB = """\
0
2

5 2 0.046 2.27387 1
51 1.12067 2 2 3

6 1 0.049 2.72733 2
61 1.12242 2 1 4
62 0.93087 2 1 4

4
1 1
2 2
3 1
4 0.5
"""
DAG_TEXT = """\
# q
3 7 2.5 etl
s1 10 0.05 0.1 0 0.25 0.2 0.3 5
s2 4.5 0.1 0.1 0.25 0 0.2 0.3 5
s3 2 1 0.1 0 0 0.2 0.3 1
2
s1 s2 o2o
s2 s3 ata

1
s 1 0 0 0 0 0 0 1
0
"""
SWF = """\
; MaxProcs: 16
1 20 0 1200 1 -1 -1 1 1200 -1 1 1 1 1 1 1 -1 -1
2 20 0 2100 5 -1 -1 5 2100 -1 1 1 1 1 1 1 1 0
7 30 0 60 2 -1 -1 2 60 -1 1 1 1 1 1 1 -1 -1
4 25 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 99 -1
"""
SACCT = """\
JobID|User|Submit|Start|End|Elapsed|AllocCPUS|State
5|ada|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:50|00:01:40|4|NODE_FAIL
5|ada|2026-01-01T00:01:50|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|4|COMPLETED
8_1|bob|2026-01-01T00:01:00|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|1|REQUEUED
8_2|bob|2026-01-01T00:01:00|2026-01-01T00:02:00|2026-01-01T00:05:20|00:03:20|1|COMPLETED
"""
JOB_TABLE = (
    "when,took,who,parts\n2026-03-01T00:00:10,4000,ada,1\n2026-03-01,1500,bob,2\n2026-03-01,700,eve,1\n"
)
JOB_TABLE_OPTIONS = {"arrival": "when", "duration": "took", "user": "who", "unit": "ms", "tasks": "parts"}
SHARD = """\
600000000,,3418309,0,4155527081,0,u=,3,9,0.125,0.07446,0.0004244,0
601000000,,3418309,0,329150663,1,u=,3,9,,,,
605500000,2,3418309,0,329150663,4,u=,3,9,0.125,0.07446,0.0004244,0
"""
TASKS_2017 = "59581,59592,12702,79304,3,Terminated,100,0.0054\n10000,10050,4,11,2,Terminated,50,0.0207\n"
INSTANCES_2017 = """\
59581,59592,12702,79304,446,Terminated,1,1,1.01,0.12,0.035,0.031
10020,10050,4,11,2,Terminated,2,2,0.5,0.5,0.01,0.01
"""
MACHINES_2017 = (
    "0,1148,add,,64,0.690006,1.0\n0,20,add,,32,0.345003,1.0\n40000,1148,softerror,agent_check,,,\n"
)
EVENTS = "0,20,0,HofL,0.5,0.25\n0,3,0,GtXa,1,1\n0,100,0,HofL,,\n600000001,8,0,HofL,1,1\n0,6,0,HofL=,,\n"
POD = {
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "lab", "uid": "a", "creationTimestamp": "2026-03-01T00:00:05Z"},
    "spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}]},
    "status": {
        "phase": "Succeeded",
        "containerStatuses": [
            {
                "state": {
                    "terminated": {
                        "startedAt": "2026-03-01T00:00:10Z",
                        "finishedAt": "2026-03-01T00:00:40Z",
                    }
                }
            }
        ],
    },
}
INSTANCE = {
    "name": "wf",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "parents": [], "children": ["b"], "outputFiles": ["f"]},
                {"name": "b", "id": "b", "parents": ["a"], "children": [], "inputFiles": ["f"]},
            ],
            "files": [{"id": "f", "sizeInBytes": 5}],
        },
        "execution": {
            "makespanInSeconds": 9,
            "executedAt": "2020",
            "tasks": [
                {"id": "a", "runtimeInSeconds": 7.0, "coreCount": 2, "machines": ["m"], "memoryInBytes": 5},
                {"id": "b", "runtimeInSeconds": 1.5, "readBytes": 300, "command": {"program": "b"}},
            ],
            "machines": [{"nodeName": "m", "memoryInBytes": 1000, "cpu": {"coreCount": 8}}],
        },
    },
}
_ON_JOBS = 'scheduler = "sparrow"\nworkload = "poisson"\nnodes = 20\nworkload_options.jobs = 20\n'
_ON_COFLOWS = 'scheduler = "aalo"\nworkload = "./a.txt"\nfabric.updates = "./u.csv"\n'
_UPDATES = """\
time_s,coflow_id,update,side,port,to
0.001,7,restart,receiver,1,
1.6,9,move,sender,2,3
1.7,9,deregister,,,
"""
_CONFIGURATION = """
scheduler = ["eagle", "slow"]
workload = "yahoo"
nodes = 50
slots = 2
seeds = 2
load = "80%"
infeasible = "drop"
short_cutoff = "90 s"
workload_options.jobs = 30
network.delay = "1 ms"
cost = {model = "fixed", per_job = "1 ms"}
constraints.model = "phoenix"
dynamics = {mtbf = "1 d", mttr = "1 h"}
[variants.slow]
scheduler = "eagle"
slack = 4
"""
_SWEEP = """
workload = "poisson"
nodes = 20
short_cutoff = "1 s"
workload_options.jobs = 30
[sweep]
scheduler = ["sparrow", "hawk"]
seed = [1, 2]
load = ["50%", 0.9]
network.delay = ["0.5 ms", "1 ms"]
"""
_FAILURES = "target,fail_s,repair_s\nnode 17,120,3720\n3,0.5,\nscheduler 2, 600 ,900\n\nCentral,1000,1060\n"
_SWIM = "".join(f"job{i}\t{7 * i}\t7\t{i}0000000\t{i % 3}0000000\t1000\n" for i in range(9))
_NODES = {"node_id": [0, 1], "slots": [2, 3], "isa": ["x86", "arm"], "attr:x": ["a", None]}

FORMS: dict[str, Form] = {
    "tr": Form({"a.tr": "2.5 3 4.0 2 4 6\n7.25 1 90 90\n8 2 1.5 1 2\n"}, " ", _all),
    "coflow-benchmark": Form({"a.txt": BENCHMARK}, " ", _all),
    "coflowlib": Form({"a.txt": COFLOWLIB}, " ", _all),
    "dag-text": Form({"a.txt": DAG_TEXT}, " ", _of_dags, lambda line, fields: fields[0].startswith("s")),
    "swim": Form({"a.tsv": _SWIM}, "\t", _first(1, 3, 4, 5), one_more=3),
    "swf": Form({"a.swf": SWF}, " ", lambda line, fields: [0, 1, 3, 4, 7] if line else [], _any_number),
    "sacct": Form({"a.txt": SACCT}, "|", lambda line, fields: [6] if line else [], _any_number),
    "job-table": Form({"a.csv": JOB_TABLE}),
    "wfcommons": Form({"a.json": json.dumps(INSTANCE, indent=1)}),
    "kubernetes": Form({"a.json": json.dumps({"apiVersion": "v1", "items": [POD], "kind": "List"}, indent=1)}),
    "google-2011": Form(
        {"task_events/part-00000-of-00500.csv": SHARD}, ",", _first(0, 2, 3, 5), slow=True
    ),
    "alibaba-2018": Form(
        {"batch_task.csv": JOB_A, "batch_instance.csv": INSTANCES_A}, ",", _first(1, 5, 6), slow=True
    ),
    "alibaba-2017": Form(
        {"batch_task.csv": TASKS_2017, "batch_instance.csv": INSTANCES_2017, "server_event.csv": MACHINES_2017},
        ",", _first(0, 1, 2, 3, 4), slow=True,
    ),
    "cluster": Form({"a.toml": EVERYTHING}),
    "cluster table": Form({"a.parquet": _NODES}),
    "cluster of Alibaba": Form({"machine_meta.csv": MACHINES}, slow=True),
    "cluster of Google": Form({"machine_events/part-00000-of-00001.csv": EVENTS}, slow=True),
    "configuration": Form({"c.toml": _CONFIGURATION}),
    "sweep": Form({"c.toml": _SWEEP}),
    "failures": Form({"c.toml": f'{_ON_JOBS}dynamics.failures = "./f.csv"\n', "f.csv": _FAILURES}),
    "updates": Form({"c.toml": _ON_COFLOWS, "a.txt": BENCHMARK, "u.csv": _UPDATES}),
    "costs": Form({
        "c.toml": f'{_ON_JOBS}cost = {{model = "recorded", file = "./a.parquet"}}\n',
        "a.parquet": {"scheduler": [0, 0, 0], "cost_ns": [5, 7, 9]},
    }),
    # Those that Emu writes.
    "jobs": Form({}), "dags": Form({}), "coflows": Form({}), "tpch": Form({}),
    "google-2019 json": Form({}, slow=True), "google-2019 csv.gz": Form({}, slow=True),
    "google-2019 parquet": Form({}, slow=True),
}  # fmt: skip
"""By format; those without files here are what `write_valid` makes."""


def write_valid(kind: str, folder: Path) -> Path:
    """Write the files of a format into a new folder and return it."""
    folder.mkdir(parents=True)
    for name, content in FORMS[kind].files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content)
        else:
            pq.write_table(pa.table(content), path)
    flows = {(0, 1): 1e6, (2, 1): 5e6}
    if kind == "jobs":
        save_workload(make_workload("w", [0, 1], [1, 2], [3.0, 4, 5], short_cutoff_s=10), folder)
    elif kind == "dags":
        save_workload(dags_of([(0, [[1, 2], [3]], [(0, 1)], "a"), (2, [[4]], [], None)]), folder)
    elif kind == "coflows":
        save_workload(coflows_of([(0, None, flows), (3, 9, flows)], 3, 1e8), folder)
    elif kind == "tpch":
        waves = {name: {50: [1000.0, 2000.0]} for name in ("first_wave", "rest_wave", "fresh_durations")}
        save(folder, profile={0: waves, 1: waves})
    elif kind.startswith("google-2019"):
        write_cell(folder, kind.split()[1])
    return folder


def target(folder: Path) -> Path:
    """Return what a user gives of a folder: its file, if there is one alone, else the folder."""
    files = list(folder.iterdir())
    return files[0] if len(files) == 1 and files[0].is_file() else folder
