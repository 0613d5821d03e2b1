"""Small, difficult cases for checks of schedulers, drawn from a seed and from what a scheduler declares.

Each family's ``testing.py`` draws workloads and settings, and has the checks. Here is what they share: a case, the
arguments of `emu.run` that it stands for, and the draws of features and of declared parameters.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from actors.scheduler import Parameter, Scheduler
    from clusters.cluster import Cluster

ALL = "all"
"""Of features: all that the scheduler declares."""
_MUCH = 1000
"""A time so many times as long as those of a case is no time of its: it limits what a machine may take."""


class Case(NamedTuple):
    """An emulation to check.

    Attributes
    ----------
    name : str
        For errors.
    workload : workload of the scheduler's family
    settings : dict
        Arguments of `emu.run`, with ``_`` for the dot, but for those in `files`.
    parameters : dict
        Of the scheduler; those that are not here have their defaults.
    cluster : Cluster or None
        Where the family has nodes.
    files : dict
        Settings that are files, and the tables that stand in them.
    """

    name: str
    workload: Any
    settings: dict[str, Any]
    parameters: dict[str, Any]
    cluster: Cluster | None = None
    files: Mapping[str, pa.Table] = {}


@contextmanager
def arguments(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `emu.run` of a case but scheduler and workload; its files last until the end."""
    files = dict(case.files) | ({} if case.cluster is None else {"cluster": case.cluster.table})
    given: dict[str, Any] = dict(case.settings)
    with tempfile.TemporaryDirectory(prefix="emu-check-") as folder:
        for name, table in files.items():
            given[name] = Path(folder) / f"{name}.{'parquet' if name == 'cluster' else 'csv'}"
            if name == "cluster":
                pq.write_table(table, given[name])
            else:
                pyarrow.csv.write_csv(table, given[name])
        yield given | {"parameters": case.parameters}


def draws_of(scheduler: Scheduler, seed: int) -> np.random.Generator:
    """Return the generator of a case: each scheduler has its own cases."""
    return np.random.default_rng([seed, zlib.crc32(scheduler.name.encode())])


def drawn_features(rng: np.random.Generator, names: Sequence[str], features: str | None) -> set[str]:
    """Return which of some features a case has: ALL, or each with a chance of a half."""
    drawn = rng.random(len(names)) < 0.5
    return {name for name, has in zip(names, drawn, strict=True) if has or features == ALL}


def effective_settings(scheduler: Scheduler, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without those that the scheduler declares it ignores."""
    ignored = tuple(name.replace(".", "_") for name, _ in scheduler.ignores)
    return {
        name: value
        for name, value in settings.items()
        if not any(name == own or name.startswith(f"{own}_") for own in ignored)
    }


def draw_parameters(
    rng: np.random.Generator,
    scheduler: Scheduler,
    given: Mapping[str, Any],
    *,
    scale_s: float,
    scale_bytes: float = 2.0**20,
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return `given`, and values of about half of the scheduler's other parameters: of their kinds, within bounds.

    Those of a user's class keep their defaults: their bounds need not be all that holds of them.

    Parameters
    ----------
    scale_s, scale_bytes : float
        The times and sizes that count in the case.
    texts : mapping, optional
        By parameter: a text that it may have; others of these kinds keep their defaults.
    """
    from actors.scheduler import resolve_parameters
    from emu.configuration.ineffective_values import effective_parameters

    if scheduler.own is not None:
        return dict(given)
    scales = {"duration": scale_s, "size": scale_bytes}
    drawn = dict(given)
    for parameter in scheduler.parameters:
        if parameter.name in given or scheduler.fixes(parameter.name) or rng.random() < 0.5:
            continue
        values = values_of(parameter, scales.get(parameter.kind, 1.0), texts or {})
        if values:
            drawn[parameter.name] = values[rng.integers(len(values))]
    whole, refused = resolve_parameters(scheduler, drawn), [values for values, _ in scheduler.refuses]
    for name in (name for together in refused for name in together if name in whole and name not in given):
        own = next(parameter for parameter in scheduler.parameters if parameter.name == name)
        for value in (whole[name], *values_of(own)):
            if not any(all((whole | {name: value}).get(n) == v for n, v in one.items()) for one in refused):
                drawn[name] = whole[name] = value
                break
    effective = effective_parameters(scheduler, whole)
    return {name: value for name, value in drawn.items() if name in given or effective[name] == whole[name]}


def values_of(parameter: Parameter, scale: float = 1.0, texts: Mapping[str, str] | None = None) -> list[Any]:
    """Return values of a parameter that are worth a try; none where its kind does not say what they may be."""
    default, low, high = parameter.default, parameter.low, parameter.high
    if parameter.kind == "flag":
        return [False, True]
    if parameter.kind == "choice":
        return [*parameter.choices]
    if parameter.kind in ("text", "any"):
        return [texts[parameter.name]] if texts and parameter.name in texts else []
    if parameter.kind == "share":
        found = [0.0 if low is None else low, 0.1, 0.3, 0.7, 0.9, 1.0 if high is None else high]
    elif parameter.kind == "integer":
        found = [*([] if low is None else [low, low + 1, low + 2]), default // 2, 2 * default]
    elif parameter.kind == "number":
        found = [*([] if low is None else [low]), default / 2, 2 * default, 1.5]
    elif default > _MUCH * scale:
        return []
    else:
        found = [*([0.0] if low == 0 else []), scale / 2, scale, 2 * scale]
    least, most = -np.inf if low is None else low, np.inf if high is None else high
    within = [type(default)(min(max(value, least), most)) for value in found]
    return list(dict.fromkeys(within))
