"""``emu explain`` and ``emu timeline``: why jobs of a run took as long as they did, and what happened when."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from emu.cli.option_values import read_numbers
from emu.explaining.causes_text import render_causes
from emu.explaining.explain import causes, explain, recorded
from emu.explaining.explanation import render_beside
from emu.explaining.timeline import write_timeline
from emu.results.result import Result, read_result
from emu.results.run_groups import workload_hash
from emu.terminal import put
from workloads.errors import InputError
from workloads.file_extensions import check_extension
from workloads.values import read_value


def explain_run(options: Namespace) -> int:
    """Explain one job, beside the same of another run, or all jobs."""
    first = read_result(options.folder)
    second = None if options.beside is None else read_result(options.beside)
    if second is not None and workload_hash(first) != workload_hash(second):
        raise InputError(
            f"is a run of another workload than {first.path}: {_input_of(second)}, not {_input_of(first)}; --beside "
            "takes a run of the same workload, with the same seed where it is generated",
            file=second.path,
        )
    if options.job is None:
        tables = [(run, causes(run)) for run in (first, second) if run is not None]
        if options.json:
            put(json.dumps([{"run": str(run.path), "causes": table.to_pydict()} for run, table in tables]))
        else:
            put(render_causes(tables))
        return 0
    job = read_value("integer", options.job, "JOB", low=0)
    explanations = [explain(run, job) for run in (first, second) if run is not None]
    if options.json:
        put(json.dumps([one.as_dict() for one in explanations], indent=2))
    elif len(explanations) == 1:
        put(explanations[0].render(details=options.details))
    else:
        put(render_beside(*explanations, details=options.details))
    return 0


def _input_of(run: Result) -> str:
    """Return the name of the workload of a run, and the beginning of its hash."""
    return f"{run.summary['workload']} (sha256 {workload_hash(run)[:12]})"


def write_run(options: Namespace) -> int:
    """Write the timeline of a run."""
    nodes, jobs = (read_numbers(f"--{name}", getattr(options, name)) for name in ("nodes", "jobs"))
    name = Path(options.folder).resolve().name
    path = Path(f"{name}-trace.json" if options.out is None else options.out)
    check_extension(path, "JSON", (".json",), "--out")
    entries = write_timeline(recorded(options.folder), path, nodes=nodes, jobs=jobs)
    put(f"{entries:,} entries in {path}: open it at https://ui.perfetto.dev or chrome://tracing")
    return 0
