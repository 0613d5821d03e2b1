"""What pods ask for: resources by the rules of Kubernetes' scheduler, priorities, deadlines.

A pod needs the most of two sums: of its containers with its sidecars (init containers that restart always), and of any
init container with the sidecars before it; and the overhead of its runtime class beside. Requests of the pod as a whole
replace those of its containers. A container without a request has its limit as one.

References
----------
.. [1] Kubernetes documentation: "Resource Management for Pods and Containers", "Sidecar Containers", "Pod Overhead",
   "Quantity" (resource.k8s.io/quantity).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from workloads.readers.kubernetes_objects import part, parts
from workloads.readers.report import Report
from workloads.readers.source import shown

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
