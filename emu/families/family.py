"""A family of schedulers: what its things are called, and where the functions are that the rest of Emu calls.

A family is a package, named in `emu.families.registry`, with two modules: `keys`, whose `KEYS` are the keys that not
all families have, and `family`, whose `FAMILY` is the one object of `Family`. The two are apart because a command line
is read with the keys alone; `keys` imports no more than they need, so that `emu --help` starts without pyarrow.

Its functions are grouped by who calls them. Each group is a dataclass that stands beside its callers, and a family has
one object of it: ``family[Loading].load(…)``. A group that a family does not give has its defaults.

====================================  =================================================
`emu.configuration.loading.Loading`   a workload and a cluster of a configuration
`emu.results.result.Summarising`      tables and summary of a run
`emu.results.paired_comparison.Comparing`  several schedulers, as numbers and in tables
`emu.report.plots.Drawing`            figures and pages
`emu.explaining.causes.Causes`        why something took as long as it did
`emu.sweeps.targets.Sizing`           `emu size`
====================================  =================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from actors.scheduler import Scheduler
    from emu.columns import ResultTable

Figures = Mapping[str, Any]
"""The part of a summary that describes what a family schedules (`Family.heads`)."""
T = TypeVar("T")


def _only_all(figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the one group of a family without classes."""
    yield "all", ()


def _part_of_all(figures: Figures, group: str) -> Figures:
    """Return the figures of the one group of a family without classes."""
    return figures if group == "all" else {}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Family:
    """A family of schedulers.

    Attributes
    ----------
    name : str
        What its schedulers schedule, such as ``jobs``.
    one, part, node : str
        The words for one of them, its parts, and what it is scheduled on: ``job``, ``tasks``, ``node``.
    coordinator : str
        What the coordinator of a run is called, with ``{}`` for its scheduler.
    arrival, time, width : str
        The columns of arrivals, completion times and the number of parts: ``submit_s``, ``jct_s``, ``num_tasks``.
    tables : mapping
        The tables that its runs write, by name without ``.parquet``. The first has a row for each of what is scheduled,
        and ``timeline`` is another.
    metrics : tuple of str
        What summaries describe. Completion times come first, with an empty name.
    form : mapping
        The form of its part of a summary (`emu.results.validation`).
    group_column : str
        What the column of groups is called in frames.
    group_titles : mapping
        The groups that figures show, in order, to their titles.
    defaults : mapping
        Its defaults of keys that are not those of other families.
    without : mapping
        By key, or table of keys, that other families have and it does not: why.
    also_runs : tuple of str
        Other families whose schedulers it can run, with its own, or where one of the keys `asked_by` is given.
    asked_by : tuple of str
        Keys that the others do not have.
    figures : tuple of str
        How the names of its figures begin, besides ``cdf-``.
    notes_each_ignored_key : bool
        Whether a note names each key that any scheduler ignores; else only keys that all schedulers ignore.
    take : (what was read, or given in Python) -> workload
        The workload of this family; None for a workload of another family.
    groups : (figures) -> pairs
        Each group that a summary describes, and the keys that lead there.
    part_of : (figures, group) -> figures
        The figures of a group; an empty mapping if it has none.
    in_group : (table of what is scheduled, group) -> ndarray of bool
        Which rows belong to a group.
    counters : () -> mapping
        The meaning of each counter, by its name.
    draw_case : (scheduler, seed, parameters) -> Case
        A small, difficult emulation (`emu.families.drawn_cases`); None where the family has none.
    check_case : (scheduler, case, result)
        Raise AssertionError where the result of a case breaks an invariant of the family (`emu.testing`).
    functions : tuple
        The groups of its functions.
    """

    name: str
    one: str
    part: str
    node: str = "node"
    coordinator: str = "{}"
    arrival: str
    time: str
    width: str
    tables: Mapping[str, ResultTable]
    metrics: tuple[str, ...] = ("",)
    form: Figures = field(default_factory=dict)
    group_column: str = "group"
    group_titles: Mapping[str, str]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    also_runs: tuple[str, ...] = ()
    asked_by: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    notes_each_ignored_key: bool = False
    take: Callable[[Any], Any]
    groups: Callable[[Figures], Iterator[tuple[str, tuple[str, ...]]]] = _only_all
    part_of: Callable[[Figures, str], Figures] = _part_of_all
    in_group: Callable[[Any, str], Any] = lambda table, group: [group == "all"] * table.num_rows
    counters: Callable[[], Mapping[str, str]] = dict
    draw_case: Callable[[Scheduler, int, Mapping[str, Any]], Any] = lambda *_: None
    check_case: Callable[[Scheduler, Any, Any], None] = lambda *_: None
    functions: tuple[object, ...]

    def __getitem__(self, group: type[T]) -> T:
        """Return a group of its functions by its type: with the defaults where the family does not give it."""
        return next((own for own in self.functions if isinstance(own, group)), None) or group()

    def shown_groups(self, figures: Iterable[Figures]) -> list[str]:
        """Return the groups of its titles that any of these figures have; all, where no class of them is apart."""
        named = {name for of_run in figures for name, _ in self.groups(of_run)}
        found = [group for group in self.group_titles if group in named]
        return found if any(" " not in group for group in found) else ["all", *found]

    @property
    def heads(self) -> str:
        """The name of the table of what is scheduled, and of the part of a summary that describes it.

        Where another family has the same name, a summary has a second part, under the family's own name.
        """
        return next(iter(self.tables))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its parts of a summary: `heads` first."""
        return tuple(dict.fromkeys((self.heads, self.name)))
