"""Where workloads come from and go to: generators by name, files by path."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from workloads.errors import InputError
from workloads.generators.cloudera import cloudera_c
from workloads.generators.facebook import facebook
from workloads.generators.google import google
from workloads.generators.poisson import poisson
from workloads.generators.synthetic import synthetic
from workloads.generators.yahoo import yahoo
from workloads.hints import did_you_mean, names_beside
from workloads.jobs import JobWorkload
from workloads.known import known_trace
from workloads.readers.parquet import JOBS_FILE, TASKS_FILE, read_parquet, write_parquet
from workloads.readers.tr import read_tr, write_tr
from workloads.units import parse_duration

__all__ = ["generators", "known_trace", "load_workload", "save_workload"]

# One line for a new generator: its parameters are keyword arguments, all with defaults, `seed` among them.
_GENERATORS: dict[str, Callable[..., JobWorkload]] = {
    "cloudera-c": cloudera_c,
    "facebook": facebook,
    "google": google,
    "poisson": poisson,
    "synthetic": synthetic,
    "yahoo": yahoo,
}
_FORMATS = ("parquet", "tr", "tr.gz")


def generators() -> dict[str, str]:
    """Return what generators there are: name to one line that says what it makes and its parameters."""
    return {
        name: f"{_summary(make)} ({_parameters_line(make)})" for name, make in sorted(_GENERATORS.items())
    }


def load_workload(
    name_or_path: str | Path, *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> JobWorkload:
    """Return the workload of a generator's name or of a path.

    Parameters
    ----------
    name_or_path : str or Path
        A generator's name; a folder that holds ``jobs.parquet`` and ``tasks.parquet``; or a ``.tr`` file,
        plain or gzip. A file called like a generator is reached as ``./name``.
    seed : int
        Seed of a generator; a file has none.
    options : mapping, optional
        Parameters of a generator, as numbers or as text (``{"jobs": "1000", "load": "90%"}``).

    Raises
    ------
    InputError
        Neither a name nor a path that exists, an option that does not exist, or a file that is wrong.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and text in _GENERATORS:
        make = _GENERATORS[text]
        return make(**({"seed": seed} | _options(text, make, options or {})))
    path = Path(text)
    if not text.strip() or "\0" in text:
        raise InputError(
            f"{text!r} is not a workload; give a generator's name or a path{did_you_mean('', _GENERATORS)}"
        )
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    if is_folder:
        workload = read_parquet(path)
    elif path.name in (JOBS_FILE, TASKS_FILE):
        raise InputError(f"give the folder that holds {JOBS_FILE} and {TASKS_FILE}", file=path)
    elif exists:
        workload = read_tr(path)
    else:
        _not_found(text, path)
    if options:
        raise InputError(
            f"a workload from a file takes no options, got {', '.join(sorted(options))}", file=path
        )
    return workload


def save_workload(
    workload: JobWorkload, path: str | Path, format: str | None = None, *, overwrite: bool = False
) -> tuple[str, ...]:
    """Write a workload: ``.tr`` or ``.tr.gz`` by the path's suffix, else a Parquet folder.

    Parameters
    ----------
    format : str, optional
        ``parquet``, ``tr`` or ``tr.gz``, where the suffix does not say it.
    overwrite : bool
        Replace a workload that is there; other files in a folder stay.

    Returns
    -------
    tuple of str
        What the format could not hold and the user must be told.

    Raises
    ------
    InputError
        The path exists and `overwrite` is false, the format is unknown, or it cannot hold the workload.
    """
    path = Path(path)
    suffix = next((f for f in ("tr.gz", "tr") if path.name.endswith(f".{f}")), "parquet")
    if format is not None and format not in _FORMATS:
        raise InputError(f"unknown format {format!r}{did_you_mean(format, _FORMATS)}", field="format")
    kind = format or suffix
    if kind != "parquet" and (kind == "tr.gz") != (path.suffix == ".gz"):
        raise InputError(f"format {kind!r} wants a name that ends in '.{kind}'", file=path)
    if path.exists() and path.is_dir() != (kind == "parquet"):
        have, want = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise InputError(f"is a {have}; format {kind!r} writes a {want}", file=path)
    there = [path / JOBS_FILE, path / TASKS_FILE] if kind == "parquet" else [path]
    if not overwrite and any(p.exists() for p in there):
        raise InputError("exists already; choose another name, or ask for it to be overwritten", file=path)
    if kind == "parquet":
        write_parquet(workload, path)
        return ()
    write_tr(workload, path)
    return _lost_in_tr(workload, path)


def _lost_in_tr(workload: JobWorkload, path: Path) -> tuple[str, ...]:
    own = (workload.short_cutoff_s, workload.long_partition)
    if own in ((None, None), known_trace(path.name)):
        return ()
    return (
        f"{path}: the .tr format does not hold the cut-off ({own[0]} s) and the long partition ({own[1]}); "
        "give them with --short-cutoff and --long-partition, or use a Parquet folder",
    )


def _options(name: str, make: Callable[..., JobWorkload], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a generator's options, converted to the type of the parameter's default."""
    defaults = {p.name: p.default for p in inspect.signature(make).parameters.values()}
    converted = {}
    for key, value in options.items():
        if key not in defaults:
            raise InputError(f"the generator {name} has no option {key!r}{did_you_mean(key, defaults)}")
        converted[key] = _convert(key, value, defaults[key])
    return converted


def _convert(key: str, value: Any, default: Any) -> Any:
    if isinstance(default, str) or not isinstance(value, str):
        return value
    try:
        if isinstance(default, int):
            return int(value.replace(",", "_"))
        if key.endswith("_s"):
            return parse_duration(value, key)
        if value.strip().endswith("%"):  # a load may be more than 100 %
            return float(value.strip().removesuffix("%")) / 100
        return float(value)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise InputError(f"{value!r} is not {kind}, such as {default!r}", field=key) from None


def _not_found(text: str, path: Path) -> NoReturn:
    """Raise the error for what is neither a name nor a path that exists."""
    if path.suffix or len(path.parts) > 1 or text.endswith("/"):
        raise InputError(f"no such file or folder{did_you_mean(path.name, names_beside(path))}", file=path)
    hint = did_you_mean(text, _GENERATORS)
    raise InputError(
        f"unknown workload {text!r}{hint}; or give the path of a .tr file or a folder with {JOBS_FILE}"
    )


def _summary(make: Callable[..., JobWorkload]) -> str:
    return (inspect.getdoc(make) or "").partition("\n")[0].removeprefix("Return ").rstrip(".")


def _parameters_line(make: Callable[..., JobWorkload]) -> str:
    return ", ".join(f"{p.name}={p.default}" for p in inspect.signature(make).parameters.values())
