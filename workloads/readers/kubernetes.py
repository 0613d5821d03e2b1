"""Pods or jobs of Kubernetes, as ``kubectl get pods -A -o json`` or ``kubectl get jobs -A -o json`` print them.

Pods that a Job owns are the tasks of one job; another pod is a job of its own. A pod arrives when it was created, and
takes the time from the first start to the last end of its containers, with init containers and earlier attempts, as it
keeps its place on the node. A list of Jobs has only start and completion: a Job becomes as many equal tasks as
succeeded, in waves of `parallelism`. A Job whose pods are in the list has those as tasks.

A pod needs what it requests: ``cpu``, ``memory``, and ``nvidia.com/gpu``,
``amd.com/gpu`` and others of that name together as ``attr:gpus``. Other resources, such as ephemeral storage, are left
out and counted. ``spec.priority`` is a priority, ``activeDeadlineSeconds`` the requested run time.

Kubernetes itself starts pods one by one. It is assumed that a group of pods is a gang, on any number of nodes: those of
one pod group (of the scheduler plugins, Volcano or Kueue), of one training job (MPIJob, PyTorchJob, …), and of one Job.
A Job is not a gang where one pod began after another had ended, or with fewer pods at a time than completions, as it
then does not need them all at once; such Jobs are counted. A pod that is alone is not a gang.

References
----------
.. [1] Kubernetes API reference, core/v1 Pod (PodStatus, ContainerStateTerminated) and batch/v1 Job (JobStatus).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workloads.errors import InputError
from workloads.jobs import JobWorkload
from workloads.readers.job_rows import JobRows
from workloads.readers.report import Progress, Report
from workloads.readers.samples import first_lines
from workloads.readers.source import open_text, shown

# Objects of Kubernetes in JSON: a list, one object, or several one after the other, as ``kubectl --watch`` prints.

MOST_BYTES = 4 << 30
KINDS = ("Pod", "Job")
ENDED = ("Succeeded", "Failed")
"""Phases of pods."""
_FIRST_YEAR_S = 366 * 86_400.0
"""Earlier times are Go's and Unix's zero: not known."""
_NESTED = 3
"""Lists within lists: kubectl prints one of each kind within one of all."""
_NO_BLANK = re.compile(r"\S")


class Found(NamedTuple):
    """An object.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    key : object
        Its identity: its uid, else its name, else its place.
    place : int
        Its number in the file.
    name : str
        Its name in errors.
    item : dict
    """

    kind: str
    key: object
    place: int
    name: str
    item: dict[str, Any]


def objects(path: str | Path, report: Report, progress: Progress | None) -> list[Found]:
    """Return the pods and jobs of a file; of several copies of one the last that has ended, else the last.

    Raises
    ------
    InputError
        The file is not JSON, or not objects of Kubernetes.
    """
    found: dict[object, Found] = {}
    total = 0
    for name, kind, item in _items(path, progress):
        if not isinstance(item, dict):
            raise InputError("is not an object", file=path, field=name)
        try:
            kind = str(item.get("kind") or kind or ("Job" if "template" in part(item, "spec") else "Pod"))
            if kind not in KINDS:
                report.dropped(f"items of kind {shown(kind)}", 1)
                continue
            if item.get("metadata") is None:
                raise InputError("has no metadata", file=path, field=name)
            meta = part(item, "metadata")
            named = (kind, text(meta, "namespace"), text(meta, "name"))
            key: object = text(meta, "uid") or (named if named[2] else total)
        except TypeError as error:
            raise InputError(f"is not as Kubernetes writes it: {error}", file=path, field=name) from None
        total += 1
        if key in found and _has_ended(found[key].item) and not _has_ended(item):
            continue
        found.pop(key, None)  # the order is that of the copies that count
        found[key] = Found(kind, key, total - 1, name, item)
    report.dropped("objects that are there more than once: the last that ended counts", total - len(found))
    return list(found.values())


def _has_ended(item: dict[str, Any]) -> bool:
    status = item.get("status")
    return isinstance(status, dict) and (status.get("phase") in ENDED or bool(status.get("completionTime")))


def _items(path: str | Path, progress: Progress | None) -> Iterator[tuple[str, str, Any]]:
    """Yield the name of an item in errors, its kind if a list states it, and the item."""
    for number, document in enumerate(_documents(path, progress)):
        within = f"object {number + 1}: " if number else ""
        if not isinstance(document, dict | list):
            raise InputError(
                "is not a list of Kubernetes; want what kubectl get pods -o json prints", file=path
            )
        yield from _within(document, f"{within}the object", within, "", path, _NESTED)


def _within(
    found: Any, name: str, place: str, kind: str, path: object, nested: int
) -> Iterator[tuple[str, str, Any]]:
    """Yield the items of a list, of the lists in it, of an event of a watch, or the object itself."""
    if isinstance(found, dict) and "type" in found and isinstance(found.get("object"), dict):
        found = found["object"]
    if isinstance(found, dict) and "items" in found and nested:
        kind = str(found.get("kind") or "").removesuffix("List")
        place, found = f"{place}items", found["items"]
        found = [] if found is None else found  # Go's empty list
        if not isinstance(found, list):
            raise InputError("is not a list", file=path, field=place)
    if not isinstance(found, list) or not nested:
        yield name, kind, found
        return
    for at, item in enumerate(found):
        yield from _within(item, f"{place}[{at}]", f"{place}[{at}].", kind, path, nested - 1)


def _documents(path: str | Path, progress: Progress | None) -> Iterator[Any]:
    with open_text(path, None, progress) as stream:
        data = stream.read(MOST_BYTES)
    try:
        content = data.decode("utf-8-sig")
        begin = _NO_BLANK.search(content)
        if begin is None:
            raise InputError("is empty; want what kubectl get pods -o json prints", file=path)
        if begin[0] not in "{[":
            raise InputError("is not JSON; print it with kubectl get … -o json", file=path, line=1)
        while begin is not None:
            document, end = json.JSONDecoder().raw_decode(content, begin.start())
            yield document
            begin = _NO_BLANK.search(content, end)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=path, line=error.lineno) from None
    except UnicodeDecodeError:
        raise InputError("is not JSON: it is not UTF-8", file=path) from None
    except ValueError:
        raise InputError("is not JSON of Kubernetes: a number has thousands of digits", file=path) from None
    except RecursionError:
        raise InputError("is not JSON of Kubernetes: its values are nested too deep", file=path) from None


def part(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object within another, empty if absent.

    Raises
    ------
    TypeError
        It is not an object.
    """
    found = item.get(name)
    if found is not None and not isinstance(found, dict):
        raise TypeError(f"{name} is not an object")
    return found or {}


