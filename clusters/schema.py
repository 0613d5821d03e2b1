"""The attributes of a node: the cluster table's columns, units, defaults and limits."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from workloads.arrow import described_field, from_numpy, from_strings
from workloads.constraints import OWN
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.units import format_quantity, parse_bandwidth, parse_size

MAX_NODES = 10_000_000
"""Actor ids have 24 bits: room for 16 million actors, schedulers and monitors among them."""

MAX_SLOTS = 1_000_000
RACK_SIZE = 40
DEFAULT_SLOTS = 1
MEMORY_PER_SLOT_BYTES = 4 * 1024**3
MACHINE_TYPE = "standard"

VERSION_STEP = 10**6
"""A version 3.10.2 is the number 3·10¹² + 10·10⁶ + 2, so that numbers compare as versions do."""

Kind = Literal["number", "version", "text", "tags", "own"]
Value = int | float | str

_OWN_NAME = re.compile(rf"{OWN}[^\s=!<>≠≤≥]*")  # what a constraint can name
_VERSION = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,6}))?(?:\.([0-9]{1,6}))?", re.ASCII)
_CLOCK = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)\s*([kMG]?Hz)?", re.ASCII)
_HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}


@dataclass(frozen=True)
class Attribute:
    """An attribute of nodes that a constraint may refer to.

    Attributes
    ----------
    name : str
        In descriptions of machine types and in constraints, where values have units: ``memory = "16 GiB"``.
    column : str
        In the cluster table, where the unit is in the name: ``memory_bytes``.
    kind : {"number", "version", "text", "tags", "own"}
        Numbers and versions have an order. Texts are compared for equality only. Tags are a set of names, in the
        table as one text with spaces between: a node equals a tag when it has it. An attribute of the user's own is
        any text, the empty one on nodes that lack it; in comparisons by size it is a number, 0 on nodes that lack it.
    type : pyarrow.DataType
        Of the column. Versions are int64 (see `VERSION_STEP`), texts dictionary-encoded.
    unit : str
        ``"1"``, ``"bytes"``, ``"bit/s"`` or ``"Hz"``; ``""`` for text.
    about : str
        Its meaning, for people.
    default : int, float, str or None
        Of nodes without a stated value; None if it follows from the node's slots, disks or number.
    least, most : float
        Limits of a number or a version.
    want : str
        The right values, for errors.
    """

    name: str
    column: str
    kind: Kind
    type: pa.DataType
    unit: str
    about: str
    default: Value | None
    least: float = 0
    most: float = math.inf
    want: str = "a number, 0 or more"

    def parse(self, value: object, what: str | None = None) -> Value:
        """Return a value in the form of the table, from text with its unit or from a plain number.

        Parameters
        ----------
        value : object
            Such as ``"16 GiB"``, ``"10 Gbps"``, ``"2.4 GHz"``, ``"3.10"``, ``"x86"``, ``16``; of tags, one
            name. Limits are not checked: a constraint may have any value.
        what : str, optional
            The name in errors; the attribute's by default.

        Returns
        -------
        int, float or str
            An int for versions and sizes, a float for other numbers, the text itself otherwise.

        Raises
        ------
        InputError
            The value is not of this kind; the message begins with `what`.

        Examples
        --------
        >>> ATTRIBUTES["port"].parse("10 Gbps"), ATTRIBUTES["kernel"].parse("3.10")
        (10000000000.0, 3000010000000)
        """
        reader = _READERS.get(self.unit if self.kind == "number" else self.kind, parse_number)
        return reader(value, what or self.name)

    def show(self, value: Any) -> str:
        """Return a value of the table for people, numbers with four digits and a unit that suits.

        Examples
        --------
        >>> ATTRIBUTES["clock"].show(2.4e9), ATTRIBUTES["kernel"].show(3000010000000)
        ('2.4 GHz', '3.10')
        """
        if self.kind == "version":
            return _show_version(value)
        if self.kind == "own":
            return str(value) or "none"
        return _show_quantity(value, self.unit) if self.kind == "number" else str(value)


def _show_version(value: int) -> str:
    major, rest = divmod(value, VERSION_STEP**2)
    minor, patch = divmod(rest, VERSION_STEP)
    return f"{major}.{minor}.{patch}" if patch else f"{major}.{minor}"


def _show_quantity(value: float, unit: str) -> str:
    if unit == "1":
        return f"{value:.4g}" if value < 1e4 else f"{value:,.0f}"
    if unit == "bytes":
        return format_quantity(value, "B", base=1024)
    return format_quantity(value, "bps" if unit == "bit/s" else unit)


def parse_number(value: object, what: str) -> float:
    """Return a finite number from text or a number; the error names `what`."""
    number = math.nan
    if isinstance(value, str | numbers.Real) and not isinstance(value, bool) and "_" not in str(value):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what}: {value!r} is not a number")
    return number


def _parse_clock(value: object, what: str) -> float:
    match = None if isinstance(value, bool) else _CLOCK.fullmatch(str(value).strip())
    hertz = float(Decimal(match[1]) * _HERTZ[match[2] or "Hz"]) if match else math.inf
    if not math.isfinite(hertz):
        raise InputError(f"{what}: {value!r} is not a clock speed such as '2.4 GHz'")
    return hertz


def _parse_version(value: object, what: str) -> int:
    match = _VERSION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:  # also the TOML number 3.10, which is 3.1
        raise InputError(
            f"{what}: {value!r} is not a version in quotes, of up to three numbers such as '3.10'"
        )
    major, minor, patch = (int(part or 0) for part in match.groups())
    return (major * VERSION_STEP + minor) * VERSION_STEP + patch


def _parse_text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"{what}: {value!r} is not a name in quotes")
    return value.strip()


def _parse_tag(value: object, what: str) -> str:
    if len(_parse_text(value, what).split()) > 1:
        raise InputError(f"{what}: {value!r} is more than one name")
    return _parse_text(value, what)


def _parse_own(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real):
        raise InputError(f"{what}: {value!r} is neither a text nor a number")
    return str(value)


_READERS: dict[str, Callable[[Any, str], Value]] = {
    "bytes": parse_size,
    "bit/s": parse_bandwidth,
    "Hz": _parse_clock,
    "version": _parse_version,
    "text": _parse_text,
    "tags": _parse_tag,
    "own": _parse_own,
}
_TEXT = pa.dictionary(pa.int32(), pa.string())


def _whole(name: str, about: str, default: int | None, least: int, most: int) -> Attribute:
    want = f"a number from {least:,} to {most:,}"
    return Attribute(name, name, "number", pa.int64(), "1", about, default, least, most, want)


def _measure(
    name: str, column: str, unit: str, about: str, default: Value | None, **limits: Any
) -> Attribute:
    kind = pa.int64() if unit == "bytes" else pa.float64()
    return Attribute(name, column, "number", kind, unit, about, default, **limits)


def _text(name: str, about: str, default: str, column: str = "") -> Attribute:
    return Attribute(name, column or name, "text", _TEXT, "", about, default, want="a name")


_ABOVE_0 = {"least": 1e-6, "most": 1e18}
_ALL = (
    _whole("slots", "tasks the node can run at once", DEFAULT_SLOTS, 1, MAX_SLOTS),
    _whole("rack", "rack of the node", None, 0, MAX_NODES),
    _measure("cores", "cpu_cores", "1", "cores; one a slot where not given", None),
    _measure("memory", "memory_bytes", "bytes", "memory; 4 GiB a slot where not given", None,
             most=2**63 - 1, want="a size below 8 EiB"),
    _measure("port", "port_bps", "bit/s", "speed of the Ethernet port; 1 Gbps where not given", 1e9,
             least=1, most=1e18, want="a speed above 0, in bit/s"),
    _text("type", "name of the machine type", MACHINE_TYPE, "machine_type"),
    _text("isa", "instruction set; x86 where not given", "x86"),
    _whole("cpus", "processors (sockets); 1 where not given", 1, 1, 1_000_000),
    _whole("min_disks", "disks that are always attached; 1 where not given", 1, 0, 1_000_000),
    _whole("max_disks", "disks the node has room for; as min_disks where not given", None, 0, 1_000_000),
    Attribute("kernel", "kernel", "version", pa.int64(), "", "kernel version, coded; 5.15 where not given",
              5 * VERSION_STEP**2 + 15 * VERSION_STEP, 0, 1000 * VERSION_STEP**2 - 1, "a coded version"),
    _text("platform", "family of the platform", "standard"),
    _measure("clock", "clock_hz", "Hz", "clock of the processors; 2.4 GHz where not given", 2.4e9,
             **_ABOVE_0, want="a clock speed above 0"),
    _text("accelerator", "accelerator, or none", "none"),
    _measure("speed", "speed", "1", "how many times faster than a standard node it runs tasks", 1.0,
             **_ABOVE_0, want="a number above 0"),
    _measure("price_per_hour", "price_per_hour", "1", "price of an hour of the node, in any one currency; 0 where not "
             "given", 0.0, most=1e9, want="a number, 0 or more"),
    Attribute("tags", "tags", "tags", _TEXT, "", "names of what else it has, with spaces between", "",
              want="names with spaces between"),
)  # fmt: skip

ATTRIBUTES: dict[str, Attribute] = {attribute.name: attribute for attribute in _ALL}
"""All attributes of nodes by name, in the order of the columns."""

CLUSTER_SCHEMA = pa.schema(
    [
        described_field("node_id", pa.int64(), "1", "0, 1, 2, … in row order"),
        *(described_field(a.column, a.type, a.unit, a.about) for a in _ALL),
    ],
    metadata={"schema_version": "1"},
)
"""One row per node."""


def is_own(name: str) -> bool:
    """Return whether a name is that of an attribute of the user's own."""
    return bool(_OWN_NAME.fullmatch(name))


