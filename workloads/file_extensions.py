"""Endings of files' names, and what is written under them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workloads.errors import InputError

FOLDER = ("",)
"""The endings that a folder may have."""
TEXT = (".txt", ".txt.gz", ".dat", ".dat.gz", ".log", ".log.gz", ".gz")
"""The endings that a text file may have, besides that of its format."""
_PACKED = frozenset((".gz", ".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz"))
_FILES = _PACKED | {
    ".arrow", ".avro", ".csv", ".dat", ".dax", ".db", ".doc", ".docx", ".feather", ".h5", ".hdf5", ".htm",
    ".html", ".ini", ".ipynb", ".jpeg", ".jpg", ".json", ".jsonl", ".log", ".md", ".ndjson", ".npy", ".npz",
    ".ods", ".orc", ".parquet", ".pdf", ".pickle", ".pkl", ".png", ".pq", ".py", ".sql", ".sqlite", ".svg",
    ".swf", ".toml", ".tr", ".tsv", ".txt", ".xls", ".xlsm", ".xlsx", ".xml", ".yaml", ".yml",
}  # fmt: skip


def extension_of(name: str) -> str:
    """Return the known ending of a file's name, in lower case; "" if there is none.

    Examples
    --------
    >>> extension_of("jobs.CSV.gz"), extension_of("trace-0.5"), extension_of(".tr")
    ('.csv.gz', '', '')
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes[-2:]]
    if not suffixes or suffixes[-1] not in _FILES:
        return ""
    packed = suffixes[-1] in _PACKED and suffixes[0] in _FILES
    return "".join(suffixes) if packed else suffixes[-1]


def check_extension(path: str | Path, what: str, allowed: Sequence[str], option: str | None = None) -> None:
    """Refuse a name whose ending is that of another kind of file; an existing folder keeps its name.

    Parameters
    ----------
    path : path
    what : str
        What is written: ``a folder of Parquet tables``.
    allowed : sequence of str
        Endings that it may have, the usual one first.
    option : str, optional
        Where the path was given, if it is not stated alone.

    Raises
    ------
    InputError
        It has the ending of another file; names a path that it may have.
    """
    path = Path(path)
    ending = extension_of(path.name)
    if not ending or ending in allowed or (allowed == FOLDER and path.is_dir()):
        return
    better = path.with_name(path.name[: -len(ending)] + allowed[0])
    wrong = f"what is written is {what}; its name cannot end in {ending}: want {better}"
    raise InputError(wrong if option is None else f"{option}: {path}: {wrong}", file=None if option else path)