def parts(item: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list within an object, none if absent."""
    found = item.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise TypeError(f"{name} is not a list of objects")
    yield from found


def text(item: Mapping[str, Any], name: str) -> str | None:
    """Return a text, None if absent; halves of surrogate pairs, which UTF-8 cannot hold, as JSON escapes them."""
    found = item.get(name)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"{name} is not text but {shown(str(found)[:100])}")
    return found.encode("utf-8", "backslashreplace").decode() if found else None


def count(item: Mapping[str, Any], name: str) -> int:
    """Return a count, 0 where it is not there."""
    found = item.get(name)
    if found is None:
        return 0
    if isinstance(found, float) and found.is_integer():  # as programs write it that know no whole numbers
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 2**63:
        raise TypeError(f"{name} is not a count but {shown(str(found)[:100])}")
    return found


def seconds(time: Any) -> float | None:
    """Return a time such as ``2026-03-01T00:00:05Z`` in seconds; None for null, or the zero of a clock."""
    if time is None or time == "":
        return None
    try:
        found = datetime.fromisoformat(time)
        since = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{shown(str(time)[:100])} is not a time such as 2026-03-01T00:00:05Z") from None
    return since if since > _FIRST_YEAR_S else None


# What pods ask for: resources by the rules of Kubernetes' scheduler, priorities, deadlines.
#
# A pod needs the most of two sums: of its containers with its sidecars (init containers that restart always), and of
# any init container with the sidecars before it; and the overhead of its runtime class beside. Requests of the pod as a
# whole replace those of its containers. A container without a request has its limit as one.
#
# Kubernetes documentation: "Resource Management for Pods and Containers", "Sidecar Containers", "Pod Overhead",
# "Quantity" (resource.k8s.io/quantity).

Which = Literal["requests", "limits"]
Needs = dict[str, Fraction]

_GIB = 2**30
_QUANTITY = re.compile(
    r"(\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE]([+-]?\d{1,2})|(n|u|m|k|[KMGTPE]i|[MGTPE])?)", re.ASCII
)
_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000),
    **{letter: Fraction(1000 ** (place + 2)) for place, letter in enumerate("MGTPE")},
    **{f"{letter}i": Fraction(1024 ** (place + 1)) for place, letter in enumerate("KMGTPE")},
}  # fmt: skip


def asked_of_pod(spec: Mapping[str, Any], which: Which, report: Report) -> dict[str, float | None]:
    """Return what the spec of a pod asks for, by names of requests: resources, ``priority``, ``requested_s``.

    Raises
    ------
    TypeError
        A value is not as Kubernetes writes it.
    """
    needs = _needs_of_pod(spec, which)
    gpus = [name for name in needs if name.endswith("/gpu")]
    for name in needs.keys() - {"cpu", "memory", *gpus}:
        report.dropped(f"requests of {shown(name)}", 1)
    priority = spec.get("priority")
    if priority is None:
        report.dropped("priority classes, as their number is not stated", "priorityClassName" in spec)
    elif isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > 2**31:
        raise TypeError(f"priority is not a whole number of 32 bits but {shown(str(priority)[:100])}")
    return {
        "cpu_cores": float(needs["cpu"]) if "cpu" in needs else None,
        "memory_gib": float(needs["memory"] / _GIB) if "memory" in needs else None,
        "attr:gpus": float(sum(needs[name] for name in gpus)) if gpus else None,
        "priority": priority,
        "requested_s": deadline_s(spec),
    }


def deadline_s(spec: Mapping[str, Any]) -> float | None:
    """Return the time after which a pod or a Job is stopped, None where it has none."""
    found = spec.get("activeDeadlineSeconds")
    return None if found is None else float(quantity(found, "activeDeadlineSeconds"))


def _needs_of_pod(spec: Mapping[str, Any], which: Which) -> Needs:
    """Return the resources of a pod by their names in Kubernetes."""
    sidecars: Needs = {}
    most: Needs = {}
    for container in parts(spec, "initContainers"):
        together = _sum(sidecars, _stated(container, which))
        most = {name: max(most.get(name, Fraction(0)), together[name]) for name in most | together}
        if container.get("restartPolicy") == "Always":
            sidecars = together
    running = sidecars
    for container in parts(spec, "containers"):
        running = _sum(running, _stated(container, which))
    needs = {
        name: max(running.get(name, Fraction(0)), most.get(name, Fraction(0))) for name in most | running
    }
    return _sum(_stated(spec, which, needs), _quantities(spec, "overhead"))


def _stated(item: Mapping[str, Any], which: Which, of_parts: Mapping[str, Fraction] = {}) -> Needs:
    """Return the requests of a container or a pod, or its limits; else what its parts need, else the other of both."""
    resources = part(item, "resources")
    requests, limits = (_quantities(resources, name) for name in ("requests", "limits"))
    wanted, other = (requests, limits) if which == "requests" else (limits, requests)
    return other | dict(of_parts) | wanted


def _sum(one: Needs, other: Needs) -> Needs:
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in one | other}


def _quantities(item: Mapping[str, Any], name: str) -> Needs:
    return {resource: quantity(value, resource) for resource, value in part(item, name).items()}


def quantity(value: Any, name: str) -> Fraction:
    """Return a quantity such as ``500m``, ``1.5``, ``2Gi`` or ``1e3``.

    Raises
    ------
    TypeError
        It is not one.
    """
    found = None if isinstance(value, bool) else _QUANTITY.fullmatch(str(value))
    if found is None:
        raise TypeError(f"{name} is not a quantity such as 500m or 2Gi but {shown(str(value)[:100])}")
    return Fraction(found[1]) * Fraction(10) ** int(found[2] or 0) * _SUFFIXES[found[3] or ""]


INDEX = "batch.kubernetes.io/job-completion-index"
GROUPS = (
    "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "scheduling.k8s.io/group-name",
    "kueue.x-k8s.io/pod-group-name", "training.kubeflow.org/job-name",
)  # fmt: skip
"""Labels or annotations that name the group of a pod."""


class _Pod(NamedTuple):
    """A pod that ended: `place` is its number in the file, `task` its index in its Job, if stated.

    `job`: the group of which it is a task, or itself; `owner`: the Job, or other object, that owns it; `together`:
    whether the group is one whose pods start at one time; `asked`: as `JobRows.add` takes it.
    """

    job: object
    owner: object
    together: bool
    asked: dict[str, float | None]
    task: str | None
    created_s: float
    begin_s: float
    end_s: float
    failed: bool
    tenant: str | None
    place: int
    name: str


def read_kubernetes(
    path: str | Path,
    *,
    runs: Literal["each", "last"] = "each",
    demands: Which = "requests",
    gangs: bool = True,
    report: Report | None = None,
    progress: Progress | None = None,
) -> JobWorkload:
    """Read pods or jobs: a list, one object, or several of either one after the other.

    Parameters
    ----------
    path : str or Path
        JSON, plain or gzip.
    runs : "each" or "last"
        Pods that failed and that their Job replaced: each is a job, which arrives when the pod was created, or the last
        one counts.
    demands : "requests" or "limits"
        What pods need: their requests, or their limits; a container that states only one of the two has that.
    gangs : bool
        Whether groups of pods are gangs; else all pods are independent.

    Raises
    ------
    InputError
        Names the file and the item that is wrong.
    """
    report = Report() if report is None else report
    pods, jobs = list[_Pod](), list[Found]()
    for item in objects(path, report, progress):
        if item.kind == "Job":
            jobs.append(item)
            continue
        with _naming(item, path):
            pod = _pod(item, demands, report)
        pods += [] if pod is None else [pod]
    try:
        return _workload(pods, jobs, runs, demands, gangs, path, report)
    except InputError as error:
        if error.line is None:
            raise
        named = {one.place: one.name for one in pods} | {one.place: one.name for one in jobs}
        raise InputError(error.message, file=path, field=named[error.line]) from None


def _workload(
    pods: list[_Pod],
    jobs: list[Found],
    runs: Literal["each", "last"],
    demands: Which,
    gangs: bool,
    path: str | Path,
    report: Report,
) -> JobWorkload:
    """Return the jobs of pods and Jobs that ended; errors have their places as lines."""
    rows, runs_of = JobRows(path), list(_runs(pods, runs, report))
    together = _gangs(runs_of, report) if gangs else set[object]()
    for job, pod in runs_of:
        asked = pod.asked | {"gang_nodes": 0 if job in together else None}
        rows.add(job, pod.created_s, pod.end_s - pod.begin_s, pod.place, tenant=pod.tenant, asked=asked)
    with_pods = {pod.owner for pod in pods}
    for item in jobs:
        if item.key in with_pods:
            report.dropped("jobs whose pods are in the list", 1)
            continue
        with _naming(item, path):
            _add_job(rows, demands, gangs, report, item)
    report.read("pods, or jobs, that ended", len(rows))
    name = Path(path).name.removesuffix(".gz").removesuffix(".json")
    return rows.workload(name, f"Kubernetes, {Path(path).name}", report)


@contextmanager
def _naming(item: Found, path: object) -> Iterator[None]:
    """Within the block, values that Kubernetes does not write are an error that names the item."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        wrong = f"is not as Kubernetes writes it: {error}"
        raise InputError(wrong, file=path, field=item.name) from None


def _gangs(runs: list[tuple[tuple[object, ...], _Pod]], report: Report) -> set[object]:
    """Return the jobs whose pods start at one time."""
    groups: dict[object, list[_Pod]] = {}
    for job, pod in runs:
        groups.setdefault(job, []).append(pod)
    found = set[object]()
    for group, pods in groups.items():
        last_s, first_end_s = max(pod.begin_s for pod in pods), min(pod.end_s for pod in pods)
        in_waves = last_s >= first_end_s and last_s > min(pod.begin_s for pod in pods)
        if pods[0].together or (pods[0].owner is not None and not in_waves):
            found.add(group)
        elif pods[0].owner is not None:
            report.repaired(_IN_WAVES, 1)
    return found


_IN_WAVES = "Jobs whose pods did not run at one time: not gangs"


def _group(found: Found, owner: Mapping[str, object] | None) -> tuple[object, object, bool]:
    """Return the group of a pod, its owner (None: it has none), and whether the group states that it is a gang."""
    meta = part(found.item, "metadata")
    space = text(meta, "namespace")
    owned = None if owner is None else text(owner, "uid") or (text(owner, "kind"), space, text(owner, "name"))
    for within in ("labels", "annotations"):
        for name in GROUPS:
            if group := text(part(meta, within), name):
                return ("group", space, group), owned, True
    if owned is None:
        return found.key, None, False
    return owned, owned, text(owner or {}, "kind") != "Job"


def _pod(found: Found, demands: Which, report: Report) -> _Pod | None:
    """Return a pod, None if it has not ended or its times are not in the object."""
    meta, spec, status = (part(found.item, name) for name in ("metadata", "spec", "status"))
    main = list(parts(status, "containerStatuses"))
    containers = [*parts(status, "initContainerStatuses"), *main]
    over = bool(main) and all(part(part(one, "state"), "terminated") for one in main)
    if not (status.get("phase") in ENDED or (over and status.get("phase") is None)):
        report.dropped("pods that had not ended, or never started", 1)
        return None
    attempts = [
        part(part(one, state), "terminated") for one in containers for state in ("state", "lastState")
    ]
    start_s = seconds(status.get("startTime"))
    begin_s = min(_known(one.get("startedAt") for one in attempts), default=None)
    end_s = max(_known(one.get("finishedAt") for one in attempts), default=None)
    unseen = any(
        count(one, "restartCount") > bool(part(part(one, "lastState"), "terminated")) for one in containers
    )
    if start_s is not None and end_s is not None and (begin_s is None or (unseen and start_s < begin_s)):
        why = "pods whose containers' first start is not in the list: the pod's start taken"
        report.repaired(why, 1)
        begin_s = start_s
    if begin_s is None or end_s is None:
        report.dropped("pods without the time of their start or end, such as evicted ones", 1)
        return None
    if end_s < begin_s:
        report.repaired("end before start: taken as 0 s long", 1)
        end_s = begin_s
    report.repaired("node selectors: not used, as nodes here have no labels", bool(spec.get("nodeSelector")))
    owner = next(
        (one for one in parts(meta, "ownerReferences") if _OWNER.fullmatch(str(one.get("kind")))), None
    )
    job, owned, together = _group(found, owner)
    tenant = text(meta, "namespace")
    created_s = seconds(meta.get("creationTimestamp"))
    return _Pod(
        job=job,
        owner=owned,
        together=together,
        asked=asked_of_pod(spec, demands, report),
        task=text(part(meta, "annotations"), INDEX),
        created_s=created_s if created_s is not None else min(begin_s, start_s or begin_s),
        begin_s=begin_s,
        end_s=end_s,
        failed=status.get("phase") == "Failed",
        tenant=tenant,
        place=found.place,
        name=found.name,
    )


_OWNER = re.compile(r"\w*Job|PodGroup")


def _known(times: Iterable[object]) -> list[float]:
    return [time for time in map(seconds, times) if time is not None]


def _runs(
    pods: list[_Pod], which: Literal["each", "last"], report: Report
) -> Iterator[tuple[tuple[object, ...], _Pod]]:
    """Yield pods and the job that each belongs to, in the order of the file.

    A pod that failed is replaced by the first pod of its Job, and of its index, that was created when it had ended.
    """
    first_s, replaced = dict[int, float](), set[int]()
    groups: dict[object, list[int]] = {}
    for at, pod in enumerate(pods):
        groups.setdefault((pod.job, pod.task), []).append(at)
    for group in groups.values():
        later = iter(sorted(group, key=lambda at: pods[at].created_s))
        for failed in sorted((at for at in group if pods[at].failed), key=lambda at: pods[at].end_s):
            after = next(
                (at for at in later if at != failed and pods[at].created_s >= pods[failed].end_s), None
            )
            if after is None:
                break
            replaced.add(failed)
            first_s[after] = first_s.get(failed, pods[failed].created_s)
    if which == "each":
        report.repaired("pods that replaced a failed one: each a job (runs=last: the last)", len(replaced))
        yield from (((pod.job, pod.created_s if at in first_s else None), pod) for at, pod in enumerate(pods))
        return
    report.dropped("pods that failed and were replaced", len(replaced))
    for at, pod in enumerate(pods):
        if at not in replaced:
            yield (pod.job,), pod._replace(created_s=first_s.get(at, pod.created_s))


def _add_job(rows: JobRows, demands: Which, gangs: bool, report: Report, found: Found) -> None:
    meta, spec, status = (part(found.item, name) for name in ("metadata", "spec", "status"))
    tasks, failed = count(status, "succeeded"), count(status, "failed")
    report.dropped(
        "pods of jobs that failed, of which the list of jobs says no times (print pods, too)", failed
    )
    begin_s, end_s = seconds(status.get("startTime")), seconds(status.get("completionTime"))
    if begin_s is None or end_s is None or tasks <= 0:
        report.dropped("jobs that had not completed", 1)
        return
    waves = -(-tasks // max(count(spec, "parallelism"), 1))
    if waves > 1:
        report.repaired("jobs of several waves of pods: the time of a wave taken for a pod's", 1)
        report.repaired(_IN_WAVES, gangs)
    asked = asked_of_pod(part(part(spec, "template"), "spec"), demands, report)
    asked |= {"gang_nodes": 0 if gangs and waves == 1 else None}
    if (limit_s := deadline_s(spec)) is not None:
        asked["requested_s"] = limit_s
    report.repaired("end before start: taken as 0 s long", end_s < begin_s)
    created_s = seconds(meta.get("creationTimestamp"))
    rows.add(
        found.key,
        begin_s if created_s is None else created_s,
        max(end_s - begin_s, 0.0) / waves,
        found.place,
        tasks=tasks,
        tenant=text(meta, "namespace"),
        asked=asked,
    )


_TABLE = re.compile(r"(?:NAMESPACE +)?NAME +(?:READY +STATUS|STATUS +COMPLETIONS|COMPLETIONS) ")


def recognises(path: Path) -> bool:
    """Return whether a file begins like objects of Kubernetes, in JSON or in a form that is refused by name."""
    begin = "\n".join(first_lines(path)).lstrip()
    if begin.startswith(("{", "[")):
        named = '"apiVersion"' in begin or '"creationTimestamp"' in begin
        return named and ('"items"' in begin or '"metadata"' in begin)
    return begin.startswith(("apiVersion:", "---\napiVersion:")) or _TABLE.match(begin) is not None
