"""Names of what run directories hold, besides the tables and figures of a family."""

from __future__ import annotations

from pathlib import Path

SCHEMA_VERSION = 1
"""Of all files of a run directory."""
SUMMARY = "summary.json"
CONFIG = "config.toml"
CHECKPOINTS = "checkpoints"
EVENTS = "events.parquet"
WORKLOAD = "workload"
"""Folder of a workload that a Python program gave as an object."""
COMPARISON = "comparison.csv"
"""Files that every comparison and sweep writes."""
REPORT = "report.html"
"""The page that a comparison writes into its directory, and `emu report` into one that it is given."""
REPORT_MARK = "<!-- made by emu report -->"
"""The beginning of a page, after its document type."""
FIGURES = ("cdf-", "percentiles", "shares", "targets", "timeline")
"""Prefixes of the names of figures in run directories, besides those of a family."""


def is_report(path: Path) -> bool:
    """Return whether a file is a page of ours."""
    try:
        return path.is_file() and REPORT_MARK.encode() in path.open("rb").read(200)
    except OSError:
        return False
