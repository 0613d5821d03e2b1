"""The interface of a family of schedulers: all that the rest of Emu calls.

A family is a package, named in `emu.families.registry`, with two modules: `keys`, whose `KEYS` are the keys that not
all families have, and `family`, whose `FAMILY` is the one object of `Family`: how a plan of the family is loaded, what
its runs write, and how that is compared, drawn and shown. What a family does not give is as here: nothing to show,
nothing to draw. The two are apart because a command line is read with the keys alone; `keys` imports no more than they
need, and so `emu --help` starts without pyarrow and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from workloads.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from actors.hosting.outcome import Outcome
    from actors.scheduler import Scheduler
    from emu.columns import Column
    from emu.configuration.config import Config
    from emu.configuration.loading import Loaded
    from emu.configuration.plan import Plan
    from emu.configuration.workload_cache import WorkloadCache
    from emu.report.drawing import Shown
    from emu.results.measures import Measure
    from emu.results.paired_comparison import Row, Runs, Tolerance
    from emu.results.result import Result
    from emu.sweeps.targets import Target

Figures = Mapping[str, Any]
"""The part of a summary that describes what a family schedules (`Family.heads`)."""


def _nothing_to_check(*_: Any) -> None:
    """Refuse nothing."""


def _no_explanation(result: Result, *_: Any) -> Any:
    """Refuse to explain."""
    raise InputError(f"what happens in a run of {result.family} is not explained yet", file=result.path)


def _no_others(*_: Any) -> list[int]:
    """Return none."""
    return []


def _keeps_parts(config: Config) -> bool:
    """Whether the table of parts is asked for."""
    return bool(config["output.tasks"])


def _only_all(figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the one group of a family without classes."""
    yield "all", ()


def _part_of_all(figures: Figures, group: str) -> Figures:
    """Return the figures of the one group of a family without classes."""
    return figures if group == "all" else {}


def _nodes_for_load(config: Config, plan: Plan, load: float, cache: WorkloadCache) -> int:
    raise ValueError(
        f"family {plan.family.name} has a number of nodes to search (`no_size` is empty), but no way to it"
    )


