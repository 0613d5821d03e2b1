"""Pods and jobs of Kubernetes: times that are not there, attempts, pods that replace others, forms of the output."""

import json
from pathlib import Path
from typing import Any

from tests.workloads.log_files import jobs_of
from workloads.catalogue import load_workload
from workloads.formats import recognise
from workloads.jobs import JobWorkload


def at(second: int | None) -> str | None:
    return (
        None if second is None else f"2026-03-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    )


def ran(begin: Any, end: Any) -> dict[str, Any]:
    times = (at(time) if isinstance(time, int) else time for time in (begin, end))
    return dict(zip(("startedAt", "finishedAt"), times, strict=True))


def container(
    state: dict[str, Any] | None, before: dict[str, Any] | None = None, restarts: int = 0
) -> dict[str, Any]:
    return {
        "state": {"terminated": state} if state else {"running": {}},
        "lastState": {"terminated": before} if before else {},
        "restartCount": restarts,
    }


def pod(
    name: str,
    *containers: dict[str, Any],
    created: int = 0,
    phase: str = "Succeeded",
    job: str = "",
    **status: Any,
) -> dict[str, Any]:
    owners = [{"kind": "Job", "name": job, "uid": job}] if job else None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "lab", "uid": name, "creationTimestamp": at(created),
                     "ownerReferences": owners},
        "spec": {"containers": []},
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }  # fmt: skip


def job(name: str, succeeded: Any, begin: int, end: int | None, parallelism: Any = 1) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": name, "uid": name, "creationTimestamp": at(begin)},
        "spec": {"parallelism": parallelism, "template": {}},
        "status": {"startTime": at(begin), "completionTime": at(end), "succeeded": succeeded},
    }


