"""Objects of Kubernetes in JSON: a list, one object, or several one after the other, as ``kubectl --watch`` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from workloads.errors import InputError
from workloads.readers.report import Progress, Report
from workloads.readers.source import open_text, shown

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
