"""Limits on the size of a workload: tasks or flows, and bytes that a file unpacks to.

A small file can state a large workload: 46 bytes of a trace name ten million instances, and SWIM's FB-2010 states 17.6
million tasks in 0.9 MB. So what a source makes is bounded by the memory that is free on this machine, `TASK_BYTES` a
task. Generators and transformations have no source, and make `GENERATED_TASKS` at most, as more is a slip.

A kilobyte of gzip holds a megabyte of text, and one of Parquet gigabytes of it. So what a file unpacks to is bounded by
its size: `RATIO` bytes a byte on disk, but always `FREE_BYTES`, and of Parquet `FREE_TEXT_BYTES` beside its numbers,
which are bounded as rows. No public trace comes near: the largest, Alibaba's batch_instance, unpacks to 6 times its
size. `max_tasks` and `max_bytes` are options of every reader and generator that take the place of these limits; what
the memory cannot hold even at `NUMBER_BYTES` a task is refused whatever they are.

Limits are checked before the memory is taken; bytes are counted as they are unpacked.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from workloads.errors import InputError

TASK_BYTES = 100
"""Of a task, flow or row while it is read: 25 to 60 were measured, most of a folder of Parquet."""
NUMBER_BYTES = 8
"""Of a task, flow or row at least, whatever limit is given: one number, as a duration or a size."""
ROW_OBJECTS_BYTES = 400
"""Of a row that becomes objects of Python: 350 were measured, most of what job a row is of."""
GENERATED_TASKS = 10_000_000
FREE_BYTES = 16 << 20
RATIO = 100
MOST_TASKS = 1 << 48
"""More than any memory holds, so `max_tasks` is at most this: sums of fewer are exact as int64 and as float64."""
FREE_TEXT_BYTES = 160_000_000
"""Of Parquet, where compression leaves nearly nothing of what repeats."""
LINE_BYTES = 32 << 20
"""No line may be longer, for it is held in memory; `max_bytes` takes the place of this, too."""


@dataclass(frozen=True)
class Limits:
    """Limits that a user set in place of those derived from the size of the source; None: the latter apply.

    Attributes
    ----------
    max_tasks : int, optional
        Tasks of a workload of jobs or DAGs, flows of one of coflows, rows of a table of a trace.
    max_bytes : int, optional
        Bytes that one file unpacks to.
    """

    max_tasks: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{value!r} is not a whole number above 0", field=name)
        if self.max_tasks is not None and self.max_tasks > MOST_TASKS:
            raise InputError(f"no machine holds {self.max_tasks:,} tasks", field="max_tasks")


LIMIT_NAMES = tuple(field.name for field in fields(Limits))
_NONE = Limits()
_now: ContextVar[Limits] = ContextVar("limits", default=_NONE)


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Apply limits within a ``with`` block.

    Raises
    ------
    InputError
        In place of MemoryError: a limit that was given lets in what the memory does not hold.
    """
    before = _now.set(limits)
    try:
        yield
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        raise InputError(f"the workload does not fit in memory{said}; read or make less of it") from None
    finally:
        _now.reset(before)


def take_limits(options: Mapping[str, Any] | None) -> tuple[Limits, dict[str, Any]]:
    """Return the limits among options, as values or as text, and the other options.

    Raises
    ------
    InputError
        A limit is not a whole number above 0, or not a size.
    """
    from workloads.options import read_options

    given = {name: value for name, value in (options or {}).items() if value is not None}
    own = {name: given.pop(name) for name in LIMIT_NAMES if name in given}
    return Limits(**read_options("", Limits, own)), given


def check_tasks(
    count: float,
    what: str = "tasks",
    *,
    file: Any = None,
    line: int | None = None,
    field: str | None = None,
    each_bytes: int = TASK_BYTES,
) -> None:
    """Refuse more tasks, flows or rows than the limit; `file` is the source, if there is one.

    Raises
    ------
    InputError
        There are more; names the limit, and the option that raises it if that can help.
    """
    most, why = most_tasks(file, each_bytes)
    if count <= most:
        return
    if count <= MOST_TASKS:
        free, allows = free_bytes(), ""
        if free is None or count * NUMBER_BYTES <= free:
            allows = f"; --set workload_options.max_tasks={_round_up(count)} allows them"
        wrong = f"makes {count:,.0f} {what}, more than {most:,}{why}{allows}"
    else:  # of any number of digits, or no number
        wrong = f"makes more than {MOST_TASKS:,} {what}, which no machine holds"
    raise InputError(wrong, file=file, line=line, field=field)


