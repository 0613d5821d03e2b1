"""Pods or jobs of Kubernetes, as ``kubectl get pods -A -o json`` or ``kubectl get jobs -A -o json`` print them.

Pods that a Job owns are the tasks of one job; another pod is a job of its own. A pod arrives when it was created, and
takes the time from the start of its first container to the end of its last. Of Jobs themselves the list has only start
and completion: they become tasks of equal length, as many as succeeded, in as many waves as `parallelism` makes.

References
----------
.. [1] Kubernetes API reference, core/v1 Pod (PodStatus, ContainerStateTerminated) and batch/v1 Job (JobStatus).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_text, shown

MOST_BYTES = 4 << 30


def read_kubernetes(
    path: str | Path, *, report: Report | None = None, progress: Progress | None = None
) -> JobWorkload:
    """Read a list of pods or jobs.

    Parameters
    ----------
    path : str or Path
        JSON, plain or gzip.

    Raises
    ------
    InputError
        Names the file and the item that is wrong.
    """
    report = Report() if report is None else report
    rows = JobRows(path)
    for number, item in enumerate(_items(path, progress)):
        place = f"items[{number}]"
        kind, meta = item.get("kind", "Pod"), _part(item, "metadata", path, place)
        try:
            if kind == "Pod":
                _add_pod(rows, report, item, meta, number)
            elif kind == "Job":
                _add_job(rows, report, item, meta, number)
            else:
                report.dropped(f"items of kind {shown(str(kind))}", 1)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise InputError(f"is not as Kubernetes writes it: {error}", file=path, field=place) from None
    report.read("pods, or jobs, that ended", len(rows))
    name = Path(path).name.removesuffix(".gz").removesuffix(".json")
    return rows.workload(name, f"Kubernetes, {Path(path).name}", report)


def _items(path: str | Path, progress: Progress | None) -> Iterator[dict[str, Any]]:
    with open_text(path, None, progress) as stream:
        text = stream.read(MOST_BYTES)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, line=error.lineno) from None
    except (UnicodeDecodeError, RecursionError):
        raise InputError("is not JSON", file=path) from None
    if not isinstance(found, dict) or not isinstance(items := found.get("items", [found]), list):
        raise InputError("is no list of Kubernetes; want what kubectl get pods -o json prints", file=path)
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError("is no object", file=path, field=f"items[{number}]")
        yield item


def _part(item: Mapping[str, Any], name: str, path: object, place: str) -> dict[str, Any]:
    found = item.get(name)
    if not isinstance(found, dict):
        raise InputError(f"has no {name}", file=path, field=place)
    return found


def _add_pod(rows: JobRows, report: Report, item: Any, meta: Any, number: int) -> None:
    status = item.get("status") or {}
    ended = [
        state["terminated"]
        for one in status.get("containerStatuses") or []
        if isinstance(state := one.get("state") or {}, dict) and state.get("terminated")
    ]
    running = len(ended) < len(status.get("containerStatuses") or [])
    if status.get("phase") in ("Pending", "Running") or running or not ended:
        report.dropped("pods that had not ended, or never started", 1)
        return
    begin = min(_time_s(one["startedAt"]) for one in ended if one.get("startedAt"))
    end = max(_time_s(one["finishedAt"]) for one in ended if one.get("finishedAt"))
    if (item.get("spec") or {}).get("nodeSelector"):
        report.repaired("node selectors: not used, as nodes here have no labels", 1)
    owner = next((o for o in meta.get("ownerReferences") or [] if o.get("kind") == "Job"), None)
    rows.add(
        meta.get("uid", number) if owner is None else owner["uid"],
        _time_s(meta["creationTimestamp"]),
        max(end - begin, 0.0),
        number,
        tenant=meta.get("namespace"),
    )


def _add_job(rows: JobRows, report: Report, item: Any, meta: Any, number: int) -> None:
    status, spec = item.get("status") or {}, item.get("spec") or {}
    tasks = int(status.get("succeeded") or 0)
    if not status.get("completionTime") or not status.get("startTime") or tasks <= 0:
        report.dropped("jobs that had not completed", 1)
        return
    waves = math.ceil(tasks / max(int(spec.get("parallelism") or 1), 1))
    took_s = _time_s(status["completionTime"]) - _time_s(status["startTime"])
    if waves > 1:
        report.repaired("jobs of several waves of pods: the time of a wave taken for a pod's", 1)
    rows.add(
        meta.get("uid", number),
        _time_s(meta["creationTimestamp"]),
        max(took_s, 0.0) / waves,
        number,
        tasks=tasks,
        tenant=meta.get("namespace"),
    )


def _time_s(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def recognises(path: Path) -> bool:
    """Return whether a file is JSON with the fields of a list of Kubernetes."""
    if path.is_dir():
        return False
    try:
        with open_text(path) as stream:
            begin = stream.read(4096)
    except InputError:
        return False
    return begin.lstrip().startswith(b"{") and b'"apiVersion"' in begin and b'"items"' in begin
