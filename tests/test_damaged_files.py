"""Damaged files of every kind that Emu reads: the command that reads one ends, or refuses it with one line.

`pytest tests/test_damaged_files.py --hypothesis-profile=search` looks for files for which this does not hold.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.cli import main
from tests.clusters.cluster_files import EVERYTHING
from tests.clusters.test_failures import GOOD, HEADER
from tests.clusters.test_trace_machines import EVENTS
from tests.damages import damage
from tests.workloads.alibaba_files import INSTANCES_A, JOB_A, MACHINES
from tests.workloads.family_examples import coflows_of, dags_of
from tests.workloads.google_2019_rows import write_cell
from tests.workloads.readers import (
    test_alibaba_2017,
    test_coflow_benchmark,
    test_coflowlib,
    test_dag_text,
    test_job_table,
    test_kubernetes,
    test_sacct,
    test_swf,
    test_tpch,
    test_wfcommons,
)  # fmt: skip
from tests.workloads.table_mutations import SHARD
from workloads import limits
from workloads.catalogue import save_workload
from workloads.jobs import make_workload

FREE_BYTES = 20_000_000
"""What readers take for the free memory: then a file can state no more than 200,000 tasks, which take little time."""
EXAMPLES = settings().max_examples // 5
"""Of each kind: 10 in the suite, more where they are searched for."""
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e]")
"""Characters that act on a terminal."""
COFLOWS = test_coflow_benchmark.SMALL.decode()
ON_JOBS = 'scheduler = "sparrow"\nworkload = "poisson"\nnodes = 20\nworkload_options.jobs = 20\n'
ON_COFLOWS = 'scheduler = "aalo"\nworkload = "./a.txt"\nfabric.updates = "./u.csv"\n'
UPDATES = """\
time_s,coflow_id,update,side,port,to
0.001,7,restart,receiver,1,
1.6,9,move,sender,2,3
1.7,9,deregister,,,
"""
CONFIGURATION = """
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
SWEEP = """
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

SWIM = "".join(f"job{i}\t{7 * i}\t7\t{i}0000000\t{i % 3}0000000\t1000\n" for i in range(9))
PODS = json.dumps(test_kubernetes.listed(test_kubernetes.GOOD, test_kubernetes.JOB), indent=1)
NODES = {"node_id": [0, 1], "slots": [2, 3], "isa": ["x86", "arm"], "attr:x": ["a", None]}
COSTS = {"scheduler": [0, 0, 0], "cost_ns": [5, 7, 9]}
FILES: dict[str, dict[str, str | dict]] = {
    "tr": {"a.tr": "2.5 3 4.0 2 4 6\n7.25 1 90 90\n"},
    "coflow-benchmark": {"a.txt": COFLOWS},
    "coflowlib": {"a.txt": test_coflowlib.SMALL},
    "dag-text": {"a.txt": test_dag_text.SMALL},
    "swim": {"a.tsv": SWIM},
    "wfcommons": {"a.json": json.dumps(test_wfcommons.sample())},
    "swf": {"a.swf": "; MaxProcs: 16\n" + "\n".join(test_swf.CHAINS)},
    "sacct": {"a.txt": f"{test_sacct.HEAD}\n{test_sacct.RAN_AGAIN}\n"},
    "kubernetes": {"a.json": PODS},
    "job-table": {"a.csv": test_job_table.TABLE},
    "google-2011": {"task_events/part-00000-of-00500.csv": SHARD},
    "alibaba-2018": {"batch_task.csv": JOB_A, "batch_instance.csv": INSTANCES_A},
    "alibaba-2017": {
        "batch_task.csv": test_alibaba_2017.TASKS,
        "batch_instance.csv": test_alibaba_2017.INSTANCES,
        "server_event.csv": test_alibaba_2017.MACHINES,
    },
    "cluster": {"a.toml": EVERYTHING},
    "cluster table": {"a.parquet": NODES},
    "cluster of Alibaba": {"machine_meta.csv": MACHINES},
    "cluster of Google": {"machine_events/part-00000-of-00001.csv": EVENTS},
    "configuration": {"c.toml": CONFIGURATION},
    "sweep": {"c.toml": SWEEP},
    "failures": {"c.toml": f'{ON_JOBS}dynamics.failures = "./f.csv"\n', "f.csv": HEADER + GOOD},
    "updates": {"c.toml": ON_COFLOWS, "a.txt": COFLOWS, "u.csv": UPDATES},
    "costs": {
        "c.toml": f'{ON_JOBS}cost = {{model = "recorded", file = "./a.parquet"}}\n',
        "a.parquet": COSTS,
    },
}
"""Small valid files of each kind, texts or the columns of tables; `samples` adds those that Emu and NumPy write."""
WRITTEN = ("jobs", "dags", "coflows", "tpch", "google-2019 json", "google-2019 csv.gz", "google-2019 parquet")
JOB_TABLE = ("--from", "job-table", *(f"--set={k}={v}" for k, v in test_job_table.COLUMNS.items()))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder of valid files for each kind."""
    folder = tmp_path_factory.mktemp("samples")
    for kind, files in FILES.items():
        for name, content in files.items():
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_text(content)
            else:
                pq.write_table(pa.table(content), path)
    save_workload(make_workload("w", [0, 1], [1, 2], [3.0, 4, 5], short_cutoff_s=10), folder / "jobs")
    save_workload(dags_of([(0, [[1, 2], [3]], [(0, 1)], "a"), (2, [[4]], [], None)]), folder / "dags")
    flows = {(0, 1): 1e6, (2, 1): 5e6}
    save_workload(coflows_of([(0, None, flows), (3, 9, flows)], 3, 1e8), folder / "coflows")
    test_tpch.save(folder / "tpch")
    for kind in WRITTEN[4:]:
        write_cell(folder / kind, kind.split()[1])
    return folder


def command(kind: str, folder: Path) -> list[str]:
    """The command that reads files of a kind."""
    if (folder / "c.toml").exists():
        return [*(("sweep", "--dry-run") if kind == "sweep" else ("validate",)), str(folder / "c.toml")]
    files = list(folder.iterdir())
    path = str(files[0] if len(files) == 1 and files[0].is_file() else folder)
    what = "cluster" if kind.startswith("cluster") else "workload"
    return [what, "info", path, *(JOB_TABLE if kind == "job-table" else ())]


@pytest.mark.parametrize("kind", [*FILES, *WRITTEN])
def test_valid_files_are_read(kind: str, samples: Path) -> None:
    """Or what is made of them would test one error alone."""
    assert main(command(kind, samples / kind)) == 0


@pytest.mark.parametrize("kind", [*FILES, *WRITTEN])
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_with_one_line(
    kind: str,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    monkeypatch.setattr(limits, "free_bytes", lambda: FREE_BYTES)
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(samples / kind, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    damage(data.draw, data.draw(st.sampled_from(files)))
    capsys.readouterr()
    code = main([*command(kind, folder), "--debug"])
    printed = capsys.readouterr()
    errors = [line for line in printed.err.splitlines() if not line.startswith("emu: note: ")]
    assert code in (0, 2), printed.err
    assert len(errors) == (code == 2), printed.err
    assert not ACTS.search(printed.out + printed.err)
