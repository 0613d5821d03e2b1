"""CoflowLib instances: coflows with weights and deadlines on a switch of M machines [1]_.

Lines, with blank ones between the parts: ``type`` (0 synthetic, 1 Facebook), ``coflows``; for each coflow
``id weight arrival deadline flows`` and for each of its flows ``flow_id volume 2 ingress egress``; ``ports``, and
for each port ``port capacity``. Ports 1..M are ingress ports, M+1..2M egress ports: here 0..M-1 on both sides.
The 2 is the number of ports on a flow's path. Deadlines are absolute. Instances come in zip archives of 40 or
100, of which one is read; `instance_names` returns their names.

Volumes and times have no unit. A unit of volume is taken as a byte and one of time as a second, so that a capacity of 1
is 1 byte/s; the metadata state it.

References
----------
.. [1] github.com/luuquangtrung/CoflowLib. Q.-T. Luu, O. Brun, R. El-Azouzi, F. De Pellegrini, B. J. Prabhu,
   C. Richier. DCoflow: Deadline-Aware Scheduling Algorithm for Coflows in Datacenter Networks. IFIP Networking 2022.
"""

from __future__ import annotations

import io
import zipfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from workloads.arrow import column, optional_column
from workloads.coflows import MAX_BYTES, MAX_PORTS, CoflowWorkload, make_coflow_workload
from workloads.errors import InputError
from workloads.groups import refuse_first
from workloads.hints import did_you_mean
from workloads.jobs import MAX_TIME_S
from workloads.limits import check_tasks, most_tasks
from workloads.readers.report import Progress, Report
from workloads.readers.source import lines_of, member_names, open_members
from workloads.readers.text import Fields, write_text

_COFLOW = "id weight arrival deadline flows"
_FLOW = "flow_id volume 2 ingress egress"
_PORT = "port capacity"


def list_coflowlib(path: str | Path) -> list[str]:
    """Return the names of the instances in a folder or archive, or of the one file, in order.

    Raises
    ------
    InputError
        It cannot be read, or holds no ``.txt`` file.
    """
    names = sorted(member_names(path))
    instances = [name for name in names if name.endswith(".txt")]
    if not instances and len(names) != 1:  # a single file may have any name
        raise InputError("holds no .txt file, as instances of CoflowLib are", file=path)
    return instances or names


def read_coflowlib(
    path: str | Path,
    *,
    instance: int | str | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
) -> CoflowWorkload:
    """Read an instance of CoflowLib: a text file, plain or gzip, or one of a folder or archive.

    Parameters
    ----------
    instance : int or str, optional
        Its number from 1 in the order of names, or its name, with or without folder and ``.txt``; needed where there
        are several.

    Raises
    ------
    InputError
        Names the file, the line and the field that is wrong; or the instances to choose from.
    """
    chosen = _choose(list_coflowlib(path), instance, path)
    for name, stream in open_members(path, progress=progress, wanted=lambda name: name == chosen):
        file = path if Path(path).name.removesuffix(".gz") == name else f"{path}/{name}"
        return _parse(stream, file, path, _stem(name), Report() if report is None else report)
    raise InputError(f"{chosen} is no longer there", file=path)


def write_coflowlib(workload: CoflowWorkload, path: str | Path) -> None:
    """Write an instance, gzip when the name ends in ``.gz``; it reads back as the same coflows.

    Numbers have as many digits as in the published instances (3 for arrivals, 5 for volumes and deadlines), or more to
    read back the same float. Flows are numbered again.

    Raises
    ------
    InputError
        A coflow has no deadline or a negative id, or a port no capacity, which the format cannot hold; or the file
        cannot be written.
    """
    _check_held(workload, path)
    write_text(path, _lines(workload))


def _check_held(workload: CoflowWorkload, path: str | Path) -> None:
    """Refuse coflows that the format cannot hold."""
    for table, name in (
        (workload.coflows, "deadline_s"),
        (workload.ports, "ingress_bytes_per_s"),
        (workload.ports, "egress_bytes_per_s"),
    ):
        if table[name].null_count:
            wrong = f"{table[name].null_count} rows lack it, but CoflowLib's format needs it for each"
            raise InputError(wrong, file=path, field=name)
    if column(workload.coflows, "coflow_id").min() < 0:
        raise InputError("CoflowLib's format has no negative ids", file=path, field="coflow_id")


def write_instances(workloads: Sequence[CoflowWorkload], path: str | Path) -> None:
    """Write workloads as a zip archive of instances, ``NAME/NAME_in001.txt`` and so on for a path ``NAME.zip``.

    The same workloads give the same bytes. `list_coflowlib` and `read_coflowlib` read them, in the same order.

    Raises
    ------
    InputError
        There are none, or as `write_coflowlib`.
    """
    if not workloads:
        raise InputError("an archive of no instances", file=path)
    for workload in workloads:
        _check_held(workload, path)
    stem, digits = Path(path).name.removesuffix(".zip"), max(3, len(str(len(workloads))))
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for number, workload in enumerate(workloads, start=1):
                member = zipfile.ZipInfo(
                    f"{stem}/{stem}_in{number:0{digits}}.txt"
                )  # with the time 1980, so that bytes are the same
                member.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(member, "w") as file:
                    file.writelines(part.encode() for part in _lines(workload))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from None


