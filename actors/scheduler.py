"""The description of a scheduler: a name, parameters, the function that builds its world, and its loop."""

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from actors.causes import Remedy
from actors.kernel.turns import Turns
from actors.worlds import Worlds
from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.values import read_value

ALL_ALIKE = (("long_partition", "it treats all jobs alike"), ("estimates", "it uses no estimates"))
"""The keys that a scheduler ignores if it treats short and long jobs alike and uses no estimates."""
NO_QUEUES_AT_NODES = (
    "resources.passing",
    "its tasks start at once at their nodes, and none passes another there",
)
"""The key that a scheduler ignores if it sends tasks only to nodes that have room for them."""
COORDINATOR_COSTS = ("cost.per_update", "cost.per_flow", "cost.per_coflow", "cost.per_schedule")
"""The keys of what the decisions of a coordinator of coflows cost."""
NO_NETWORK = (
    *(
        (name, "input takes no time with network.scheduler=none")
        for name in (
            "fabric.port_speed",
            "network.registration",
            "network.shuffle",
            "network.waves",
            "network.skew",
            "network.input",
        )
    ),
    *((name, "network.scheduler=none has no coordinator") for name in COORDINATOR_COSTS),
)
"""The keys that a scheduler of DAG jobs ignores where no network moves the input of tasks."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a scheduler.

    Attributes:
        kind: one of `workloads.values.KINDS`: "integer", "number", "flag", "share" (0 to 1, takes "17%"),
            "duration" (seconds, takes "8 s"; the name ends in _s), "size" (bytes, takes "10 MB"; the name ends in
            _bytes), "choice", "text" or "any" (text that reads as a number or a truth value is one).
        low, high: inclusive bounds of numbers.
        needs: it has an effect only with one of these other parameters: if that is true, or above 0, or has one of the
            values that stand there, as in "pilots=senders|flows". Those that the scheduler lacks do not count.
        addresses: the causes of delay that it addresses, and how.
    """

    name: str
    default: Any
    kind: str
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    addresses: tuple[Remedy, ...] = ()

    @property
    def about(self) -> str:
        """The meaning of the parameter, and the parameters that it needs."""
        needs = " or ".join(f"`{need.replace('|', ' or ')}`" for need in self.needs)
        return f"{self.meaning}; goes with {needs}" if needs else self.meaning

    def parse(self, value: Any, scheduler: str) -> Any:
        """Return the value in the parameter's own type.

        Raises:
            InputError: the value is invalid; the message says what is valid.
        """
        what = f"parameter {self.name} of {scheduler}"
        return read_value(self.kind, value, what, low=self.low, high=self.high, choices=self.choices)


class Host(Protocol):
    """The Python side of one emulation."""

    def compile(self, world: Any, state: Any) -> None:
        """Compile the functions that the host calls, before the run begins."""

    def __call__(self, world: Any, state: Any) -> None:
        """Handle the event in `world.queue.now`."""

    def save(self) -> bytes:
        """Return the state of the host, for a checkpoint."""

    def load(self, saved: bytes) -> None:
        """Restore the state that `save` returned, perhaps in another process."""

    def share_done(self, world: Any, state: Any) -> float | None:
        """Return the estimated share of all its decisions that have been made, 0 to 1; None: it is not a user's."""
        return None

    def placed(self, error: InputError) -> InputError:
        """Return an error about what was decided, with the place of the code of a user that decided."""
        return error


