"""Whether two commits, or two clocks, compute the same: the bytes of what runs of many settings write.

    python -m benchmarks.same_bytes --before ../checkout-of-the-other-commit [--after .] [--schedulers a,b]
    python -m benchmarks.same_bytes --partitions 2,3,4,5,6 [--schedulers a,b]

With `--partitions` each setting runs in one process, and under `windows` in Ray actors, in as many partitions as is
the turn of.

Every scheduler runs with its defaults, with other parameters, on a hard network, with failures and stragglers, with
schedulers that take time, under `virtual` and `windows`, on small workloads. Compared are the sha256 of the rows of
each result table, without the words that describe its columns, and of the summary without its wall times. The runs go
through the command line, so that the two commits need nothing else in common.

Prints a line for each setting that differs, and the counts; the exit code is 1 if one differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
WALL = ("wall_s", "load_s", "compile_s", "tasks_per_s", "peak_rss_mb")
"""Of a summary: what differs from run to run."""
OF_CLOCK = ("summary clock", "summary windows")
JOBS = {"workload": "yahoo", "workload_options.jobs": "120", "workload_options.nodes": "60", "nodes": "60"}
COFLOWS = {"workload": "synthetic-coflows", "workload_options.coflows": "40", "workload_options.ports": "12"}
DAGS = {"workload": "query-dags", "workload_options.jobs": "40", "nodes": "12"}
ON_JOBS: dict[str, Mapping[str, str]] = {
    "default": {},
    "network": {
        "network.delay": "5 ms", "network.spread": "20 ms", "network.cross_rack_delay": "50 ms", "slots": "3",
        "estimates.error": "random", "estimates.size": "0.5", "workload_options.arrivals": "bursty",
    },
    "dynamics": {
        "dynamics.mtbf": "1 d", "dynamics.mttr": "5 min", "dynamics.straggler_share": "20%",
        "dynamics.straggler_distribution": "pareto", "seed": "2",
    },
    "costs": {"cost.model": "fixed", "cost.per_message": "200 us", "cost.per_job": "1 ms", "cost.per_task": "1 ms"},
    "machines": {"cluster": "phoenix", "machine_speed": "true", "seed": "3"},
    "constraints": {"cluster": "phoenix", "constraints.model": "phoenix", "infeasible": "drop", "seed": "4"},
    "windows": {"clock": "windows", "partitions": "3", "quantum": "20 ms", "seed": "5"},
}  # fmt: skip
ON_COFLOWS: dict[str, Mapping[str, str]] = {
    "default": {},
    "network": {"network.delay": "2 ms", "fabric.local": "free", "workload_options.skew": "2", "seed": "2"},
    "updates": {"fabric.updates": "UPDATES", "seed": "3"},
    "costs": {
        "cost.model": "fixed", "cost.per_message": "20 us", "cost.per_update": "5 us", "cost.per_flow": "1 us",
        "cost.per_coflow": "10 us", "cost.per_schedule": "50 us",
    },
    "windows": {"clock": "windows", "partitions": "3", "quantum": "20 ms", "network.delay": "1 ms", "seed": "5"},
}  # fmt: skip
ON_DAGS: dict[str, Mapping[str, str]] = {
    "default": {},
    "network": {
        "network.delay": "5 ms", "network.spread": "20 ms", "estimates.error": "random", "estimates.size": "0.5",
        "estimates.demands": "true", "managers": "3",
    },
    "dynamics": {"dynamics.mtbf": "10 min", "dynamics.mttr": "1 min", "dynamics.straggler_share": "20%", "seed": "2"},
    "costs": {"cost.model": "fixed", "cost.per_message": "1 ms", "cost.per_job": "5 ms", "cost.per_task": "2 ms"},
    "heartbeats": {"heartbeat_s": "1 s", "dynamics.mtbf": "10 min", "dynamics.mttr": "1 min", "seed": "3"},
    "windows": {"clock": "windows", "partitions": "3", "managers": "2", "network.delay": "1 ms", "seed": "5"},
}  # fmt: skip
"""Settings by name, for all schedulers of a family."""
DRAWS = 4
"""Runs of a scheduler with parameters that are drawn from what it declares."""
Schedulers = Mapping[str, tuple[str, Sequence[Mapping[str, str]]]]
"""Of each scheduler its family, and groups of parameters."""


def drawn(names: Sequence[str]) -> Schedulers:
    """Return the schedulers of these names, all without names; parameters are those of the code that compares."""
    from actors.schedulers.registry import built_in_schedulers
    from emu.families.drawn_cases import draw_parameters, draws_of

    found = {}
    for s in built_in_schedulers():
        if not names or s.name in names:
            kinds = {parameter.name: parameter.kind for parameter in s.parameters}
            groups = [draw_parameters(draws_of(s, k), s, {}, scale_s=1.0) for k in range(DRAWS)]
            texts = [{name: text_of(kinds[name], value) for name, value in group.items()} for group in groups]
            found[s.name] = (s.family, [group for group in texts if group])
    return found


def text_of(kind: str, value: Any) -> str:
    """Return a value of a parameter as ``--set`` takes it."""
    return str(value).lower() if kind == "flag" else f"{value} s" if kind == "duration" else str(value)


def settings(schedulers: Schedulers) -> Iterator[tuple[str, list[str]]]:
    """Yield name and arguments of each run."""
    of_family = {"jobs": (JOBS, ON_JOBS), "coflows": (COFLOWS, ON_COFLOWS), "dags": (DAGS, ON_DAGS)}
    for scheduler, (family, groups) in schedulers.items():
        base, shared = of_family[family]
        own = {f"parameters {i}": group for i, group in enumerate(groups, 1)}
        for name, group in {**shared, **own}.items():
            keys = {**base, **group}
            sets = [text for key, value in keys.items() for text in ("--set", f"{key}={value}")]
            yield f"{scheduler}, {name}", ["run", "--scheduler", scheduler, *sets]


def digests(out: Path, schedulers: Schedulers, partitions: Sequence[int]) -> None:
    """Run all settings with the package that is on the path, and write their digests as JSON.

    With `partitions` only those that have no clock of their own run, in turn in so many: under `windows`, or in this
    process if it is one. What then is left out is the part of the summary that tells the clock.
    """
    from tqdm import tqdm

    from emu.cli import main

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        updates = Path(folder, "updates.csv")
        updates.write_text(
            "time_s,coflow_id,update,side,port,to\n2,2,restart,receiver,4,\n4,4,move,receiver,3,5\n"
        )
        all_of_them = [
            pair for pair in settings(schedulers) if not (partitions and "clock=windows" in pair[1])
        ]
        for number, (name, arguments) in enumerate(tqdm(all_of_them, unit="run", disable=None)):
            run = Path(folder, str(number))
            given = [a.replace("UPDATES", str(updates)) for a in arguments]
            count = partitions[number % len(partitions)] if partitions else 1
            if partitions and "network.delay" not in " ".join(given):  # windows need messages that take time
                given += ["--set", "network.delay=1 ms"]
            clock = ["--in-process"] if count == 1 else ["--clock", "windows", "--partitions", str(count)]
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = main([*given, "--set", "output.tasks=true", *clock, "--out", str(run)])
            said = printed.getvalue().replace(folder, "").strip()
            found[name] = _of(run) if code == 0 else {"refused": said.split("\n")[-1]}
            if partitions:
                found[name] = {part: value for part, value in found[name].items() if part not in OF_CLOCK}
    out.write_text(json.dumps(found))


def _of(run: Path) -> dict[str, str]:
    """Return what a run directory holds: table or part of the summary to sha256."""
    found = {path.stem: _of_rows(path) for path in run.glob("*.parquet")}
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text())
    for part, value in summary.items():
        if isinstance(value, dict):
            value = {name: inner for name, inner in value.items() if name not in WALL}
        found[f"summary {part}"] = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    return found


def _of_rows(path: Path) -> str:
    """Return the sha256 of the columns of a table, by name and type."""
    table = pq.read_table(path)
    table = table.cast(pa.schema([(field.name, field.type) for field in table.schema])).combine_chunks()
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def _digests_of(
    root: Path, schedulers: Schedulers, folder: Path, partitions: Sequence[int] = ()
) -> dict[str, dict[str, str]]:
    """Return the digests of the package in a checkout, made by a process of its own."""
    out = folder / "digests.json"
    paths = {"PYTHONPATH": str(root)}
    if not partitions:  # of two checkouts each compiles its own
        paths["EMU_CACHE_DIR"] = str(folder / "cache")
    command = [sys.executable, str(Path(__file__).resolve()), "--digests", str(out)]
    command += ["--families", json.dumps(schedulers), "--partitions", ",".join(map(str, partitions))]
    subprocess.run(command, cwd=root, env=os.environ | paths, check=True)
    digests: dict[str, dict[str, str]] = json.loads(out.read_text())
    return digests


def compare(before: Mapping[str, Any], after: Mapping[str, Any], are_clocks: bool) -> int:
    """Print what differs; return how many settings do. Of two clocks the second may refuse a setting."""
    wrong = 0
    for name in before:
        if are_clocks and "refused" in after[name]:
            print(f"refused in partitions, {name}: {after[name]['refused'][:150]}")
            continue
        parts = [
            part for part in before[name] | after[name] if before[name].get(part) != after[name].get(part)
        ]
        if parts:
            print(f"DIFFERENT {name}: {', '.join(parts)}")
        elif "refused" in before[name]:
            print(f"refused by both, {name}: {before[name]['refused'][:150]}")
        wrong += bool(parts)
    run = sum("refused" not in found for found in after.values())
    parts_run = [part for found in after.values() for part in found if part != "refused"]
    files = sum(not part.startswith("summary ") for part in parts_run)
    print(f"{run} settings run, {files} result tables and {run} summaries compared: {wrong} settings differ")
    return wrong


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas."""
    return [int(number) for number in text.split(",") if number]


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="a checkout of the other commit")
    parser.add_argument("--after", type=Path, default=ROOT)
    parser.add_argument("--partitions", type=numbers, default=[], help="of the clock windows, such as 2,3,6")
    parser.add_argument("--schedulers", help="only these, such as eagle,philae")
    parser.add_argument("--digests", type=Path, help=argparse.SUPPRESS)  # of one checkout, in its own process
    parser.add_argument("--families", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.digests is not None:
        sys.path[0] = os.getcwd()
        digests(given.digests, given.families, given.partitions)
        return 0
    if (given.before is None) == (not given.partitions):
        parser.error("give --before, another checkout, or --partitions")
    schedulers = drawn(given.schedulers.split(",") if given.schedulers else ())
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        alone = [1] if given.partitions else []
        before = _digests_of((given.before or given.after).resolve(), schedulers, Path(one), alone)
        after = _digests_of(given.after.resolve(), schedulers, Path(other), given.partitions)
    return int(compare(before, after, bool(given.partitions)) > 0)


if __name__ == "__main__":
    sys.exit(main())