def instance_names(path: str | Path) -> tuple[str, ...]:
    """Return the name of each instance, without folder and ``.txt`` if these names are distinct.

    Raises
    ------
    InputError
        As `list_coflowlib`.
    """
    names = list_coflowlib(path)
    stems = [_stem(name) for name in names]
    return tuple(stems if len({*stems}) == len(stems) else names)


def recognises(path: Path) -> bool:
    """Return whether a file, or the first ``.txt`` member of a folder or archive, looks like an instance."""
    try:
        for name, stream in open_members(path):
            if path.is_file() or name.endswith(".txt"):
                rows = [line.split() for line in stream.read(512).splitlines() if line.strip()]
                numbers = len(rows) > 3 and all(f.isdigit() for f in (*rows[0], *rows[1]))
                return numbers and [len(row) for row in rows[:4]] == [1, 1, 5, 5]
    except InputError:
        pass
    return False


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(".gz").removesuffix(".txt")


def _choose(names: list[str], instance: int | str | None, path: str | Path) -> str:
    if instance is None:
        if len(names) == 1:
            return names[0]
        some = f"{_stem(names[0])} ... {_stem(names[-1])}"
        wrong = f"holds {len(names)} instances; choose one by its number, 1..{len(names)}, or name, {some}"
        raise InputError(wrong, file=path, field="instance")
    text = str(instance)
    if text.isdigit():
        if not 1 <= int(text[:19]) <= len(names):
            raise InputError(f"{text} is not in 1..{len(names)}", file=path, field="instance")
        return names[int(text) - 1]
    for name in names:
        if text in (name, _stem(name), f"{_stem(name)}.txt"):
            return name
    raise InputError(
        f"no instance {text!r}{did_you_mean(text, map(_stem, names))}", file=path, field="instance"
    )


def _parse(
    stream: io.BufferedReader, file: object, source: str | Path, name: str, report: Report
) -> CoflowWorkload:
    """Return the instance in a stream."""
    lines = _Lines(stream, file)
    most, _ = most_tasks(source)
    kind, _ = lines.one("type", 0, 2**31)
    num_coflows, _ = lines.one("coflows", 1, 2**40)
    read, stated = _Read(), ""
    for _ in range(num_coflows):
        stated = _read_coflow(lines, read, num_coflows, stated)
        if len(read.volume) > most:
            check_tasks(len(read.volume), "flows", file=source, line=read.line_of[-1])
    machines = len(capacity := _read_ports(lines, stated)) // 2
    froms, tos = (np.frombuffer(ports, np.int64) for ports in (read.ingress, read.egress))
    for side, ports, first in (("ingress", froms, 1), ("egress", tos, machines + 1)):
        wrong = f"is not an {side} port, {first}..{first + machines - 1}"
        off = (ports < first) | (ports >= first + machines)
        refuse_first(off, ports, wrong, side, file=file, lines=read.line_of)
    report.read("coflows", num_coflows)
    report.read("flows", len(read.volume))
    return make_coflow_workload(
        name,
        read.arrival,
        read.width,
        froms - 1,
        tos - machines - 1,
        np.frombuffer(read.volume),
        machines,
        coflow_id=[*read.ids],
        weight=read.weight,
        deadline_s=read.deadline,
        ingress_bytes_per_s=capacity[:machines],
        egress_bytes_per_s=capacity[machines:],
        metadata={
            "origin": f"CoflowLib {name}",
            "trace_type": str(kind),
            "units": "a unit of volume is taken as a byte, a unit of time as a second",
            **report.as_metadata(),
        },
        notes=report.notes(),
        origin=file,
    )


class _Read:
    """The columns of coflows and flows, and the lines where they are."""

    def __init__(self) -> None:
        self.ids: dict[int, int] = {}
        self.weight, self.arrival, self.deadline, self.volume = (array("d") for _ in range(4))
        self.width, self.ingress, self.egress, self.line_of = (array("q") for _ in range(4))