def cluster_schema(columns: Iterable[str]) -> pa.Schema:
    """Return `CLUSTER_SCHEMA`, followed by those of the columns that are attributes of the user's own."""
    own = [described_field(name, _TEXT, "", "of the user's own") for name in columns if is_own(name)]
    return pa.schema([*CLUSTER_SCHEMA, *own], metadata=CLUSTER_SCHEMA.metadata)


def find_attribute(name: str) -> Attribute:
    """Return an attribute by its name or its column's, ``memory`` or ``memory_bytes``; or any of the user's own.

    Raises
    ------
    InputError
        There is no such attribute; the message names the known ones.
    """
    if is_own(name):
        return Attribute(name, name, "own", _TEXT, "", "of the user's own", "")
    found = ATTRIBUTES.get(name) or next((a for a in _ALL if a.column == name), None)
    if found is None:
        raise InputError(f"{name!r} is not an attribute of nodes{did_you_mean(name, ATTRIBUTES)}")
    return found


def with_defaults(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns, numbers or arrays, with the defaults of missing ones except racks."""
    filled: dict[str, Any] = {a.column: a.default for a in _ALL if a.default is not None} | dict(columns)
    filled.setdefault("cpu_cores", filled["slots"])
    filled.setdefault("memory_bytes", filled["slots"] * MEMORY_PER_SLOT_BYTES)
    filled.setdefault("max_disks", filled["min_disks"])
    return filled


def encode_texts(values: Iterable[str]) -> pa.DictionaryArray:
    """Return texts as a column of the table, with codes in order of first appearance."""
    code_of: dict[str, int] = {}
    codes = np.array([code_of.setdefault(value, len(code_of)) for value in values], np.int32)
    return pa.DictionaryArray.from_arrays(from_numpy(codes), from_strings(list(code_of)))


def join_tags(tags: Iterable[str]) -> str:
    """Return tags in the form of the table: each once, in order, with spaces between."""
    return " ".join(sorted(set(tags)))


def check_whole(
    what: str, value: Any, most: int, *, file: object = None, least: int = 1, line: int | None = None
) -> int:
    """Return a whole number in ``least..most``, or refuse it by name."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) <= most:
        raise InputError(
            f"{value!r} is not a whole number from {least:,} to {most:,}", file=file, line=line, field=what
        )
    return int(value)