@dataclass(frozen=True)
class Scheduler:
    """A named policy.

    Attributes:
        hybrid: it treats short and long jobs differently, and needs a cut-off.
        constrained: it is constraint-aware: tasks run only on nodes that satisfy their jobs' constraints.
        preempts: its nodes may evict running tasks for those of higher priority.
        gangs: it starts all tasks of a gang at once; its parameter `gangs` says which jobs are gangs.
        runs_again: of schedulers of jobs: over a network it hands out again tasks that had ended, whose output was lost
            with a machine (`actors.schedulers.jobs.late_binding`).
        plans: it plans when tasks start, those of a stage after all of its parents.
        global_view: parameters (or "always") that let it see other actors' state; only the clock `virtual`
            runs it then.
        ignores: keys of the configuration, or tables of them, that change nothing under it, each with the reason.
        updatable: it takes updates of coflows that are under way: "always", or with which value of a parameter,
            as in "rates=greedy".
        uses_deadlines: it is for coflows that have deadlines.
        refuses: values of its parameters that do not go together, and why.
        rule: by which it orders what waits, as a clause, such as "coflows that arrived earlier go first"; or what
            returns that for values of its parameters. Empty: `title`.
        priorities: for what priorities count under it, where that is not all jobs, as a clause.
        draws: it sends the probes, or tasks, of short jobs to nodes drawn at random. Where it chooses nodes for long
            jobs by work, it counts only what it has placed itself.
        considers: which nodes it compares for a task, with names of its parameters in braces; empty: all.
        waits: how jobs wait at it for room: "queue", none passes the first of its queue; "reports", until reports of
            nodes show room; "gangs", until all tasks of the first can start at once (it has the parameter `gangs`).
            Empty: they do not, or otherwise.
        worlds: what hosts must know of the worlds that it runs in, which are those of its family.
        build: setting -> (World, the policy's own state) at time 0.
        advance: the compiled loop, (world, state, until_ns, most_events) -> the stop reason.
        host: for loops that stop with PYTHON: setting -> the Python side of one emulation.
        grow: (world, state) -> the state with the world's containers, and with more room where its own is short, for
            which a loop stops with GROW.
        transfers: of a coordinator of coflows: the compiled loop of DAG jobs under it (`actors.transfers.joined`).
        series: for schedulers one of whose actors keeps more than what is recorded of every job: (setting, world, state
            at the end of a partition) -> copies of it, as the type that the family's `results` reads
            (`actors/schedulers/coflows/learned_and_admitted.py`); None in partitions without this actor.
        remade: for schedulers that the registry does not know by name: the call that makes it again in
            another process.
        own: a user's class or object, if it is one.
        coordinator: of DAG jobs over a network (`actors.transfers.joined`): who coordinates their coflows.
        about: the page of a scheduler; empty: the docstring of the module of `build`, unless it is a user's.
        variant_of: the name of the scheduler of which this is a variant; empty: this is not a variant.
        fixed: parameters that the variant has set, and nothing else can set; of an object, which fixes all of its
            parameters, those in its name.
    """

    name: str
    title: str
    paper: str
    parameters: tuple[Parameter, ...]
    worlds: Worlds = field(repr=False)
    build: Callable[[Any], Any] = field(repr=False)
    advance: Callable[..., int] = field(repr=False)
    hybrid: bool = False
    constrained: bool = False
    preempts: bool = False
    gangs: bool = False
    runs_again: bool = False
    plans: bool = False
    global_view: tuple[str, ...] = ()
    ignores: tuple[tuple[str, str], ...] = ()
    updatable: str = ""
    uses_deadlines: bool = False
    refuses: tuple[tuple[Mapping[str, Any], str], ...] = ()
    rule: str | Callable[[Mapping[str, Any]], str] = ""
    priorities: str = ""
    draws: bool = False
    considers: str = ""
    waits: Literal["", "queue", "reports", "gangs"] = ""
    host: Callable[[Any], Host] | None = field(default=None, repr=False)
    grow: Callable[[Any, Any], Any] = field(default=lambda world, state: state, repr=False)
    transfers: Callable[..., int] | None = field(default=None, repr=False)
    series: Callable[[Any, Any, Any], Any] | None = field(default=None, repr=False)
    remade: tuple[Callable[..., Any], tuple[Any, ...]] | None = field(default=None, repr=False)
    own: Any = field(default=None, repr=False)
    coordinator: "Scheduler | None" = field(default=None, repr=False)
    about: str = field(default="", repr=False)
    variant_of: str = ""
    fixed: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle a scheduler as the call that makes it again: a compiled loop would arrive without its disk cache."""
        if self.remade is None:  # the registry finds those by name, and pickles them so
            raise pickle.PicklingError(f"scheduler {self.name}: `remade` does not say how to make it again")
        return self.remade

    @property
    def family(self) -> str:
        """The name of its family."""
        return self.worlds.family

    @property
    def loops(self) -> tuple[Callable[..., int], ...]:
        """The compiled loops that `advance` is, or is made of."""
        return self.advance.loops if isinstance(self.advance, Turns) else (self.advance,)

    @property
    def users(self) -> "tuple[Scheduler, ...]":
        """Those of users of which its runs ask an object: it, and its coordinator."""
        both = (self, *(() if self.coordinator is None else (self.coordinator,)))
        return tuple(scheduler for scheduler in both if scheduler.own is not None)

    @property
    def is_object(self) -> bool:
        """Whether it is a user's object, and not a class of which each emulation makes an object."""
        return self.own is not None and not isinstance(self.own, type)

    def fixes(self, parameter: str) -> bool:
        """Whether a parameter is the variant's or the object's own, and cannot be set."""
        return self.is_object or parameter in self.fixed

    @property
    def policy(self) -> str:
        """The name of the policy, which its variants share."""
        return self.variant_of or self.name

    def rule_with(self, parameters: Mapping[str, Any]) -> str:
        """Return the rule by which it orders what waits, with values of its parameters, as a clause.

        It is empty for a user's class without a docstring, whose title says only what it is.
        """
        rule = self.rule(parameters) if callable(self.rule) else self.rule
        return rule or (self.title.rstrip(".") if self.own is None or self.about else "")

    def why_ignored(self, key: str) -> str | None:
        """Return why it ignores a key of the configuration; None if it does not."""
        return next((why for own, why in self.ignores if key == own or key.startswith(f"{own}.")), None)

    @property
    def doc(self) -> str:
        """The policy's own page: `about`, or the docstring of the module of `build`, as several may share a loop."""
        if self.own is not None or self.about:
            return self.about
        build = getattr(self.build, "func", self.build)  # of a partial call
        return sys.modules[build.__module__].__doc__ or ""