class Remedy(NamedTuple):
    """What addresses a cause of delay.

    Attributes
    ----------
    name : str
        A key, or a parameter of schedulers.
    does : str
        What it does, as a clause that follows the name.
    of : tuple of str
        The best-known schedulers that use it; of a key all do, where empty.
    group : str
        The group of jobs whose delay it addresses; empty: all.
    """

    name: str
    does: str
    of: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Family:
    """A family of schedulers: what its things are called, and the functions that the rest of Emu calls.

    Attributes
    ----------
    name : str
        Of what its schedulers schedule, such as ``jobs``.
    heads : str
        The table of what is scheduled, and the part of a summary that describes it; by default the family's name.
        Where it is that of another family, a summary has a second part, under the family's own name.
    one, part, node : str
        What one of them is called, what it consists of, and what it is scheduled on: ``job``, ``tasks``, ``node``.
    arrival, time, width : str
        The columns of arrivals, completion times and the number of parts: ``submit_s``, ``jct_s``, ``num_tasks``.
    tables : mapping
        The tables that its runs write: name without ``.parquet``, to its columns. The first has a row for each of what
        is scheduled, and ``timeline`` is another.
    further_columns : mapping
        What a table has besides, of some runs: a timeline with failures, or with the clock ``live``; tasks with events.
    about_tables : mapping
        The meaning of a row of each table, for the reference page.
    reference : (str, str)
        The text of the reference page before and after the tables; the first family's is empty.
    timeline_labels : (str, str, mapping)
        The labels of a timeline's two axes, and label to column of what the lower one shows.
    timeline_caption : str
        Of the figure of a timeline.
    metrics : tuple of str
        What is described of them; of completion times, which stand first, the name is empty.
    form : mapping
        The parts of its part of a summary under its own name (`emu.results.validation`).
    all_path : tuple of str
        Keys that lead from its part of a summary to the figures of all.
    nested : tuple of str
        Keys of its part of a summary below which there are groups.
    group_column : str
        What the column of groups is called in frames.
    group_titles : mapping
        The groups that figures show, in order, to what each is called there.
    shown : tuple of str
        The statistics that figures of completion times against an axis show.
    shares : mapping
        The shares that another figure against an axis shows: what it is called there, to its key in the family's part
        of a summary.
    defaults : mapping
        Defaults of keys, where this family has others.
    without : mapping
        Why it has not a key of other families, or not one of a table of them.
    optional : frozenset of str
        Tables that may be removed from a run directory.
    figures : tuple of str
        What the names of its figures begin with, besides ``cdf-``.
    notes_each_ignored_key : bool
        Whether a key that one of several schedulers ignores is reported; else only one that all ignore.
    no_size : str
        Why `emu size` cannot search a number of nodes for it; empty: it can, by `check_targets` and `nodes_for_load`.

    take : (what was read, or given in Python) -> workload
        The workload of this family; None if it is none.
    check : (config, schedulers, parameters of each)
        Refuse what a configuration asks of schedulers that they do not do.
    load : (config, schedulers, cache) -> Loaded
        Load what a configuration names, and check it.
    num_parts : (workload) -> int
        How many parts there are to run.
    arrivals_ns : (workload) -> ndarray of int64, shape (J,)
        When what is scheduled arrives, in order, nanoseconds.
    capacity : (plan) -> float
        What an offered load is a share of.
    at_load : (workload, capacity, load) -> workload
        The workload with its arrivals brought to an offered load.
    keeps_parts : (config) -> bool
        Whether what became of each part must be recorded.

    results : (plan, outcome) -> (tables, figures)
        The tables of a run, and entries for its summary; ``figures[heads]`` is its own part.
    add_waits : (plan, result, outcome, events, chosen) -> None
        Add to the tables of a result what its events tell of its parts. ``chosen`` has the numbers of what is recorded
        of what is scheduled; None: all.
    groups : (figures) -> pairs
        Each group that a summary describes, and the keys that lead there.
    part_of : (figures, group) -> figures
        The figures of a group; an empty mapping if it has none.

    values : (run, metric, group, warmup_s) -> ndarray of float64
        One of `metrics` of each of a group of what is scheduled, without those that arrive before the warm-up's end;
        NaN where there is none.
    compare : (results, warmup_s) -> list of Row
        A row for each scheduler and group.
    render_rows : (rows, head, tolerance, columns) -> str
        The rows of a comparison as a table.
    render_more : (results, warmup_s) -> str
        The other tables of a comparison.
    render_summary : (summary, columns) -> str
        The summary of a run, or of the runs of several seeds, as text.

    group_figures : (results, warmup_s) -> list of Shown
        The figures of runs that are compared.
    group_section : (results, warmup_s) -> list of str
        The tables of runs that are compared, as HTML.
    answers : (results) -> list of str
        Sentences for the beginning of a page of runs that are compared, besides those on completion times.
    run_facts : (run) -> mapping
        The facts of one run for its table, as name to text.

    check_targets : (plan, targets)
        Refuse targets of `emu size` on groups of which the workload has none.
    nodes_for_load : (config, plan, load, cache) -> int
        The number of nodes on which the workload of a plan offers a load.
    check_scheduler : (scheduler, run_twice)
        Raise AssertionError where a scheduler breaks what holds of every one of the family (`emu.testing`).
        ``run_twice`` goes from a name, a workload and arguments of `emu.run` to the result, and checks that it comes
        again.

    counters : () -> mapping
        The meaning of each counter, by its name.
    explained_from_all : bool
        Whether an explanation needs the events of all that is scheduled, and causes the table of parts.
    explain : (result, record, row, handled) -> Explanation
        Why one of them, by its row in the table, took as long as it did (`emu.explaining`).
    others : (result, record, row, handled) -> rows
        Of which others the events are wanted to explain one: those that held what it waited for.
    causes : (result, record, handled) -> pairs
        The row of each, and nanoseconds of its completion time by cause; the first cause is no delay.
    finer_causes : (result, record, handled) -> pairs
        The same with finer causes, for pages; by default `causes`.
    remedies : mapping
        What addresses each cause of delay, by its name among the finer ones.
    """

    # What its things are called.
    name: str
    heads: str = ""
    one: str
    part: str
    node: str = "node"
    arrival: str
    time: str
    width: str
    tables: Mapping[str, tuple[Column, ...]]
    further_columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    about_tables: Mapping[str, str] = field(default_factory=dict)
    reference: tuple[str, str] = ("", "")
    timeline_labels: tuple[str, str, Mapping[str, str]]
    timeline_caption: str = "Utilisation over time"
    metrics: tuple[str, ...] = ("",)
    form: Figures = field(default_factory=dict)
    all_path: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    group_column: str = "group"
    group_titles: Mapping[str, str]
    shown: tuple[str, ...] = ("p50", "p90", "p99")
    shares: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    figures: tuple[str, ...] = ()
    notes_each_ignored_key: bool = False
    no_size: str = "it has no number of nodes"

    # From a configuration to a plan.
    take: Callable[[Any], Any]
    check: Callable[[Config, tuple[Scheduler, ...], tuple[dict[str, Any], ...]], None] = _nothing_to_check
    load: Callable[[Config, tuple[Scheduler, ...], WorkloadCache], Loaded]
    num_parts: Callable[[Any], int]
    arrivals_ns: Callable[[Any], Any]
    capacity: Callable[[Plan], float]
    at_load: Callable[[Any, float, float], Any]
    keeps_parts: Callable[[Config], bool] = _keeps_parts

    # From an outcome to tables and a summary.
    results: Callable[[Plan, Outcome], tuple[dict[str, pa.Table | None], dict[str, Any]]]
    add_waits: Callable[..., None] = lambda *_: None
    groups: Callable[[Figures], Iterator[tuple[str, tuple[str, ...]]]] = _only_all
    part_of: Callable[[Figures, str], Figures] = _part_of_all

    # Comparison and tables.
    values: Callable[[Result, str, str, float], Any]
    compare: Callable[[Runs, float], list[Row]]
    render_rows: Callable[[Sequence[Row], str, Tolerance, Sequence[Measure]], str]
    render_more: Callable[[Runs, float], str] = lambda results, warmup_s: ""
    render_summary: Callable[[Mapping[str, Any], Sequence[Measure]], str]

    # Figures and pages.
    group_figures: Callable[[Runs, float], list[Shown]] = lambda results, warmup_s: []
    group_section: Callable[[Runs, float], list[str]] = lambda results, warmup_s: []
    answers: Callable[[Runs], list[str]] = lambda results: []
    run_facts: Callable[[Result], dict[str, str]] = lambda run: {}

    # `emu size`, and `emu.testing`.
    check_targets: Callable[[Plan, Sequence[Target]], None] = _nothing_to_check
    nodes_for_load: Callable[[Config, Plan, float, WorkloadCache], int] = _nodes_for_load
    check_scheduler: Callable[[Scheduler, Callable[..., Result]], None] = _nothing_to_check

    # Why what is scheduled took as long as it did.
    counters: Callable[[], Mapping[str, str]] = dict
    explained_from_all: bool = False
    explain: Callable[..., Any] = _no_explanation
    others: Callable[..., list[int]] = _no_others
    causes: Callable[..., Any] = _no_explanation
    finer_causes: Callable[..., Any] | None = None
    remedies: Mapping[str, Sequence[Remedy]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the table of what is scheduled as the family, where it has no other name."""
        object.__setattr__(self, "heads", self.heads or self.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a summary that are its own: that of `heads` first."""
        return tuple(dict.fromkeys((self.heads, self.name)))
