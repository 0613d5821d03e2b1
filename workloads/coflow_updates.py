"""Updates of coflows while they run: tasks that restart or move, coflows that are deregistered.

A CSV file with a header::

    time_s,coflow_id,update,side,port,to
    12.5,3,restart,receiver,17,
    13,3,move,sender,4,90
    20,8,deregister,,,

- A *receiver* that restarts has lost all that it had: every flow of the coflow into its port is sent again in full, to
  the same port, or to that in `to` if it moves.
- A *sender* that restarts, or moves, sends those of its flows again in full that have not ended; what its receivers
  have, they keep.
- A coflow that is deregistered leaves before it is done; what it has not sent is never sent.

Flows of a coflow between the same two ports are one flow, so that a move to where the coflow has a flow makes that one
larger. Times are those of the run; updates of one instant are made in the order of their lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workloads.arrow import column
from workloads.coflows import CoflowArrays, CoflowWorkload
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S
from workloads.small_files import read_csv

MOST_LOST_BYTES = 2**62
"""So that the counter of lost bytes, an int64, holds what all updates of a workload lose."""
COLUMNS = ("time_s", "coflow_id", "update", "side", "port", "to")
KINDS = ("restart", "move", "deregister")
SIDES = ("sender", "receiver")
RESTART, MOVE, DEREGISTER = range(3)
SENDER, RECEIVER, NO_SIDE = 0, 1, -1
_SHOWN = 5  # ports that an error lists

Pair = tuple[int, int]


class Row(NamedTuple):
    """One update, as a line of the file has it; `port` and `to` are -1 where there is none."""

    time_s: float
    coflow_id: int
    kind: int
    side: int = NO_SIDE
    port: int = -1
    to: int = -1
    line: int | None = None


@dataclass(frozen=True, eq=False)
class CoflowUpdates:
    """U updates of coflows, by time, and the K flows that they stop.

    Attributes
    ----------
    time_ns, coflow, kind, side : ndarray of int64, shape (U,)
        `coflow` is the place in the workload.
    first_pair : ndarray of int64, shape (U + 1,)
        Its flows are those from ``first_pair[u]`` to ``first_pair[u + 1]``, in order of their ports: all that the
        coflow has at the port then, whether they have ended or not.
    pair, onto : ndarray of int64, shape (K, 2)
        Ingress and egress of such a flow, and of the flow that takes its place.
    notes : tuple of str
        Notes for the user.
    """

    time_ns: np.ndarray
    coflow: np.ndarray
    kind: np.ndarray
    side: np.ndarray
    first_pair: np.ndarray
    pair: np.ndarray
    onto: np.ndarray
    notes: tuple[str, ...] = ()


def load_updates(path: str | Path, workload: CoflowWorkload) -> CoflowUpdates:
    """Return the updates of a CSV file.

    Raises
    ------
    InputError
        A row is wrong: file, line and field are named.
    """
    path = Path(path)
    rows = [_read_row(line, values, path) for line, values in read_csv(path, COLUMNS)]
    if not rows:
        raise InputError(f"no updates; want rows of {','.join(COLUMNS)}", file=path)
    return make_updates(rows, workload, path)


def make_updates(rows: Iterable[Row], workload: CoflowWorkload, file: object = None) -> CoflowUpdates:
    """Return updates of a workload's coflows, sorted by time (stable), with the flows that each of them stops.

    Raises
    ------
    InputError
        A coflow or port that is not there (any more), a time before the coflow arrives, or more bytes that may be
        lost than are counted.
    """
    given = list(rows)
    ordered = sorted(given, key=lambda row: row.time_s)
    moved = sum(row is not other for row, other in zip(given, ordered, strict=True))
    notes = (f"times of {file or 'the updates'} were not in order: {moved} updates moved; sorted by time",)
    work, place = workload.arrays(), {int(c): i for i, c in enumerate(column(workload.coflows, "coflow_id"))}
    structure: dict[int, set[Pair]] = {}
    coflows, pairs, onto, counts = [], [], [], []
    for row in ordered:
        coflow = _coflow_of(row, place, work, file)
        flows = structure.setdefault(coflow, _pairs_of(work, coflow))
        stopped = _stopped(row, flows, workload.num_ports, file)
        if row.kind == DEREGISTER:
            structure[coflow] = set()
        new = [_moved(row, pair) for pair in stopped]
        if row.kind == MOVE:
            flows.difference_update(stopped)
            flows.update(new)
        coflows.append(coflow)
        counts.append(len(stopped))
        pairs += stopped
        onto += new
    sizes = np.add.reduceat(work.size_bytes, work.first_flow[:-1])
    if (most := math.fsum(sizes[coflow] for coflow in coflows)) >= MOST_LOST_BYTES:
        wrong = (
            f"{most:.2g} bytes may have to be sent again, and fewer than {MOST_LOST_BYTES:.2g} are counted"
        )
        raise InputError(wrong, file=file, field="size_bytes")
    return CoflowUpdates(
        time_ns=np.array([round(row.time_s * 1e9) for row in ordered], np.int64),
        coflow=np.array(coflows, np.int64),
        kind=np.array([row.kind for row in ordered], np.int64),
        side=np.array([row.side for row in ordered], np.int64),
        first_pair=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        pair=np.array(pairs, np.int64).reshape(-1, 2),
        onto=np.array(onto, np.int64).reshape(-1, 2),
        notes=notes if moved else (),
    )


def _coflow_of(row: Row, place: dict[int, int], work: CoflowArrays, file: object) -> int:
    """Return which coflow an update is of, once it is there."""
    coflow = place.get(row.coflow_id)
    if coflow is None:
        raise InputError(
            f"the workload has no coflow {row.coflow_id}", file=file, line=row.line, field="coflow_id"
        )
    arrival = int(work.arrival_ns[coflow])
    if round(row.time_s * 1e9) < arrival:
        raise InputError(
            f"{row.time_s:g} s is before coflow {row.coflow_id} arrives; want {arrival / 1e9:g} s or later",
            file=file,
            line=row.line,
            field="time_s",
        )
    return coflow


def _pairs_of(work: CoflowArrays, coflow: int) -> set[Pair]:
    """Return the ports of a coflow's flows."""
    own = slice(work.first_flow[coflow], work.first_flow[coflow + 1])
    return set(zip(work.ingress[own].tolist(), work.egress[own].tolist(), strict=True))