def constraint_aware(scheduler: Scheduler, name: str) -> Scheduler:
    """Return the constraint-aware form of a policy, under a name of its own."""
    return replace(scheduler, name=name, title=f"{scheduler.title}; constraint-aware", constrained=True)


def resolve_parameters(scheduler: Scheduler, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of the scheduler in declared order, with defaults filled in.

    Raises:
        InputError: an unknown name (the nearest is given), a value that is not of the parameter's kind, or another
            value than the one that a variant, or an object, has.
    """
    known = [p.name for p in scheduler.parameters]
    for name in given:
        if name not in known:
            raise InputError(f"{scheduler.name} has no parameter {name!r}{did_you_mean(name, known)}")
    resolved = {
        p.name: p.parse(given[p.name], scheduler.name) if p.name in given else p.default
        for p in scheduler.parameters
    }
    for p in scheduler.parameters:
        if p.name in given and scheduler.fixes(p.name) and resolved[p.name] != p.default:
            raise InputError(
                f"{scheduler.name} has {p.name}={value_text(p.default)} of its own, not {value_text(resolved[p.name])}"
            )
    return resolved


def value_text(value: Any) -> str:
    """Return a value as text for names, paths and tables: ``2`` for 2.0, ``true`` for True."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def name_with(policy: str, values: Mapping[str, Any]) -> str:
    """Return the name of a policy with these values, as in `eagle(sticky=false,slack=2)`."""
    shown = ",".join(f"{name}={value_text(value)}" for name, value in values.items())
    return f"{policy}({shown})" if shown else policy


def needs_global_view(scheduler: Scheduler, parameters: Mapping[str, Any]) -> bool:
    """Whether the scheduler with these parameters reads state of other actors without a message."""
    return any(name == "always" or parameters.get(name) for name in scheduler.global_view)


def takes_updates(scheduler: Scheduler, parameters: Mapping[str, Any]) -> bool:
    """Whether the scheduler with these parameters takes updates of coflows that are under way."""
    name, _, value = scheduler.updatable.partition("=")
    return name == "always" or (bool(name) and parameters[name] == value)
