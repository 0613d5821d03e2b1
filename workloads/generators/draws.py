"""Functions of all generators: seeded random numbers and the checks of common parameters."""

from __future__ import annotations

import math
import numbers

import numpy as np

from workloads.errors import InputError
from workloads.jobs import Float64Array

MAX_JOBS = 10_000_000


def generator(seed: int, stream: int | None = None) -> np.random.Generator:
    """Return the random numbers of a seed: Philox, the same on every machine.

    Streams of one seed are independent, so that what is drawn for several purposes does not go together.

    Raises
    ------
    InputError
        The seed is not a whole number from 0.
    """
    check_whole("seed", seed, 0, 2**64 - 1)
    entropy = int(seed) if stream is None else [int(seed), stream]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def check_load(jobs: int, load: float, nodes: int) -> None:
    """Refuse a number of jobs, an offered load or a number of nodes out of range."""
    check_whole("jobs", jobs, 1, MAX_JOBS)
    check_whole("nodes", nodes, 1, 10_000_000)
    check_positive("load", load)


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Refuse what is not a whole number in ``least..most``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) <= most:
        raise InputError(f"{value!r} is not a whole number from {least} to {most}", field=name)


def check_share(name: str, value: object) -> None:
    """Refuse what is not a number in 0..1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise InputError(f"{value!r} is not a share in 0..1", field=name)


def check_positive(name: str, value: object) -> None:
    """Refuse what is not a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise InputError(f"{value!r} is not a number above 0", field=name)


def check_scale(name: str, value: object) -> None:
    """Refuse what is not a finite number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
        raise InputError(f"{value!r} is not a number from 0 on", field=name)


def offered_load(work_s: float, last_submit_s: float, slots: int) -> str:
    """Return the load that was drawn, for the metadata: it differs from the one asked for by chance."""
    return f"{work_s / (last_submit_s * slots):.4f}" if last_submit_s > 0 else "infinite"


def log_normal_factors(rng: np.random.Generator, sigma: float, count: int) -> Float64Array:
    """Return log-normal factors of mean 1, shape (count,), whose logarithms have the standard deviation `sigma`."""
    return np.exp(sigma * rng.standard_normal(count) - sigma * sigma / 2)


def draw_tenants(rng: np.random.Generator, jobs: int, tenants: int) -> list[str] | None:
    """Return the tenant of each job, one of ``t0``, ``t1``, ... drawn uniformly; None where there is but one.

    Raises
    ------
    InputError
        The number of tenants is out of its range.
    """
    check_whole("tenants", tenants, 1, MAX_JOBS)
    return [f"t{n}" for n in rng.integers(tenants, size=jobs).tolist()] if tenants > 1 else None