def add_tasks(total: int, more: int, *, file: Any = None, line: int | None = None) -> int:
    """Return a total of tasks with more added: exact, whatever a file states, and small enough for an int64.

    Raises
    ------
    InputError
        No machine holds so many.
    """
    total += more
    if total > MOST_TASKS:
        check_tasks(total, file=file, line=line)
    return total


def most_tasks(source: Any = None, each_bytes: int = TASK_BYTES) -> tuple[int, str]:
    """Return the most tasks or flows of a source, of `each_bytes` in memory each, and the reason in words."""
    limit, free = _now.get().max_tasks, free_bytes()
    if limit is not None and (free is None or limit <= free // NUMBER_BYTES):
        return limit, ", the limit that was given"
    if free is None or (limit is None and source is None):
        return GENERATED_TASKS, ""
    at_least = "" if limit is None else f" at {NUMBER_BYTES} bytes each"
    most = free // (each_bytes if limit is None else NUMBER_BYTES)
    return most, f", what {free / 2**30:.1f} GiB of free memory hold{at_least}"


def most_bytes(packed_bytes: int) -> int:
    """Return how many bytes a file of a size may unpack to."""
    limit = _now.get().max_bytes
    return max(FREE_BYTES, RATIO * packed_bytes) if limit is None else limit


def most_parquet_bytes(packed_bytes: int) -> int:
    """Return how many bytes the columns of a Parquet file of a size may unpack to, beside numbers."""
    limit = _now.get().max_bytes
    return max(FREE_TEXT_BYTES, RATIO * packed_bytes) if limit is None else limit


def most_line_bytes() -> int:
    """Return how long a line may be."""
    limit = _now.get().max_bytes
    return LINE_BYTES if limit is None else limit


def unpacks_to_more(given_bytes: int, packed_bytes: int) -> str:
    """Return the error for a file that unpacks to more bytes than allowed."""
    return (
        f"unpacks to more than {given_bytes >> 20:,} MiB from {packed_bytes:,} bytes, as no trace does; "
        "--set workload_options.max_bytes='10 GiB' allows so many"
    )


def size_of(source: str | os.PathLike[str]) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 if it does not exist."""
    if not os.path.isdir(source):
        return os.path.getsize(source) if os.path.isfile(source) else 0
    paths = (os.path.join(at, name) for at, _, names in os.walk(source) for name in names)
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path))


def _round_up(count: float) -> int:
    """Return a number with two digits that is not below `count`."""
    step = 10 ** max(len(str(int(count))) - 2, 0)
    return -int(-count // step) * step


# The memory that this process can still take: of the machine, of its container and of its own limit.

_CGROUPS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)
"""For both versions of control groups: the limit, the memory in use, and the part of it that caches files."""


def free_bytes() -> int | None:
    """Return how many bytes of memory are free, whatever limits them most; None where nothing says it."""
    found = []
    for ask in (_of_machine, _of_container, _of_process):
        with suppress(OSError, ValueError, StopIteration):
            found.append(max(ask(), 0))
    return min(found, default=None)


def _of_machine() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) << 10


def _of_container(at: Path = Path("/sys/fs/cgroup")) -> int:
    for limit, used, files in _CGROUPS:
        if (at / limit).exists():
            most = int((at / limit).read_text())  # "max" is not a number: no limit
            lines = (at / used).with_name("memory.stat").read_text().splitlines()
            giving_way = next((int(line.split()[1]) for line in lines if line.startswith(f"{files} ")), 0)
            return most - int((at / used).read_text()) + giving_way
    raise ValueError("no control group")


def _of_process() -> int:
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        raise ValueError("no limit")
    return most - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