def read(folder: Path, content: Any, **options: str) -> JobWorkload:
    path = folder / "pods.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    format = "kubernetes" if isinstance(content, str) and content.startswith("[") else recognise(path)
    return load_workload(str(path), format=format, options=options)


def listed(*items: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": kind}


GOOD = pod("good", container(ran(10, 40)), created=5)
ZERO = "1970-01-01T00:00:00Z"


RETRIED = [
    pod("a", container(ran(1, 20)), created=0, phase="Failed", job="sum"),
    pod("b", container(ran(1, 50)), created=0, job="sum"),
    pod("c", container(ran(31, 45)), created=30, phase="Failed", job="sum"),
    pod("d", container(ran(71, 90)), created=70, job="sum"),
]


def test_a_pod_of_another_index_replaces_none(tmp_path: Path) -> None:
    index = "batch.kubernetes.io/job-completion-index"
    items = json.loads(json.dumps(RETRIED[:2] + RETRIED[3:]))
    for item, number in zip(items, "010", strict=True):
        item["metadata"]["annotations"] = {index: number}
    assert jobs_of(read(tmp_path, listed(*items))) == [(0.0, [19.0, 49.0]), (70.0, [19.0])]
    items[2]["metadata"]["annotations"] = {index: "2"}
    assert jobs_of(read(tmp_path, listed(*items))) == [(0.0, [19.0, 49.0, 19.0])]


def test_a_job_without_its_pods_says_what_it_lacks(tmp_path: Path) -> None:
    failed = job("sum", 2.0, 10, 5, parallelism=2.0)
    failed["status"]["failed"] = 3
    found = read(tmp_path, listed(failed, job("other", 1, 10, 20)))
    assert jobs_of(found) == [(0.0, [0.0, 0.0]), (0.0, [10.0])]
    assert any(note.startswith("dropped 3: pods of jobs that failed") for note in found.notes)
    assert "repaired 1: end before start: taken as 0 s long" in found.notes


def without_kind(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


JOB = job("sum", 4, 10, 40, parallelism=2)


def changed(**meta: Any) -> dict[str, Any]:
    return {**GOOD, "metadata": {**GOOD["metadata"], **meta}}


def asking(item: dict[str, Any], spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    """A pod with a spec and labels."""
    return item | {"spec": spec, "metadata": item["metadata"] | {"labels": labels}}


def needs(**resources: Any) -> dict[str, Any]:
    """A container's resources: requests, or limits with a name that ends in `_limit`."""
    given = {"requests": {}, "limits": {}}
    for name, value in resources.items():
        given["limits" if name.endswith("_limit") else "requests"][name.removesuffix("_limit")] = value
    return {"resources": given}


def test_pods_state_what_the_scheduler_reserves(tmp_path: Path) -> None:
    """Sidecars count with the containers and with the init containers after them; a limit alone is a request."""
    spec = {
        "initContainers": [
            needs(cpu="3", memory="1Gi"),
            needs(cpu="250m", memory="512Mi") | {"restartPolicy": "Always"},
            needs(cpu=1, memory="6Gi"),
        ],
        "containers": [needs(cpu="500m", memory="1G"), needs(cpu="0.5", memory_limit="1e9", cpu_limit="4")],
        "overhead": {"memory": "256Mi"},
        "priority": -5,
        "activeDeadlineSeconds": 600,
    }
    gpus = {"nvidia.com/gpu": "2", "amd.com/gpu": 1, "ephemeral-storage": "1Gi"}
    pods = [
        asking(pod("a", container(ran(5, 25))), spec),
        asking(pod("b", container(ran(5, 25)), created=1), {"containers": [{"resources": {"limits": gpus}}]}),
        asking(pod("c", container(ran(5, 25)), created=2), {"priorityClassName": "high"}),
    ]
    found = read(tmp_path, pods)
    assert found.jobs["cpu_cores"].to_pylist() == [3.0, None, None]
    assert found.jobs["memory_gib"].to_pylist() == [6.75, None, None]
    assert found.jobs["attr:gpus"].to_pylist() == [None, 3.0, None]
    assert found.jobs["priority"].to_pylist() == [-5, None, None]
    assert found.jobs["requested_s"].to_pylist() == [600.0, None, None]
    assert "gang_nodes" not in found.jobs.column_names
    notes = " ".join(found.notes)
    assert "dropped 1: requests of 'ephemeral-storage'" in notes
    assert "dropped 1: priority classes, as their number is not stated" in notes
    assert "2 tasks that state no cpu_cores" in notes
    limits = read(tmp_path, pods, demands="limits")
    assert limits.jobs["cpu_cores"][0].as_py() == 4.75


def test_which_pods_are_gangs(tmp_path: Path) -> None:
    """Those of a Job that ran together, of a pod group, and of a training job, launcher and workers."""
    of_mpi = {"training.kubeflow.org/job-name": "train"}
    worker = pod("w", container(ran(9, 25)), created=4)
    worker["metadata"]["ownerReferences"] = [{"kind": "MPIJob", "uid": "mpi"}]
    pods = [
        pod("a", container(ran(5, 25)), job="one"),
        pod("b", container(ran(9, 35)), job="one"),
        pod("c", container(ran(5, 25)), job="two", created=1),
        pod("d", container(ran(25, 35)), job="two", created=1),
        asking(pod("e", container(ran(5, 6)), created=2), {}, **{"scheduling.x-k8s.io/pod-group": "g"}),
        asking(pod("f", container(ran(7, 8)), created=2), {}, **{"scheduling.x-k8s.io/pod-group": "g"}),
        asking(pod("l", container(ran(10, 20)), job="launcher", created=3), {}, **of_mpi),
        asking(pod("w1", container(ran(5, 25)), created=3), {}, **of_mpi),
        worker,
        pod("z", container(ran(5, 25)), created=5),
    ]
    found = read(tmp_path, pods)
    assert found.jobs["num_tasks"].to_pylist() == [2, 2, 2, 2, 1, 1]
    assert found.jobs["gang_nodes"].to_pylist() == [0, None, 0, 0, 0, None]
    assert "repaired 1: Jobs whose pods did not run at one time: not gangs" in found.notes
    assert "gang_nodes" not in read(tmp_path, pods, gangs="no").jobs.column_names


def test_a_list_of_jobs_states_what_their_templates_ask_for(tmp_path: Path) -> None:
    template = {"spec": {"containers": [needs(cpu="1500m", memory="1024Ki")]}}
    items = [job("one", 2, 0, 10, parallelism=2), job("two", 2, 1, 10, parallelism=1)]
    for item in items:
        item["spec"] |= {"template": template, "activeDeadlineSeconds": 90}
    found = read(tmp_path, items)
    assert found.jobs["cpu_cores"].to_pylist() == [1.5, 1.5]
    assert found.jobs["memory_gib"].to_pylist() == [2**-10] * 2
    assert found.jobs["requested_s"].to_pylist() == [90.0, 90.0]
    assert found.jobs["gang_nodes"].to_pylist() == [0, None]
