"""Small valid files of every kind that Emu reads, from which `benchmarks.hostile` makes hostile ones.

They are made by Emu's own commands, and by taking the first lines of real traces where these are there (`EMU_SHARED`).
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.hostile_logs import make_kubernetes, make_sacct, make_swf
from benchmarks.hostile_tables import make_job_tables
from emu.cli import main as emu

SHARED = Path(os.environ.get("EMU_SHARED", "../shared")) / "traces"
_EVENTS = ("--set", "output.events=all")
_RUN = ("--workload", "poisson", "--nodes", "5", "--set", "workload_options.jobs=40", "--in-process")

RUN_TOML = """
scheduler = ["eagle", "slow"]
workload = "yahoo"
nodes = 50
slots = 2
seed = 3
seeds = 2
load = "80%"
infeasible = "drop"
short_cutoff = "90 s"
long_partition = "90%"
workload_options.jobs = 30
network.delay = "1 ms"
cost = {model = "fixed", per_job = "1 ms"}
constraints.model = "phoenix"
dynamics = {mtbf = "1 d", mttr = "1 h"}
parameters.probe_ratio = 3
[variants.slow]
scheduler = "eagle"
slack = 4
"""
SWEEP_TOML = """
workload = "poisson"
nodes = 20
[workload_options]
jobs = 30

