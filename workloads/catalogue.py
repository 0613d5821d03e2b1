"""The catalogue of workloads: generators by name, files by path."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from workloads.coflows import CoflowWorkload
from workloads.defaults import DEFAULT_SEED
from workloads.errors import InputError
from workloads.file_extensions import FOLDER, TEXT, check_extension
from workloads.generators.coflows import synthetic_coflows
from workloads.generators.deadline_coflows import deadline_coflows
from workloads.generators.mapreduce import facebook_mapreduce
from workloads.generators.published import cloudera_c, facebook, google, yahoo
from workloads.generators.query_dags import query_dags
from workloads.generators.synthetic import poisson, synthetic
from workloads.hints import did_you_mean, names_beside
from workloads.jobs import JobWorkload
from workloads.limits import limited, take_limits
from workloads.options import option_defaults, options_line, read_options, without_meaning
from workloads.published_cutoffs import known_trace
from workloads.readers.parquet import FAMILIES, JOBS_FILE
from workloads.readers.report import Progress, Report
from workloads.requests import left_out, requests_of
from workloads.transform.primitives import Workload, family

__all__ = [
    "convert_workload",
    "generate",
    "generators",
    "instances_of",
    "known_trace",
    "load_workload",
    "options_of",
    "options_without_meaning",
    "save_workload",
]

# One line for a new generator: its parameters are keyword arguments, all with defaults, `seed` among them.
_GENERATORS: dict[str, Callable[..., Workload]] = {
    "cloudera-c": cloudera_c,
    "deadline-coflows": deadline_coflows,
    "facebook": facebook,
    "facebook-mapreduce": facebook_mapreduce,
    "google": google,
    "poisson": poisson,
    "query-dags": query_dags,
    "synthetic": synthetic,
    "synthetic-coflows": synthetic_coflows,
    "yahoo": yahoo,
}


@cache
def generators() -> dict[str, str]:
    """Return the generators: name to one line on what it makes and its parameters."""
    return {name: f"{_summary(make)} ({options_line(make)})" for name, make in sorted(_GENERATORS.items())}


def options_without_meaning(name: Any, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a generator that were given and change nothing, and why; empty for other names.

    Raises
    ------
    InputError
        An option that does not exist, or text that is not of its kind.
    """
    make = _GENERATORS.get(name) if isinstance(name, str) else None
    if make is None:
        return {}
    return without_meaning(make, read_options(f"the generator {name}", make, take_limits(given)[1]))


def load_workload(
    name_or_path: str | Path,
    *,
    seed: int = DEFAULT_SEED,
    options: Mapping[str, Any] | None = None,
    format: str | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
) -> Workload:
    """Return the workload of a generator's name or of a path.

    Parameters
    ----------
    name_or_path : str or Path
        A generator's name, or a path that holds one of `workloads.formats.FORMATS`. A file called like a
        generator is reached as ``./name``.
    seed : int
        Seed of a generator; a file has none.
    options : mapping, optional
        Options of the generator or the format's reader, as values or as text (``{"jobs": "1000", "load": "90%"}``);
        and ``max_tasks`` and ``max_bytes``, which take the place of the limits of `workloads.limits`.
    format : str, optional
        Of a path, where it is not to be recognised by what it holds.
    report, progress : optional
        See `workloads.readers.report`.

    Raises
    ------
    InputError
        Neither a name nor a path that exists, an option that does not exist, a file that is wrong, or a workload
        that exceeds its limits.
    """
    from workloads.formats import find_format

    limits, options = take_limits(options)
    with limited(limits):
        if _is_generator(name_or_path, format):
            return _generated(str(name_or_path), {"seed": seed, **options})
        path = _existing(name_or_path, format)
        name = format or _recognised(path)
        known = find_format(name)
        face = _face(name)
        given = _reader_options(name, face, options, path)
        offered = {"report": report, "progress": progress}
        takes = inspect.signature(face).parameters
        loaded: Workload = known.read(path, **given, **{key: offered[key] for key in offered if key in takes})
        return loaded


def generate(name: str, options: Mapping[str, Any]) -> Workload:
    """Return the workload of a generator, even if a file has its name; its seed is an option.

    Raises
    ------
    InputError
        An option that does not exist or is wrong, or a workload that is larger than fits.
    """
    limits, own = take_limits(options)
    with limited(limits):
        return _generated(name, own)


def _generated(name: str, options: Mapping[str, Any]) -> Workload:
    return _GENERATORS[name](**_generator_options(name, options))