def _stopped(row: Row, flows: set[Pair], ports: int, file: object) -> list[Pair]:
    """Return the flows that an update stops."""
    if not flows:
        raise InputError(
            f"coflow {row.coflow_id} has been deregistered by an update before this one",
            file=file,
            line=row.line,
            field="coflow_id",
        )
    if row.kind == DEREGISTER:
        return sorted(flows)
    if row.kind == MOVE and (row.to == row.port or not 0 <= row.to < ports):
        what = (
            "the task is there already"
            if row.to == row.port
            else f"there is no port {row.to}; the workload has ports 0 to {ports - 1}"
        )
        raise InputError(what, file=file, line=row.line, field="to")
    found = sorted(pair for pair in flows if pair[row.side] == row.port)
    if not found:
        there = sorted({pair[row.side] for pair in flows})
        shown = ", ".join(map(str, there[:_SHOWN])) + (", ..." if len(there) > _SHOWN else "")
        raise InputError(
            f"coflow {row.coflow_id} has no {SIDES[row.side]} at port {row.port} then; it has {shown}",
            file=file,
            line=row.line,
            field="port",
        )
    return found


def _moved(row: Row, pair: Pair) -> Pair:
    """Return the ports that a flow has after an update."""
    if row.kind != MOVE:
        return pair
    return (row.to, pair[1]) if row.side == SENDER else (pair[0], row.to)


def _read_row(line: int, values: dict[str, str], path: Path) -> Row:
    """Return one update."""

    def wrong(field: str, message: str) -> InputError:
        return InputError(message, file=path, line=line, field=field)

    def choice(field: str, choices: tuple[str, ...]) -> int:
        if values[field] not in choices:
            near = did_you_mean(values[field], choices)
            raise wrong(field, f"{values[field]!r} is not one of {', '.join(choices)}{near}")
        return choices.index(values[field])

    def number(field: str) -> int:
        text = values[field]
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise wrong(field, f"{text!r} is not a whole number from 0 on")
        return int(text)

    try:
        time_s = float(values["time_s"])
    except ValueError:
        time_s = math.nan
    if not 0 <= time_s <= MAX_TIME_S:
        raise wrong("time_s", f"{values['time_s']!r} is not a time in seconds, from 0 to {MAX_TIME_S:g}")
    coflow_id, kind = number("coflow_id"), choice("update", KINDS)
    unused = {RESTART: ("to",), MOVE: (), DEREGISTER: ("side", "port", "to")}[kind]
    for field in unused:
        if values[field]:
            raise wrong(field, f"{values[field]!r} is not for {KINDS[kind]}; leave it empty")
    if kind == DEREGISTER:
        return Row(time_s, coflow_id, kind, line=line)
    to = number("to") if kind == MOVE else -1
    return Row(time_s, coflow_id, kind, choice("side", SIDES), number("port"), to, line)
