"""The options of ``emu explain`` and ``emu timeline``; what they do is in `emu.cli.explain_command`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def add_explaining(command: Callable[[str, str], ArgumentParser]) -> None:
    """Add the two commands; `command` makes a parser from a name and what it is about."""
    explain = command("explain", "explain why a job of a run, or all of them, took as long as they did")
    explain.add_argument("folder", metavar="RUN_DIR")
    explain.add_argument(
        "job", metavar="JOB", nargs="?", help="its job_id, or coflow_id; without it all are summed up"
    )
    explain.add_argument(
        "--beside", metavar="RUN_DIR", help="another run of the same workload, to compare with"
    )
    explain.add_argument("--json", action="store_true", help="print the explanation as JSON")
    timeline = command("timeline", "write a run as a timeline for Perfetto or Chrome's trace viewer")
    timeline.add_argument("folder", metavar="RUN_DIR")
    timeline.add_argument(
        "--out", metavar="FILE", help="by default NAME-trace.json, NAME that of the run directory"
    )
    timeline.add_argument("--nodes", metavar="A-B,C", help="only these nodes, or ports")
    timeline.add_argument("--jobs", metavar="A-B,C", help="only these jobs, or coflows")