[sweep]
scheduler = ["sparrow", "hawk"]
seed = [1, 2]
load = ["50%", 0.9]
network.delay = ["0.5 ms", "1 ms"]
short_cutoff = "1 s"
"""
COFLOWS = "4 3\n1 0 2 0 1 2 2:3.0 3:1.5\n2 10 1 3 1 0:7\n3 20 3 0 1 2 3 0:1 1:2 2:3\n"


def make_samples(folder: Path) -> None:
    """Write samples: a folder a kind, a file or folder a sample."""
    for kind, make in SAMPLES.items():
        place = folder / kind
        place.mkdir(parents=True)
        with _quiet():
            make(place)


def _done(*argv: object) -> None:
    code = emu([*map(str, argv)])
    if code != 0:
        raise RuntimeError(f"emu {' '.join(map(str, argv))} ended with {code}")


@contextmanager
def _quiet() -> Iterator[None]:
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        yield
    finally:
        sys.stdout = out


def _tr(place: Path) -> None:
    _done("workload", "synth", "yahoo", place / "a.tr", "--set", "jobs=20")
    _done("workload", "synth", "synthetic", place / "b.tr.gz", "--set", "jobs=20")
    _head(SHARED / "YH1_sub.tr", place / "YH1_sub.tr", 20)


def _parquet(place: Path) -> None:
    _done("workload", "synth", "google", place / "jobs", "--set", "jobs=30")
    _done("workload", "constrain", place / "jobs", place / "constrained")
    _done(
        "workload", "synth", "synthetic-coflows", place / "coflows", "--set", "coflows=8", "--set", "ports=6"
    )
    _alibaba(place)
    _done("workload", "convert", place / "alibaba", place / "dags")
    shutil.rmtree(place / "alibaba")
    _done("workload", "synth", "query-dags", place / "demands", "--set", "jobs=4", "--set", "one_to_one=0.5")


def _coflow_benchmark(place: Path) -> None:
    (place / "a.txt").write_text(COFLOWS)
    _head(SHARED / "FB2010-1Hr-150-0.txt", place / "FB2010.txt", 8)
    if (real := place / "FB2010.txt").exists():
        real.write_bytes(b"150 7\n" + real.read_bytes().partition(b"\n")[2])


def _coflowlib(place: Path) -> None:
    flows = "11 0.93087 2 1 4\n12 1.5 2 2 3\n"
    (place / "a.txt").write_text(
        f"0\n2\n\n1 1 0.000 9.5 2\n{flows}\n2 2 0.5 12 1\n21 3 2 2 4\n\n4\n1 1\n2 1\n3 1\n4 1\n"
    )
    if (real := SHARED / "coflowlib" / "off_facebook_m10_c10.zip").exists():
        shutil.copy(real, place)


def _swim(place: Path) -> None:
    rows = (f"job{i}\t{i * 7}\t7\t{i * 10**8}\t{i % 3 * 10**7}\t{10**6 * i}\n" for i in range(1, 20))
    (place / "a.tsv").write_text("".join(rows))
    _head(SHARED / "real/swim/FB-2009_samples_24_times_1hr_0.tsv", place / "FB-2009.tsv", 30)


def _alibaba(place: Path) -> None:
    folder = place / "alibaba"
    folder.mkdir()
    stages = ("M1,3", "R2_1,2", "J3_1_2,1", "task_Nzg4,1")
    (folder / "batch_task.csv").write_text(
        "".join(
            f"{stage},j_{job},1,Terminated,{100 + job},{200 + 9 * job},100.0,0.5\n"
            for job in range(6)
            for stage in stages
        )
    )
    (folder / "machine_meta.csv").write_text(
        "".join(f"m_{i},0,{i % 2},{i % 3},96,100,USING\n" for i in range(6))
    )


def _alibaba_2018(place: Path) -> None:
    _alibaba(place)
    instances = (
        f"ins_{i},M1,j_{job},1,Terminated,{100 + job},{150 + i},m_1,1,1,50,60,1,1\n"
        for job in range(6)
        for i in range(3)
    )
    both = place / "instances"
    shutil.copytree(place / "alibaba", both)
    (both / "batch_instance.csv").write_text("".join(instances))
    _head(SHARED / "real/alibaba-2018/selected_DAGs.csv.gz", place / "real" / "batch_task.csv", 60)


def _google_2011(place: Path) -> None:
    folder = place / "made"
    (folder / "task_events").mkdir(parents=True)
    (folder / "job_events").mkdir()
    rows = [
        f"{600_000_000 + at * 1_000_000 + job},,{job},{task},{7 if at else ''},{kind},user{job % 3},0,0,0.1,0.1,0.1,0\n"
        for job in range(1, 6)
        for task in range(2)
        for at, kind in ((0, 0), (1, 1), (50, 4))
    ]
    (folder / "task_events" / "part-00000-of-00001.csv.gz").write_bytes(gzip.compress("".join(rows).encode()))
    (folder / "job_events" / "part-00000-of-00001.csv").write_text(
        "".join(f"{600_000_000 + j},,{j},0,user{j},0,name{j},logical\n" for j in range(1, 6))
    )
    (folder / "machine_events").mkdir()
    (folder / "machine_events" / "part-00000-of-00001.csv").write_text(
        "".join(f"0,{i},0,HofLGzk1Or,0.5,0.2493\n" for i in range(1, 9))
    )
    (folder / "task_constraints").mkdir()
    (folder / "task_constraints" / "part-00000-of-00001.csv").write_text(
        "600000001,1,0,0,rs,2\n600000002,2,1,3,disk,1\n"
    )
    real = SHARED / "real/google-2011/task_events/part-00000-of-00500.csv.gz"
    if real.exists():
        found = [line.split(b",") for line in gzip.decompress(real.read_bytes()).splitlines(keepends=True)]
        submitted = {row[2] for row in found if row[5] == b"0" and int(row[0]) > 600_000_000}
        finished = {*sorted(submitted & {row[2] for row in found if row[5] == b"4"})[-8:]}
        of_these = [b",".join(row) for row in found if row[2] in finished][:2000]
        (place / "real" / "task_events").mkdir(parents=True)
        (place / "real" / "task_events" / real.with_suffix("").name).write_bytes(b"".join(of_these))


def _google_2019(place: Path) -> None:
    times = ((0, "SUBMIT"), (1, "SCHEDULE"), (50, "FINISH"))
    rows = [
        {"time": 700_000_000 + at * 1_000_000, "type": kind, "collection_id": job, "instance_index": task,
         "collection_type": "JOB", "missing_type": None}
        for job in range(1, 6) for task in range(2) for at, kind in times
    ]  # fmt: skip
    names = [*rows[0]]
    for form in ("parquet", "json", "csv"):
        folder = place / form
        folder.mkdir()
        file = folder / f"instance_events-000000000000.{form}"
        if form == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), file)
        elif form == "json":
            file.write_text("".join(f"{_json(row)}\n" for row in rows))
        else:
            lines = [",".join("" if row[n] is None else str(row[n]) for n in names) for row in rows]
            file.write_text("\n".join([",".join(names), *lines]) + "\n")
    machines = (
        {"time": 0, "machine_id": i, "type": "ADD", "capacity": {"cpus": 0.5, "memory": 0.2}}
        for i in range(5)
    )
    (place / "json" / "machine_events-000000000000.json").write_text(
        "".join(f"{_json(m)}\n" for m in machines)
    )


def _json(row: dict) -> str:
    import json

    return json.dumps(row)


def _tpch(place: Path) -> None:
    for number in (1, 6):
        for stem in ("adj_mat", "task_duration", "stage_id_to_node_idx_map"):
            real = SHARED / "tpch/2g" / f"{stem}_{number}.npy"
            if real.exists():
                (place / "2g").mkdir(exist_ok=True)
                shutil.copyfile(real, place / "2g" / real.name)
    if not (place / "2g").exists():
        (place / "2g").mkdir()
        np.save(place / "2g" / "adj_mat_1.npy", np.zeros((2, 2)))
        waves = {wave: {50: [100.0, 200.0]} for wave in ("first_wave", "rest_wave", "fresh_durations")}
        np.save(
            place / "2g" / "task_duration_1.npy",
            np.array({0: waves, 1: waves}, dtype=object),
            allow_pickle=True,
        )


def _dag_text(place: Path) -> None:
    _done("workload", "convert", "query-dags", place / "a.txt", "--to", "dag-text", "--set", "jobs=4")
    (place / "b.txt").write_text("2 7 1.5 q\na 3 0.1 0.2 0 0 0 0 2\nb 3 0.1 0.2 0 0 0 0 2\n1\na b o2o\n")


def _wfcommons(place: Path) -> None:
    ids = ["split", "map_1", "map_2", "join"]
    parents = [[], ["split"], ["split"], ["map_1", "map_2"]]
    children = [["map_1", "map_2"], ["join"], ["join"], []]
    run = {"runtimeInSeconds": 1.5, "coreCount": 2, "memoryInBytes": 500, "readBytes": 7, "machines": ["m"]}
    structure = [
        {"name": i, "id": i, "parents": p, "children": c}
        for i, p, c in zip(ids, parents, children, strict=True)
    ]
    machines = [{"nodeName": "m", "memoryInBytes": 1000}]
    old = {"tasks": [{**task, **run, "machine": "m"} for task in structure], "machines": machines}
    runs = [{"id": i, "command": {"program": i[:3]}, **run} for i in ids]
    new = {"specification": {"tasks": structure}, "execution": {"tasks": runs, "machines": machines}}
    (place / "folder").mkdir()
    for path, version, workflow in (
        (place / "a.json", "1.5", new),
        (place / "folder" / "b.json", "1.4", old),
    ):
        path.write_text(_json({"name": "wf", "schemaVersion": version, "workflow": workflow}))


def _cluster(place: Path) -> None:
    (place / "a.toml").write_text(
        'description = "two generations"\nrack_size = 4\norder = "racks"\n\n[[machines]]\ntype = "old"\ncount = 6\n'
        'slots = 4\nmemory = "16 GiB"\nport = "1 Gbps"\nclock = "2.4 GHz"\nkernel = "3.10"\ntags = ["ssd"]\n'
        '"attr:l" = 8\n\n'
        '[[machines]]\ntype = "new"\ncount = 4\ncores = 8\nisa = "arm"\n'
    )
    nodes = {"node_id": range(8), "slots": [2] * 8, "rack": [i // 4 for i in range(8)], "isa": ["x86"] * 8,
             "attr:x": ["a", None] * 4, "clock_hz": [2e9] * 8}  # fmt: skip
    pq.write_table(
        pa.table({name: pa.array([*values]) for name, values in nodes.items()}), place / "nodes.parquet"
    )
    (place / "machine_meta.csv").write_text(
        "".join(f"m_{i},0,{i % 2},{i % 3},96,100,USING\n" for i in range(6))
    )
    (place / "machine_events").mkdir()
    (place / "machine_events" / "part-00000-of-00001.csv").write_text(
        "".join(f"0,{i},0,HofLGzk1Or,0.5,0.2493\n" for i in range(1, 9))
    )


def _beside(place: Path) -> None:
    """Files that a configuration names: failures, updates of coflows, recorded costs."""
    jobs, coflows = (
        'scheduler = "sparrow"\nworkload = "poisson"\nnodes = 5\n',
        'scheduler = "aalo"\nworkload = "w.txt"\n',
    )
    options = "[workload_options]\njobs = 20\n"
    failures = "target,fail_s,repair_s\nnode 1,2,3\n2,5,\nscheduler 0,1,4\n"
    updates = (
        "time_s,coflow_id,update,side,port,to\n"
        "0.001,1,restart,receiver,2,\n0.002,1,move,sender,0,3\n0.03,3,deregister,,,\n"
    )
    for name, text, files in (
        ("failures", f'{jobs}{options}[dynamics]\nfailures = "./f.csv"\n', {"f.csv": failures}),
        ("updates", f'{coflows}[fabric]\nupdates = "./u.csv"\n', {"u.csv": updates, "w.txt": COFLOWS}),
    ):
        folder = place / name
        folder.mkdir()
        (folder / "c.toml").write_text(text)
        for file, content in files.items():
            (folder / file).write_text(content)
    folder = place / "costs"
    _done("run", "--scheduler", "central-fifo", *_RUN, "--set", "cost.model=measured", "--out", folder)
    kept = {"cost.parquet", "costs.parquet", "scheduler_costs.parquet"}
    for file in [*folder.iterdir()]:
        if file.name not in kept:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    table = next(iter(folder.iterdir())).name
    (folder / "c.toml").write_text(
        f'scheduler = "central-fifo"\nworkload = "poisson"\nnodes = 5\n[cost]\nmodel = "recorded"\nfile = "./{table}"\n'
        "[workload_options]\njobs = 40\n"
    )


def _config(place: Path) -> None:
    (place / "run.toml").write_text(RUN_TOML)
    (place / "coflows.toml").write_text(
        'scheduler = ["philae", "aalo"]\nworkload = "synthetic-coflows"\nseed = 2\n[workload_options]\ncoflows = 5\n'
        "ports = 6\n"
    )


def _sweep(place: Path) -> None:
    (place / "sweep.toml").write_text(SWEEP_TOML)


def _run_directory(place: Path) -> None:
    _done("run", "--scheduler", "sparrow", *_RUN, "--set", "output.tasks=true", "--out", place / "run")
    _done("compare", "--schedulers", "sparrow,central-fifo", *_RUN, "--out", place / "compare")


def _recorded_directory(place: Path) -> None:
    _done(
        "run", "--scheduler", "sparrow", *_RUN, "--set", "output.tasks=true", *_EVENTS, "--out", place / "run"
    )


def _checkpoint(place: Path) -> None:
    """Runs that were interrupted after a few thousand events; one records them."""
    from actors.hosting.partition import Partition, Progress

    run, step, calls = Partition.run, Partition._step, []

    def interrupted(self: Partition, _: float) -> Progress:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, 0.0)

    def short(self: Partition, until: int, *_: object) -> bool:
        return step(self, until, np.int64(500))

    Partition.run, Partition._step = interrupted, short  # type: ignore[method-assign, assignment]
    often = ("--set", "workload_options.jobs=400", "--set", "checkpoint.period=0.001 ms")
    try:
        emu(["run", "--scheduler", "sparrow", *_RUN, *often, "--out", str(place / "run")])
        calls.clear()
        emu(["run", "--scheduler", "sparrow", *_RUN, *often, *_EVENTS, "--out", str(place / "recorded")])
    finally:
        Partition.run, Partition._step = run, step  # type: ignore[method-assign]
    if not [*place.rglob("*.npz")]:
        raise RuntimeError("no checkpoint was written")


def _head(real: Path, to: Path, lines: int) -> None:
    """Write the first lines of a real trace, if it is there."""
    if not real.exists():
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    data = gzip.decompress(real.read_bytes()) if real.suffix == ".gz" else real.read_bytes()
    to.write_bytes(b"".join(data.splitlines(keepends=True)[:lines]))


SAMPLES: dict[str, Callable[[Path], None]] = {
    "tr": _tr, "parquet": _parquet, "google-2011": _google_2011, "google-2019": _google_2019,
    "alibaba-2018": _alibaba_2018, "tpch": _tpch, "coflowlib": _coflowlib, "coflow-benchmark": _coflow_benchmark,
    "swim": _swim, "dag-text": _dag_text, "wfcommons": _wfcommons, "swf": make_swf, "sacct": make_sacct,
    "kubernetes": make_kubernetes, "job-table": make_job_tables, "cluster": _cluster, "beside": _beside,
    "config": _config, "sweep": _sweep, "run-directory": _run_directory, "recorded-directory": _recorded_directory,
    "checkpoint": _checkpoint,
}  # fmt: skip
