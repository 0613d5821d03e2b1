"""The interface of a family of schedulers: all that the rest of Emu calls.

A family is a subclass of `Family` and one object of it, named in `emu.families.registry`. It defines its keys,
how a plan of it is loaded, what its runs write, and how that is compared, drawn and shown. What it does not say is as
here: nothing to show, nothing to draw. Methods import what they need when they are called, so that a command that
needs little of a family imports little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa

    from actors.hosting.outcome import Outcome
    from actors.scheduler import Scheduler
    from emu.columns import Column
    from emu.configuration.config import Config
    from emu.configuration.kinds import Key
    from emu.configuration.loading import Loaded
    from emu.configuration.memo import Memo
    from emu.configuration.plan import Plan
    from emu.report.drawing import Shown
    from emu.results.measures import Measure
    from emu.results.paired import Row, Runs, Tolerance
    from emu.results.result import Result
    from emu.sweeps.targets import Target

Figures = Mapping[str, Any]
"""The part of a summary that has a family's name."""


class Family(ABC):
    """A family of schedulers.

    Attributes
    ----------
    name : str
        Of what its schedulers schedule, such as ``jobs``: also the table of it, and its part of a summary.
    one, part, node : str
        What one of them is called, what it consists of, and what it is scheduled on: ``job``, ``tasks``, ``node``.
    time, width : str
        The columns of completion times and of the number of parts: ``jct_s``, ``num_tasks``.
    metrics : tuple of str
        What is described of them; of completion times, which stand first, the name is empty.
    all_path : tuple of str
        Keys that lead from its part of a summary to the figures of all.
    nested : tuple of str
        Keys of its part of a summary below which there are groups.
    group_column : str
        What the column of groups is called in frames.
    shown : tuple of str
        The statistics that figures against an axis show.
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
        Why `emu size` cannot search a number of nodes for it; empty: it can.
    timeline_caption : str
        Of the figure of a timeline.
    """

    name: ClassVar[str]
    one: ClassVar[str]
    part: ClassVar[str]
    node: ClassVar[str] = "node"
    time: ClassVar[str]
    width: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ("",)
    all_path: ClassVar[tuple[str, ...]] = ()
    nested: ClassVar[tuple[str, ...]] = ()
    group_column: ClassVar[str] = "group"
    shown: ClassVar[tuple[str, ...]] = ("p50", "p90", "p99")
    defaults: ClassVar[Mapping[str, Any]] = {}
    without: ClassVar[Mapping[str, str]] = {}
    optional: ClassVar[frozenset[str]] = frozenset()
    figures: ClassVar[tuple[str, ...]] = ()
    notes_each_ignored_key: ClassVar[bool] = False
    no_size: ClassVar[str] = "it has no number of nodes"
    timeline_caption: ClassVar[str] = "Utilisation over time"

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys that not all families have; two may have the same one."""
        return ()

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        """The tables that its runs write: name without ``.parquet``, to its columns.

        The first has a row for each of what is scheduled, and ``timeline`` is another.
        """

    @property
    def about_tables(self) -> Mapping[str, str]:
        """The meaning of a row of each table, for the reference page."""
        return {}

    def reference(self) -> tuple[str, str]:
        """Return the text of the reference page before and after the tables."""
        return f"# Runs of {self.name}\n", ""

    def columns(self, table: str, names: Sequence[str]) -> tuple[Column, ...]:
        """Return the columns that a table must have, which may depend on those that are there."""
        return self.tables[table]

    @property
    def form(self) -> Figures:
        """The parts of its part of a summary (`emu.results.shapes`)."""
        return {}

    # From a configuration to a plan.

    @abstractmethod
    def take(self, given: Any) -> Any:
        """Return the workload of this family that was read, or given in Python; None if it is none."""

    def check(
        self, config: Config, schedulers: tuple[Scheduler, ...], parameters: tuple[dict[str, Any], ...]
    ) -> None:
        """Refuse what a configuration asks of schedulers that they do not do."""

    @abstractmethod
    def load(self, config: Config, schedulers: tuple[Scheduler, ...], memo: Memo) -> Loaded:
        """Load what a configuration names, and check it."""

    @abstractmethod
    def num_parts(self, workload: Any) -> int:
        """Return how many parts there are to run."""

    @abstractmethod
    def arrivals_ns(self, workload: Any) -> Any:
        """Return when what is scheduled arrives, in order: int64 (J,), nanoseconds."""

    @abstractmethod
    def capacity(self, plan: Plan) -> float:
        """Return what an offered load is a share of."""

    @abstractmethod
    def at_load(self, workload: Any, capacity: float, load: float) -> Any:
        """Return a workload with its arrivals brought to an offered load."""

    def keeps_parts(self, config: Config) -> bool:
        """Whether what became of each part must be recorded."""
        return bool(config["output.tasks"])

    # From an outcome to tables and a summary.

    @abstractmethod
    def results(self, plan: Plan, outcome: Outcome) -> tuple[dict[str, pa.Table | None], dict[str, Any]]:
        """Return the tables of a run, and entries for its summary; ``figures[name]`` is its own part."""

    def groups(self, figures: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each group that a summary describes, and the keys that lead there."""
        yield "all", self.all_path

    def group_names(self) -> tuple[str, ...]:
        """Return the names of the groups that figures show, in order."""
        return ("all",)

    def part_of(self, figures: Figures, group: str) -> Figures:
        """Return the figures of a group; an empty mapping if it has none."""
        return figures if group == "all" else {}

    def group_title(self, group: str) -> str:
        """Return what a group is called in a figure."""
        return f"{group} {self.name}"

    # Comparison and tables.

    @abstractmethod
    def compare(self, results: Runs, warmup_s: float) -> list[Row]:
        """Return a row for each scheduler and group."""

    @abstractmethod
    def render_rows(
        self, rows: Sequence[Row], head: str, tolerance: Tolerance, columns: Sequence[Measure]
    ) -> str:
        """Return the rows of a comparison as a table."""

    def render_more(self, results: Runs, warmup_s: float) -> str:
        """Return the other tables of a comparison."""
        return ""

    @abstractmethod
    def render_summary(self, summary: Mapping[str, Any], columns: Sequence[Measure]) -> str:
        """Return the summary of a run, or of the runs of several seeds, as text."""

    # Figures and pages.

    def group_figures(self, results: Runs, warmup_s: float) -> list[Shown]:
        """Return the figures of runs that are compared."""
        return []

    def group_section(self, results: Runs, warmup_s: float) -> list[str]:
        """Return the tables of runs that are compared, as HTML."""
        return []

    def run_facts(self, run: Result) -> dict[str, str]:
        """Return the facts of one run for its table, as name to text."""
        return {}

    @abstractmethod
    def timeline_labels(self) -> tuple[str, str, Mapping[str, str]]:
        """Return the labels of a timeline's two axes, and label to column of what the lower one shows."""

    # `emu size`: of families whose number of nodes can be searched.

    def check_targets(self, plan: Plan, targets: Sequence[Target]) -> None:
        """Refuse targets on groups of which the workload has none."""

    def nodes_for_load(self, config: Config, plan: Plan, load: float, memo: Memo) -> int:
        """Return the number of nodes on which the workload of a plan offers a load."""
        raise ValueError(
            f"family {self.name} has a number of nodes to search (`no_size` is empty), but no way to it"
        )

    # `emu.testing`.

    def check_scheduler(self, scheduler: Scheduler, run_twice: Callable[..., Result]) -> None:
        """Raise AssertionError where a scheduler breaks what holds of every one of the family.

        Parameters
        ----------
        scheduler : Scheduler
        run_twice : callable
            From a name, a workload and arguments of `emu.run` to the result; checks that it comes again.
        """
