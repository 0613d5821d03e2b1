"""Small valid logs of batch systems, from which `benchmarks.hostile` makes hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make_swf(place: Path) -> None:
    """Write logs of the Standard Workload Format: as it is defined, and with names, more fields and preceding jobs."""
    rows = [
        f"{i} {7 * i} 3 {60 + i} {1 + i % 4} -1 -1 {1 + i % 4} 600 -1 1 {i % 3} 1 -1 1 -1 {i - 1 if i % 3 else -1} 0"
        for i in range(1, 20)
    ]
    (place / "a.swf").write_text("; Version: 2.2\n; MaxProcs: 16\n" + "\n".join(rows) + "\n")
    names = " ".join(f"field_{chr(97 + i)}" for i in range(20))
    (place / "b.swf").write_text(f"{names}\n" + "".join(f"{row} {{1,2}} q_1d\n" for row in rows))


def make_sacct(place: Path) -> None:
    """Write outputs of sacct: with steps, arrays, components and runs again; and with other fields."""
    day = "2026-01-01T00:"
    head = "JobID|Cluster|JobName|User|Submit|Start|End|Elapsed|AllocCPUS|Timelimit|State"
    rows = [
        f"{job}|c|a b|ann|{day}00:00|{day}{start:02}:00|{day}{start + 5:02}:00|00:05:00|{cpus}|{limit}|{state}"
        for job, start, cpus, limit, state in (
            ("7", 1, 4, "01:00:00", "COMPLETED"), ("7.batch", 1, 4, "", "COMPLETED"),
            ("8_1", 2, 1, "UNLIMITED", "FAILED"), ("8_2", 2, 1, "1-00:00:00", "CANCELLED by 7"),
            ("8_[3-5%2]", 3, 1, "Partition_Limit", "COMPLETED"),
            ("9+0", 4, 2, "10:00", "COMPLETED"), ("9+1", 4, 3, "10:00", "COMPLETED"), ("10", 5, 2, "", "NODE_FAIL"),
            ("10", 20, 2, "", "COMPLETED"), ("11", 6, 2, "", "RESIZING"),
        )
    ]  # fmt: skip
    (place / "a.txt").write_text("\n".join([head, *rows, head, *rows[:3]]) + "\n")
    other = "State|JobIDRaw|Submit|ElapsedRaw|ReqCPUS|ReqTRES|TimelimitRaw\n"
    (place / "b.txt").write_text(other + "COMPLETED|5|1767225600|60|16|billing=16,cpu=16,node=1|60\n" * 3)


def make_kubernetes(place: Path) -> None:
    """Write lists of pods and jobs, and objects behind each other."""
    pods = [
        _pod(number, phase) for number, phase in enumerate(("Succeeded", "Failed", "Succeeded", "Running"))
    ]
    job = {
        "kind": "Job",
        "metadata": {"name": "other", "uid": "other", "creationTimestamp": _at(0)},
        "spec": {"parallelism": 2, "template": {}},
        "status": {"startTime": _at(1), "completionTime": _at(90), "succeeded": 5},
    }
    (place / "pods.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*pods, job]}, indent=1)
    )
    bare = [{name: pod[name] for name in ("metadata", "spec", "status")} for pod in pods]
    (place / "list.json").write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": bare}))
    (place / "watch.json").write_text("\n".join(json.dumps(pod, indent=2) for pod in [*pods, *pods]))


def _at(second: int) -> str:
    return f"2026-03-01T00:{second // 60:02}:{second % 60:02}Z"


def _pod(number: int, phase: str) -> dict[str, Any]:
    def ran(begin: int, end: int) -> dict[str, Any]:
        return {"terminated": {"startedAt": _at(begin), "finishedAt": _at(end), "exitCode": 0}}

    begin = 40 * number
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}", "namespace": "lab", "uid": f"uid-{number}", "creationTimestamp": _at(begin),
            "annotations": {"batch.kubernetes.io/job-completion-index": str(number % 2)},
            "ownerReferences": [{"kind": "Job", "name": "sum", "uid": "sum"}],
        },
        "spec": {"nodeSelector": {"gpu": "a100"}},
        "status": {
            "phase": phase,
            "startTime": _at(begin + 1),
            "initContainerStatuses": [{"name": "init", "state": ran(begin + 2, begin + 4), "restartCount": 0}],
            "containerStatuses": [
                {"name": "main", "state": ran(begin + 9, begin + 30), "lastState": ran(begin + 4, begin + 8),
                 "restartCount": 1}
            ],
        },
    }  # fmt: skip
