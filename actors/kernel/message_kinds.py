"""The kinds of messages: what a kind is, the table of all, and how two numbers share a column.

Each kind is declared by a call of `kind` in the `messages.py` of a folder (kernel, nodes, fabric, machines). What a
message carries is known there alone: the functions that send and read it are made from the declaration
(`actors.kernel.message_functions`).

A kind is a whole number, ``0xRNN``. R is the rank: at equal times completions come before messages, those before
heartbeats, those before arrivals; RETRY comes when all else at its instant is handled, and decisions, which are not
messages, come last. NN tells the kinds of a rank apart; from 0xD0 on they are background messages, and a run is over
when only such messages are left. Numbers are unique over all families, so that actors of two families can share a
partition; jobs have NN from 0x00 on, coflows from 0x40 on, the network of DAG jobs from 0x90 on, DAG jobs from 0xA0 on,
and other families may take what is free.

A message has four columns, a to d, of 64 bits. A declaration names the field that each holds: ``c="start"``. Two fields
may share a column, the first in its lower 32 bits, or in as many as stand there: ``c="tasks_left, epoch"``,
``d="movable:1, mean_rest"``. A field that shares a column and may be none is stored as one more: ``b="task,
level:or_none"``. ``b="rate:float"`` holds the bits of a float. Times are in ns, rates in bytes per ns.
The field in column a tells to which job, or coflow, a recorded event belongs (`actors.worlds.Worlds.owners`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from actors.kernel.compiled import inlined

NONE = -1
HALF = 32  # bits of a column that two fields share


class Field(NamedTuple):
    """Where a message has a field: the column, the bits below it, its own bits, and what is added to it there."""

    column: str
    shift: int
    bits: int
    is_float: bool
    more: int

    def of(self, column: np.ndarray) -> np.ndarray:
        """Return the field's values from those of its column; NONE where that is negative and they share it."""
        if self.is_float:
            return np.ascontiguousarray(column).view(np.float64)
        if self.bits == 64:
            return column
        return np.where(column < 0, NONE, self.part_of(column))

    def part_of(self, column: Any) -> Any:
        """Return the field from a column that it shares, which is not negative."""
        return ((column >> self.shift) & ((1 << self.bits) - 1)) - self.more


class Kind(NamedTuple):
    """A kind of messages.

    Attributes:
        family: the families that have it, with spaces between; empty: all.
        about: from whom to whom, in words.
        columns: by column, the fields that it holds, as they were declared.
        fields: by name, where it is.
    """

    name: str
    number: int
    family: str
    about: str
    columns: Mapping[str, str]
    fields: Mapping[str, Field]

    @property
    def rank(self) -> int:
        """Its place among messages of one instant."""
        return self.number >> 8

    @property
    def is_background(self) -> bool:
        """Whether a run may be over while it waits."""
        return self.number & 0xFF >= 0xD0

    def read(self, columns: Sequence[int]) -> dict[str, int]:
        """Return what one message carries, by field, from its columns a to d; no float."""
        found = {}
        for name, field in self.fields.items():
            column = columns["abcd".index(field.column)]
            found[name] = column if field.bits == 64 or column < 0 else field.part_of(column)
        return found

    @property
    def owners(self) -> str:
        """What column a numbers, by the names of `Worlds.owners`."""
        return f"{self.columns['a']}s" if "a" in self.columns else ""


KINDS: dict[int, Kind] = {}
"""All kinds that have been declared, by number."""
FIELDS: dict[str, str] = {
    "job": "a job",
    "task": "a task, by its number over all jobs in workload order; none for a probe",
    "flow": "a flow",
    "node": "a node",
    "start": "when the task started, none if it did not",
    "has_long": "1: some work on the node is long",
    "level": "the job's level of constraints, counted over those of all sets; none without constraints",
}
"""The meaning of each field, by name."""
MOST_RANK = 15  # four bits of a message's key


def kind(number: int, name: str, family: str, about: str, **columns: str) -> Any:
    """Declare a kind; return its number, an int64 since numba compiles a callee again for every plain number.

    Raises:
        ValueError: the number or the name is taken, the number has no rank, or `FIELDS` lacks one of its fields.
    """
    if number in KINDS or any(known.name == name for known in KINDS.values()):
        raise ValueError(f"message kind {name}, {number:#05x}: the number or the name is taken")
    if not 0 <= number >> 8 <= MOST_RANK:
        raise ValueError(f"message kind {name}, {number:#05x}: the rank is the third digit, 0 to f")
    KINDS[number] = describe(number, name, family, about, columns)
    return np.int64(number)


def describe(number: int, name: str, family: str, about: str, columns: Mapping[str, str]) -> Kind:
    """Return a kind, or a note, with its fields found in the columns.

    Raises:
        ValueError: `FIELDS` lacks one of its fields.
    """
    fields = {}
    for column, text in columns.items():
        shift, parts = 0, text.split(", ")
        for part in parts:
            field, _, form = part.partition(":")
            if field not in FIELDS:
                raise ValueError(f"message kind {name}: FIELDS has no meaning of {field!r}")
            bits = 64 - shift if part is parts[-1] else int(form or HALF)
            fields[field] = Field(column, shift, bits, form == "float", int(form == "or_none"))
            shift += bits
    return Kind(name, number, family, about, columns, fields)


@inlined
def share(low: int, high: int) -> int:
    """Return two fields as one column, the first in its lower half."""
    return low | high << HALF


@inlined
def low_half(column: int) -> int:
    """Return the first of two fields that share a column."""
    return column & ((np.int64(1) << HALF) - 1)


@inlined
def high_half(column: int) -> int:
    """Return the second of two fields that share a column."""
    return column >> HALF


@inlined
def bits_of(value: float) -> Any:
    """Return a float as a column."""
    return np.float64(value).view(np.int64)


@inlined
def float_of(column: int) -> float:
    """Return the float that a column holds."""
    bits: Any = np.int64(column)
    value: float = bits.view(np.float64)
    return value


def kinds_of(families: str) -> dict[int, Kind]:
    """The kinds that actors of families receive, by number; `families`: with spaces between."""
    wanted = {*families.split()}
    return {
        number: known
        for number, known in KINDS.items()
        if not known.family or wanted & {*known.family.split()}
    }


@inlined
def rank_of(number: int) -> int:
    """Return the rank of a kind."""
    return number >> 8


@inlined
def is_background(number: int) -> bool:
    """Return whether messages of a kind are background messages, which are not counted as work that is left."""
    return number & 0xFF >= 0xD0


@inlined
def is_of_network(number: int) -> bool:
    """Return whether messages of a kind go between agents and coordinator, or to the network that machines share."""
    low = number & 0xFF
    return 0x40 <= low < 0xA0 or low >= 0xF0  # which are background messages, too


PUBLISHED = kind(
    0x001, "PUBLISHED", "jobs", "shared state that changed in another partition", a="node", b="has_long"
)
"""The queue knows it, since it is not a message; `actors.kernel.messages` writes and reads it."""
FIRST_DECISION = np.int64(0x500)
"""From this kind on they are decisions: what a scheduler does when it has handled the messages of an instant."""
