"""Logs that a test writes, and what is read from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from workloads.jobs import JobWorkload


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def durations(workload: JobWorkload) -> list[list[float]]:
    """The durations of each job's tasks, in seconds."""
    first, seconds = workload.arrays().first_task, workload.tasks["duration_s"].to_pylist()
    return [seconds[a:b] for a, b in pairwise(first)]


def arrivals(workload: JobWorkload) -> list[float]:
    return workload.jobs["submit_s"].to_pylist()


def jobs_of(workload: JobWorkload) -> list[tuple[float, list[float]]]:
    """The arrival of each job, and the durations of its tasks."""
    return list(zip(arrivals(workload), durations(workload), strict=True))