def instances_of(
    name_or_path: str | Path, options: Mapping[str, Any] | None = None, format: str | None = None
) -> tuple[str, ...]:
    """Return the instances of a path that holds several workloads, if `options` chooses none of them; else ().

    Each is a workload of its own: ``load_workload(path, options={"instance": name})``.

    Raises
    ------
    InputError
        As `load_workload`; the instances themselves are not read.
    """
    from workloads.formats import find_format

    limits, own = take_limits(options)
    if _is_generator(name_or_path, format) or "instance" in own:
        return ()
    with limited(limits):
        path = _existing(name_or_path, format)
        names = find_format(format or _recognised(path)).instances
        found = () if names is None else names(path)
    return found if len(found) > 1 else ()


def options_of(name_or_path: str | Path, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the value of each option of a generator, or of the reader of a path: what is given, else the default.

    Raises
    ------
    InputError
        As `load_workload`.
    """
    limits, given = take_limits(given)
    stated = {name: value for name, value in vars(limits).items() if value is not None}
    with limited(limits):
        if _is_generator(name_or_path, None):
            make = _GENERATORS[str(name_or_path)]
            return option_defaults(make) | _generator_options(str(name_or_path), given) | stated
        path = _existing(name_or_path)
        name = _recognised(path)
        return option_defaults(_face(name)) | _reader_options(name, _face(name), given, path) | stated


def convert_workload(
    name_or_path: str | Path,
    to: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    format: str | None = None,
    to_format: str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Write what `load_workload` would return; traces larger than memory go straight into a Parquet folder.

    Returns
    -------
    tuple of str
        Notes for the user: what was repaired, dropped or could not be stored.

    Raises
    ------
    InputError
        As `load_workload` and `save_workload`.
    """
    from workloads.formats import PARQUET, find_format, format_by_ending

    report = Report() if report is None else report
    limits, own = take_limits(options)
    target = to_format or format_by_ending(Path(to))
    if find_format(target).write is not None:  # before what may take long is read
        _refuse_existing(Path(to), target, overwrite)
    if not _is_generator(name_or_path, format):
        with limited(limits):
            path = _existing(name_or_path, format)
            name = format or _recognised(path)
            straight = find_format(name).convert
            if straight is not None and target == PARQUET:
                given = _reader_options(name, straight, own, path)
                straight(path, Path(to), report=report, progress=progress, **given)
                return report.notes()
    workload = load_workload(name_or_path, options=options, format=format, report=report, progress=progress)
    if not report.lines():  # a generator, or Emu's own form
        for table in (family(workload).name, family(workload).parts[-1]):
            report.read(table, getattr(workload, table).num_rows)
    return (*workload.notes, *save_workload(workload, to, to_format, overwrite=overwrite))


def save_workload(
    workload: Workload, path: str | Path, format: str | None = None, *, overwrite: bool = False
) -> tuple[str, ...]:
    """Write a workload: ``.tr`` or ``.tr.gz`` by the path's ending, else a Parquet folder.

    Parameters
    ----------
    format : str, optional
        One of `workloads.formats.FORMATS` that can be written, where the ending does not say it.
    overwrite : bool
        Replace a workload that is there; other files in a folder stay.

    Returns
    -------
    tuple of str
        Notes for the user on what the format could not store.

    Raises
    ------
    InputError
        The path exists and `overwrite` is false, the format is unknown, or it cannot hold the workload.
    """
    from workloads.formats import FORMATS, PARQUET, find_format, format_by_ending

    path = Path(path)
    name = format or format_by_ending(path)
    write = find_format(name).write
    if write is None:
        written = {n: f for n, f in FORMATS.items() if f.write is not None}
        raise InputError(
            f"{name} is read, not written; what is written: {', '.join(written)}", field="format"
        )
    kind = family(workload).kind
    if kind.lower() not in FORMATS[name].family:
        wrong = f"the format {name} holds {FORMATS[name].family}, and {workload.name} is of {kind}"
        raise InputError(wrong, file=path)
    _refuse_existing(path, name, overwrite)
    write(workload, path)
    lost: tuple[str, ...] = ()
    if name != PARQUET and not isinstance(workload, CoflowWorkload):
        columns = [*requests_of(workload.jobs), *requests_of(workload.tasks)]
        lost = left_out([*columns, *getattr(workload, "bytes_known", ())], path, name)
    return (
        (*lost, *_lost_in_tr(workload, path)) if name == "tr" and isinstance(workload, JobWorkload) else lost
    )


def _lost_in_tr(workload: JobWorkload, path: Path) -> tuple[str, ...]:
    own = (workload.short_cutoff_s, workload.long_partition)
    if own in ((None, None), known_trace(path.name)):
        return ()
    return (
        f"{path}: the .tr format does not hold the cut-off ({own[0]} s) and the long partition ({own[1]}); "
        "give them with --short-cutoff and --long-partition, or use a Parquet folder",
    )


def _is_generator(name_or_path: str | Path, format: str | None) -> bool:
    """Return whether a generator is meant; refuse a name that an existing workload also has."""
    if format is not None or not isinstance(name_or_path, str) or name_or_path not in _GENERATORS:
        return False
    if os.path.exists(name_or_path) and (format := _format_of(Path(name_or_path))):
        raise InputError(
            f"{name_or_path!r} is a generator, and the name of a workload that is here (of the format {format}): "
            f"./{name_or_path} reads it; for the generator rename the workload, or work in another folder"
        )
    return True


def _format_of(path: Path) -> str:
    try:
        return _recognised(path)
    except InputError:
        return ""


def _generator_options(name: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    return read_options(f"the generator {name}", _GENERATORS[name], options or {})


def _face(name: str) -> Callable[..., Any]:
    """Return the function with a format's options: `convert` if there is one, else `read`."""
    from workloads.formats import find_format

    known = find_format(name)
    return known.convert or known.read


def _existing(name_or_path: str | Path, format: str | None = None) -> Path:
    """Return the path that is meant; with `format`, files called like Emu's own tables are accepted."""
    from workloads.formats import is_own_table

    text = str(name_or_path)
    path = Path(text)
    if not text.strip() or "\0" in text:
        raise InputError(
            f"{text!r} is not a workload; give a generator's name or a path{did_you_mean('', _GENERATORS)}"
        )
    if text.startswith(("http://", "https://")):
        raise InputError(f"{text}: is an address; workloads are read from files: download it first")
    try:
        os.stat(path)
    except FileNotFoundError:
        _not_found(text, path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    for files in FAMILIES.values():
        if format is None and path.name in files and is_own_table(path):
            raise InputError(f"give the folder that holds {' and '.join(files)}", file=path)
    return path


def _recognised(path: Path) -> str:
    from workloads.formats import recognise

    return recognise(path)


def _reader_options(
    name: str, read: Callable[..., Any], options: Mapping[str, Any] | None, path: Path
) -> dict[str, Any]:
    if options and not option_defaults(read):
        wrong = f"a workload of the format {name} takes no options, got {', '.join(sorted(options))}"
        raise InputError(wrong, file=path)
    return read_options(f"the format {name}", read, options or {})


def _refuse_existing(path: Path, format: str, overwrite: bool) -> None:
    """Refuse to overwrite without being asked, and a name with the ending of another kind of file."""
    from workloads.formats import FORMATS, PARQUET

    is_folder = format == PARQUET
    if os.path.exists(path) and path.is_dir() != is_folder:
        have, want = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise InputError(f"is a {have}; format {format!r} writes a {want}", file=path)
    if is_folder:
        files = ", ".join(name for name, known in FORMATS.items() if known.write and name != PARQUET)
        check_extension(path, f"a folder of Parquet tables ({files} are files)", FOLDER)
    else:
        own = (".tr", ".tr.gz") if format == "tr" else ()
        check_extension(path, f"text in the format {format}", (*own, *TEXT))
    there = [path / name for files in FAMILIES.values() for name in files] if is_folder else [path]
    if not overwrite and any(map(os.path.exists, there)):
        raise InputError("exists already; choose another name, or ask for it to be overwritten", file=path)


def _not_found(text: str, path: Path) -> NoReturn:
    """Raise the error for what is neither a name nor a path that exists."""
    if path.is_symlink():
        raise InputError(f"is a link to {os.readlink(path)}, which is not there", file=path)
    if path.suffix or len(path.parts) > 1 or text.endswith("/"):
        raise InputError(f"no such file or folder{did_you_mean(path.name, names_beside(path))}", file=path)
    hint = did_you_mean(text, _GENERATORS)
    raise InputError(
        f"unknown workload {text!r}{hint}; or give the path of a .tr file or a folder with {JOBS_FILE}"
    )


def _summary(make: Callable[..., Workload]) -> str:
    return (inspect.getdoc(make) or "").partition("\n")[0].removeprefix("Return ").rstrip(".")
