"""Pods and jobs of Kubernetes: times that are not there, attempts, pods that replace others, forms of the output."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.readers.test_sacct import jobs_of
from workloads.catalogue import load_workload
from workloads.errors import InputError
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
NO_TIME = "dropped 1: pods without the time of their start or end, such as evicted ones"
ZERO = "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (pod("b", container(ran(None, None)), phase="Failed"), NO_TIME),
        (pod("b", container({"exitCode": 137}), phase="Failed", startTime=at(7)), NO_TIME),
        (pod("b", container(ran(ZERO, 50)), phase="Failed"), NO_TIME),
        (pod("b", container(ran("0001-01-01T00:00:00Z", ZERO)), phase="Failed"), NO_TIME),
        (pod("b", container(ran(None, 50)), phase="Failed", reason="Evicted"), NO_TIME),
        (pod("b", phase="Failed", reason="Evicted", startTime=at(7)), NO_TIME),
        (pod("b", container(None), phase="Running"), "dropped 1: pods that had not ended, or never started"),
        (pod("b", phase="Pending"), "dropped 1: pods that had not ended, or never started"),
        ({"kind": "Node", "metadata": {}}, "dropped 1: items of kind 'Node'"),
    ],
)
def test_a_pod_without_times_is_left_out_and_counted(
    tmp_path: Path, other: dict[str, Any], note: str
) -> None:
    found = read(tmp_path, listed(GOOD, other))
    assert jobs_of(found) == [(0.0, [30.0])]
    assert note in found.notes
    with pytest.raises(InputError, match="holds no job that ran: dropped 1: "):
        read(tmp_path, listed(other))


def test_containers_of_a_pod_without_times_do_not_count(tmp_path: Path) -> None:
    half = pod("a", container(ran(10, 40)), container(ran(None, None)), container(ran(ZERO, 45)))
    assert jobs_of(read(tmp_path, listed(half))) == [(0.0, [35.0])]


def test_where_no_start_of_a_container_is_known_the_pod_s_counts(tmp_path: Path) -> None:
    found = read(tmp_path, listed(pod("a", container(ran(None, 60)), phase="Failed", startTime=at(20))))
    assert jobs_of(found) == [(0.0, [40.0])]
    assert any("the pod's start taken" in note for note in found.notes)


def test_a_pod_lasts_from_its_first_start_to_its_last_end(tmp_path: Path) -> None:
    """Init containers and earlier attempts are part of it; what came before the last attempt but one is not listed."""
    init = {"initContainerStatuses": [container(ran(10, 40))]}
    again = pod("a", container(ran(120, 180), before=ran(45, 110), restarts=1), **init)
    often = pod("b", container(ran(300, 310), before=ran(200, 210), restarts=5), startTime=at(100))
    found = read(tmp_path, listed(again, often))
    assert jobs_of(found) == [(0.0, [170.0]), (0.0, [210.0])]
    assert (
        "repaired 1: pods whose containers' first start is not in the list: the pod's start taken"
        in found.notes
    )


RETRIED = [
    pod("a", container(ran(1, 20)), created=0, phase="Failed", job="sum"),
    pod("b", container(ran(1, 50)), created=0, job="sum"),
    pod("c", container(ran(31, 45)), created=30, phase="Failed", job="sum"),
    pod("d", container(ran(71, 90)), created=70, job="sum"),
]


def test_pods_that_replace_failed_ones_are_not_parallel_to_them(tmp_path: Path) -> None:
    found = read(tmp_path, listed(*RETRIED))
    assert jobs_of(found) == [(0.0, [19.0, 49.0]), (30.0, [14.0]), (70.0, [19.0])]
    assert "repaired 2: pods that replaced a failed one: each a job (runs=last: the last)" in found.notes
    last = read(tmp_path, listed(*RETRIED), runs="last")
    assert jobs_of(last) == [(0.0, [49.0, 19.0])]
    assert "dropped 2: pods that failed and were replaced" in last.notes


def test_each_of_two_pods_that_were_replaced_has_its_successor(tmp_path: Path) -> None:
    first = [
        pod(name, container(ran(1, end)), phase="Failed", job="sum") for name, end in (("a", 20), ("b", 25))
    ]
    then = [
        pod(name, container(ran(begin + 1, begin + 9)), created=begin, job="sum")
        for name, begin in (("c", 40), ("d", 90))
    ]
    found = read(tmp_path, listed(*first, *then))
    assert jobs_of(found) == [(0.0, [19.0, 24.0]), (40.0, [8.0]), (90.0, [8.0])]


def test_a_pod_of_another_index_replaces_none(tmp_path: Path) -> None:
    index = "batch.kubernetes.io/job-completion-index"
    items = json.loads(json.dumps(RETRIED[:2] + RETRIED[3:]))
    for item, number in zip(items, "010", strict=True):
        item["metadata"]["annotations"] = {index: number}
    assert jobs_of(read(tmp_path, listed(*items))) == [(0.0, [19.0, 49.0]), (70.0, [19.0])]
    items[2]["metadata"]["annotations"] = {index: "2"}
    assert jobs_of(read(tmp_path, listed(*items))) == [(0.0, [19.0, 49.0, 19.0])]


def test_a_job_beside_its_pods_counts_once(tmp_path: Path) -> None:
    found = read(
        tmp_path, listed(*RETRIED[1:2], job("sum", 1, 0, 50), job("other", 4, 10, 40, parallelism=2))
    )
    assert jobs_of(found) == [(0.0, [49.0]), (10.0, [15.0] * 4)]
    assert "dropped 1: jobs whose pods are in the list" in found.notes


def test_a_job_without_its_pods_says_what_it_lacks(tmp_path: Path) -> None:
    failed = job("sum", 2.0, 10, 5, parallelism=2.0)
    failed["status"]["failed"] = 3
    found = read(tmp_path, listed(failed, job("other", 1, 10, 20)))
    assert jobs_of(found) == [(0.0, [0.0, 0.0]), (0.0, [10.0])]
    assert any(note.startswith("dropped 3: pods of jobs that failed") for note in found.notes)
    assert "repaired 1: end before start: taken as 0 s long" in found.notes


def test_objects_that_are_there_again_count_once(tmp_path: Path) -> None:
    """As ``kubectl get pods --watch`` prints a pod at each change, and as two outputs in one file overlap."""
    going = pod("good", container(None), created=5, phase="Running")
    for order in ((going, GOOD), (GOOD, going), (GOOD, GOOD)):
        found = read(tmp_path, "\n".join(json.dumps(item, indent=1) for item in order))
        assert jobs_of(found) == [(0.0, [30.0])]
        assert any(
            note.startswith("dropped 1: objects that are there more than once") for note in found.notes
        )


def without_kind(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


JOB = job("sum", 4, 10, 40, parallelism=2)


@pytest.mark.parametrize(
    ("content", "tasks"),
    [
        (listed(without_kind(GOOD), kind="PodList"), [30.0]),
        (listed(without_kind(JOB), kind="JobList"), [15.0] * 4),
        (listed(without_kind(JOB)), [15.0] * 4),
        (GOOD, [30.0]),
        ({"apiVersion": "batch/v1", **JOB}, [15.0] * 4),
        ([GOOD], [30.0]),
        (listed(listed(kind="PodList"), listed(without_kind(JOB), kind="JobList")), [15.0] * 4),
        ({"kind": "PodList", "apiVersion": "v1", "items": [without_kind(GOOD)], "metadata": {}}, [30.0]),
        ([without_kind(JOB)], [15.0] * 4),
        (f"\ufeff{json.dumps(listed(GOOD))}", [30.0]),
        ({"type": "ADDED", "object": GOOD}, [30.0]),
    ],
)
def test_forms_of_the_output(tmp_path: Path, content: Any, tasks: list[float]) -> None:
    assert jobs_of(read(tmp_path, content)) == [(0.0, tasks)]


def test_times_with_fractions_and_offsets(tmp_path: Path) -> None:
    state = {"startedAt": "2026-03-01T01:00:00.500000000+01:00", "finishedAt": "2026-03-01T00:00:02.75Z"}
    assert jobs_of(read(tmp_path, listed(pod("a", container(state))))) == [(0.0, [2.25])]


def changed(**meta: Any) -> dict[str, Any]:
    return {**GOOD, "metadata": {**GOOD["metadata"], **meta}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (listed(changed(namespace=5)), r"items\[0\]: is not as Kubernetes writes it: namespace is not text but '5'"),
        (listed(GOOD, changed(uid=["a"])), r"items\[1\]: .*uid is not text"),
        (listed(changed(creationTimestamp="soon")), "'soon' is not a time such as"),
        (listed(changed(creationTimestamp=12)), "'12' is not a time such as"),
        (listed(changed(ownerReferences=[3])), "ownerReferences is not a list of objects"),
        (listed({**GOOD, "status": {"phase": "Failed", "containerStatuses": {}, "initContainerStatuses": "x"}}),
         "initContainerStatuses is not a list of objects"),
        (listed({"metadata": {"name": "a"}, "spec": 5}), r"items\[0\]: .*spec is not an object"),
        (listed(GOOD, job("sum", 2**62, 0, 10)), r"field items\[1\]: makes more than 281,474,976,710,656 tasks"),
        (listed(job("sum", 1.5, 0, 10)), r"succeeded is not a count but '1.5'"),
        (listed(job("sum", float("inf"), 0, 10)), r"succeeded is not a count but 'inf'"),
        (listed(job("sum", 10**400, 0, 10)), r"succeeded is not a count but '1000"),
        (listed(job("sum", 5, 0, 10, parallelism=True)), r"parallelism is not a count but 'True'"),
        (json.dumps(listed(job("sum", 77, 0, 10))).replace("77", "9" * 5000), "thousands of digits"),
        ('{"apiVersion": "v1", "items": ' + "[" * 400 + "]" * 400 + "}", "is not an object"),
        ("[" * 100_000, "nested too deep"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "is not JSON; print it with kubectl get … -o json"),
        ("NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE\nlab  a  0/1  Completed  0  1d\n", "is not JSON; print"),
    ],
)  # fmt: skip
def test_what_kubernetes_does_not_write(tmp_path: Path, content: Any, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        read(tmp_path, content)
    assert len(str(caught.value).splitlines()) == 1


def test_a_name_with_half_a_pair_of_surrogates(tmp_path: Path) -> None:
    found = read(tmp_path, listed(changed(namespace="a\ud800b", name="\udfff", uid="\udfff")))
    assert found.jobs["tenant"].to_pylist() == ["a\\ud800b"]
