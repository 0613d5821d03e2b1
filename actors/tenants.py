"""Tenants of jobs: whose queue each job is in, and what parameters such as ``ads=0.5,search=0.3`` give to each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actors.scheduler import Parameter
from workloads.errors import InputError, printable
from workloads.hints import did_you_mean
from workloads.units import parse_share

GUARANTEES = Parameter(
    "guarantees",
    "",
    "text",
    "parts of the cluster that tenants are guaranteed, as in ads=50%,search=0.3; others share the rest equally",
)
A_PART = "a part above 0 and up to 1, as in ads=0.5 or ads=50%"
A_WEIGHT = "a weight above 0, as in ads=2"


def queues_by_tenant(workload: Any) -> tuple[np.ndarray, list[str | None]]:
    """Return [J] the queue of each job, and the tenant of each queue, None of jobs without tenant.

    Queues are numbered in the order in which their first jobs arrive.
    """
    tenants = workload.jobs["tenant"].to_pylist()
    number = {tenant: i for i, tenant in enumerate(dict.fromkeys(tenants))}
    return np.array([number[tenant] for tenant in tenants], np.int64), [*number]


def given_to(text: str, tenants: Sequence[str | None], what: str, wanted: str = A_PART) -> dict[str, float]:
    """Return the value of each tenant that ``name=value,name=value`` names.

    Args:
        tenants: those of the workload.
        what: the parameter, for messages.
        wanted: `A_PART` or `A_WEIGHT`.

    Raises:
        InputError: it is not of this form, a value is out of its range, or a tenant is unknown.
    """
    given: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, part = (piece.strip() for piece in item.rpartition("="))
        try:
            value = parse_share(part, what) if wanted == A_PART else float(part)
        except (ValueError, InputError):
            value = math.nan
        if not equals or not name or not 0.0 < value < math.inf:
            raise InputError(f"{what}: {item!r} is not a tenant and {wanted}")
        if name in given:
            raise InputError(f"{what}: tenant {name!r} is given twice")
        given[name] = value
    known = [tenant for tenant in tenants if tenant is not None]
    for tenant in given:
        if tenant not in known:
            has = did_you_mean(tenant, known) if known else ": jobs of the workload have no tenants"
            raise InputError(f"{what}: there is no tenant {tenant!r}{has}")
    return given


def guaranteed(
    text: str, tenants: Sequence[str | None], what: str, ceilings: Mapping[str, float] | None = None
) -> np.ndarray:
    """Return [tenants] the guaranteed part of each; those that the text does not name share the rest equally.

    Args:
        text, tenants, what: as of `given_to`.
        ceilings: the parts that tenants never exceed.

    Raises:
        InputError: of `given_to`; the parts sum to more than 1, nothing is left for the others, or a part is above the
            ceiling of its tenant.
    """
    given = given_to(text, tenants, what)
    for tenant, most in (ceilings or {}).items():
        if given.get(tenant, 0.0) > most:
            wrong = f"tenant {printable(tenant)} is guaranteed {given[tenant]:g}, and its ceiling is {most:g}"
            raise InputError(f"{what}: {wrong}; want a part up to that")
    rest, others = 1.0 - sum(given.values()), len(tenants) - len(given)
    if rest < -1e-9:
        raise InputError(f"{what}: the parts sum to {1.0 - rest:g}; 1 is all of the cluster")
    if others > 0 and rest < 1e-9:
        last = next(tenant for tenant in tenants if tenant not in given)
        raise InputError(f"{what}: nothing is left for {shown(last)}; parts must sum to less than 1")
    return np.array([given[tenant] if tenant in given else rest / others for tenant in tenants])


def shown(tenant: str | None) -> str:
    """Return a tenant for a message."""
    return "jobs without tenant" if tenant is None else f"tenant {printable(tenant)}"