def _read_coflow(lines: _Lines, read: _Read, num_coflows: int, stated: str) -> str:
    """Read a coflow and its flows; return the hint about stated numbers. `stated` is that of the coflow before."""
    line = lines.next(_COFLOW)
    doubt = (
        stated if line.looks_like(rb"\d+|\d+ \S+ 2 \d+ \d+") else ""
    )  # it looks like the number of ports, or a flow
    with _adding(doubt):
        coflow = line.whole("id", 0, 2**63 - 1)
        if coflow in read.ids:
            line.refuse("id", f"coflow {coflow} occurs already in line {read.ids[coflow]}")
        read.ids[coflow] = line.line
        read.weight.append(_positive(line, "weight"))
        read.arrival.append(line.number("arrival", MAX_TIME_S))
        read.deadline.append(line.number("deadline", MAX_TIME_S))
        if read.deadline[-1] < read.arrival[-1]:
            line.refuse("deadline", "is before the arrival; deadlines are absolute times")
        read.width.append(line.whole("flows", 1, 2**40))
        line.end()
    counts = f"{read.width[-1]:,} as its flows, and the file {num_coflows:,} as its coflows"
    stated = f"; coflow {coflow} states {counts}: are there as many?"
    for _ in range(read.width[-1]):
        line = lines.next(_FLOW)
        with _adding(doubt or ("" if line.looks_like(rb"\S+ \S+ 2 \S+ \S+") else stated)):
            line.whole("flow_id", 0, 10**30)
            read.volume.append(_positive(line, "volume"))
            line.whole("path", 2, 2)
            read.ingress.append(line.whole("ingress", 1, MAX_PORTS))
            read.egress.append(line.whole("egress", 2, 2 * MAX_PORTS))
            line.end()
        read.line_of.append(line.line)
    return stated


@contextmanager
def _adding(text: str) -> Iterator[None]:
    """Within the block, errors end with a text."""
    try:
        yield
    except InputError as error:
        raise InputError(error.message + text, file=error.file, line=error.line, field=error.field) from None


def _read_ports(lines: _Lines, stated: str) -> list[float]:
    """Return the capacities of all ports, ingress ports first; refuse lines after them."""
    with _adding(stated):
        num_ports, line = lines.one("ports", 2, 2 * MAX_PORTS)
    if num_ports % 2:
        line.refuse("ports", f"{num_ports} ports; there are as many egress as ingress ports")
    capacity = []
    for due in range(1, num_ports + 1):
        line = lines.next(_PORT)
        if line.whole("port", 1, num_ports) != due:
            line.refuse("port", f"port {due} is due; ports are numbered 1, 2, ...")
        capacity.append(_positive(line, "capacity"))
        line.end()
    lines.end()
    return capacity


class _Lines:
    """The lines of a stream that are not blank, one after the other."""

    def __init__(self, stream: io.BufferedReader, file: object) -> None:
        self._file = file
        self._lines = ((number, f) for number, line in lines_of(stream, file) if (f := line.split()))
        self._last = 0

    def next(self, form: str) -> Fields:
        """Return the fields of the next line; the error at the end of the file names `form`."""
        found = next(self._lines, None)
        if found is None:
            wrong = (
                f"the file ends where {form!r} is due; is it truncated, or are there fewer than it states?"
            )
            raise InputError(wrong, file=self._file, line=self._last + 1)
        self._last = found[0]
        return Fields(self._file, *found, form)

    def one(self, name: str, least: int, most: int) -> tuple[int, Fields]:
        """Return the only field of the next line, a whole number, and that line."""
        line = self.next(name)
        number = line.whole(name, least, most)
        line.end()
        return number, line

    def end(self) -> None:
        """Refuse lines that are left."""
        if (found := next(self._lines, None)) is not None:
            raise InputError("more lines than there are ports", file=self._file, line=found[0])


def _positive(line: Fields, name: str) -> float:
    value = line.number(name, MAX_BYTES)
    if value == 0:
        line.refuse(name, "is 0; want a number above 0")
    return value


def _lines(workload: CoflowWorkload) -> Iterator[str]:
    arrays, machines = workload.arrays(), workload.num_ports
    kind = workload.metadata.get("trace_type", "0")
    yield f"{kind if kind.isdigit() and len(kind) < 10 else 0}\n{workload.num_coflows}\n\n"
    flows = zip(arrays.ingress.tolist(), arrays.egress.tolist(), arrays.size_bytes.tolist(), strict=True)
    coflows = zip(
        column(workload.coflows, "coflow_id").tolist(),
        column(workload.coflows, "weight").tolist(),
        column(workload.coflows, "arrival_s").tolist(),
        optional_column(workload.coflows, "deadline_s").tolist(),
        column(workload.coflows, "width").tolist(),
        strict=True,
    )
    for coflow, weight, arrival, deadline, width in coflows:
        head = f"{coflow} {_digits(weight, 0)} {_digits(arrival, 3)} {_digits(deadline, 5)} {width}\n"
        numbered = (
            f"{coflow}{i} {_digits(volume, 5)} 2 {ingress + 1} {egress + machines + 1}\n"
            for i, (ingress, egress, volume) in zip(range(1, width + 1), flows, strict=False)
        )
        yield f"{head}{''.join(numbered)}\n"
    capacity = [*arrays.ingress_bytes_per_s.tolist(), *arrays.egress_bytes_per_s.tolist()]
    yield f"{len(capacity)}\n"
    yield from (f"{port} {_digits(value, 0)}\n" for port, value in enumerate(capacity, start=1))


def _digits(value: float, places: int) -> str:
    """Return a number with so many decimal places, or in its shortest form where these are too few."""
    text = f"{value:.{places}f}"
    return text if float(text) == value else repr(value)
