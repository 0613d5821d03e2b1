"""The transformations by name, with their options as text: what commands are built from."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.transform.coflows import deadlines, draw, keep_coflows, retime, skew, weights
from workloads.transform.constrain import constrain
from workloads.transform.history import parse_step
from workloads.transform.load import scale
from workloads.transform.merging import merge, replicate, split
from workloads.transform.primitives import W, Workload
from workloads.transform.requests import demands, priorities
from workloads.transform.resample import resample
from workloads.transform.selection import sample, time_slice, truncate
from workloads.transform.shuffle_jobs import shuffle_jobs
from workloads.values import read_value


@dataclass(frozen=True)
class Option:
    """An option of a transformation.

    Attributes
    ----------
    name : str
        The parameter of the function; its unit is in the name.
    kind : str
        One of `workloads.values.KINDS`.
    help : str
        One line.
    required : bool
    default : str
        What holds without it, for the help.
    """

    name: str
    kind: str
    help: str
    required: bool = False
    default: str = ""

    @property
    def flag(self) -> str:
        """Its name on a command line: without the unit, which is written with the value (except for rates)."""
        name = (
            self.name if self.name.endswith("_per_s") else self.name.removesuffix("_bps").removesuffix("_s")
        )
        return "--" + name.replace("_", "-")

    def parse(self, text: str) -> Any:
        """Return the value of a text such as ``1 h``, ``10%`` or ``yes``.

        Raises
        ------
        InputError
            The text is not of the option's kind.
        """
        return read_value(self.kind, text, self.flag, high=2**64 - 1 if self.kind == "integer" else None)


@dataclass(frozen=True)
class Transformation:
    """A transformation: its function, what it is for, and its options.

    Attributes
    ----------
    function : callable
        Takes a workload (a sequence of workloads where `many_in`) and the options by name; returns a workload
        (a dict of workloads by tenant where `many_out`).
    help : str
        One line.
    options : tuple of Option
    many_in, many_out : bool
    """

    function: Callable[..., Any]
    help: str
    options: tuple[Option, ...] = ()
    many_in: bool = False
    many_out: bool = False

    def parse(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return options given as text, by their parameters' names, as the function takes them.

        Raises
        ------
        InputError
            An option that does not exist, is missing, or is not of its kind.
        """
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise InputError(f"unknown option {name!r}{did_you_mean(name, known)}")
        for option in self.options:
            if option.required and option.name not in given:
                raise InputError(f"{option.flag}: required; {option.help}")
        return {name: known[name].parse(text) for name, text in given.items()}


def redo(workloads: Sequence[W], line: str) -> W:
    """Return what a line of history made, from the workloads it was made from (one, except for merge).

    Raises
    ------
    InputError
        The line names no transformation, or none that fits the workloads.
    """
    name, given = parse_step(line)
    if name not in TRANSFORMATIONS:
        raise InputError(f"unknown transformation {name!r}{did_you_mean(name, TRANSFORMATIONS)}")
    step = TRANSFORMATIONS[name]
    if len(workloads) != 1 and not step.many_in:
        raise InputError(f"{name} takes one workload, not {len(workloads)}")
    source = workloads if step.many_in else workloads[0]
    if not step.many_out:
        made: W = step.function(source, **step.parse(given))
        return made
    parts: dict[str, W] = step.function(source)
    tenant = given.get("tenant", "")
    if tenant not in parts:
        raise InputError(f"unknown tenant {tenant!r}{did_you_mean(tenant, parts)}", field="tenant")
    return parts[tenant]


_SHARES = ("share", "amplitude", "heavy_share", "map_share")


def _kind(name: str, annotation: str) -> str:
    """Return the kind of a parameter's values, by its name and its annotation."""
    if name == "load" or "str" in annotation:
        return "load" if name == "load" else "text"
    if "bool" in annotation or "int" in annotation:
        return "flag" if "bool" in annotation else "integer"
    if name.endswith("_bps"):
        return "bandwidth"
    return (
        "share"
        if name in _SHARES
        else "duration"
        if name.endswith("_s") and name[-6:] != "_per_s"
        else "number"
    )


def _shown(kind: str, default: Any) -> str:
    """Return a default as the help states it."""
    if default is None or isinstance(default, str):
        return default or ""
    if kind in ("flag", "share"):
        return ("no", "yes")[default] if kind == "flag" else f"{default:.0%}"
    return f"{default:g}"


def _transformation(
    function: Callable[..., Any], help: str, options: Mapping[str, str | tuple[str, str]], **many: bool
) -> Transformation:
    """Return a transformation; the options have a line of help each, and in words what holds without them.

    All else about options is in the signature of the function.
    """
    made = []
    signature = inspect.signature(function).parameters
    seed = {"seed": "seed of what is drawn"} if "seed" in signature else {}
    for name, said in {**options, **seed}.items():
        parameter = signature[name]
        kind, required = _kind(name, parameter.annotation), parameter.default is parameter.empty
        line, default = said if isinstance(said, tuple) else (said, "")
        default = default or ("" if required else _shown(kind, parameter.default))
        made.append(Option(name, kind, line, required, default))
    return Transformation(function, help, tuple(made), **many)


_SPEED = ("speed of a port, such as '1 Gbps'", "as stated")

TRANSFORMATIONS: dict[str, Transformation] = {
    "scale": _transformation(scale, "stretch or pack the arrivals to an offered load", {
        "load": "the offered load, such as 90%",
        "nodes": "nodes the load is meant for (jobs and DAGs: required)",
        "slots": "slots of a node",
        "port_speed_bps": "speed of a port, such as '1 Gbps' (coflows)",
    }),
    "slice": _transformation(time_slice, "keep what arrives in a span of time", {
        "start_s": ("keep what arrives from this time on", "0 s"),
        "end_s": ("and before this time", "the last arrival"),
        "rebase": "let the start become time 0",
    }),
    "sample": _transformation(sample, "keep a random part of the jobs or coflows, with their mix", {
        "share": "how much of them, such as 10% (or --count)",
        "count": "how many of them (or --share)",
    }),
    "replicate": _transformation(
        replicate, "copy the workload for several times the nodes, at the same load on each", {
            "copies": "how many times the nodes",
            "jitter_s": (
                "shift the arrivals of copies by up to half of this, earlier or later", "the mean gap; 0 for coflows"
            ),
        },
    ),
    "resample": _transformation(
        resample, "draw blocks of its time with replacement, until its span is filled",
        {"block_s": "length of a block, such as '1 h'"},
    ),
    "merge": _transformation(merge, "put several workloads together", {
        "label": "make the workloads' names the tenants of their jobs",
        "align": "let each workload begin at time 0",
        "name": ("what to call the workload", "the names with + between"),
    }, many_in=True),
    "truncate": _transformation(
        truncate, "end tasks that last longer than a cap", {"cap_s": "the longest a task may last"}
    ),
    "filter": _transformation(keep_coflows, "keep coflows that are wide enough and have skew enough", {
        "wider_than": "keep coflows of more flows than this",
        "skew_above": "keep coflows whose longest flow is more than this many times the shortest",
    }),
    "skew": _transformation(
        skew, "divide what receivers of coflows get unequally among the senders, as in Mantri's cluster", {
            "cv_median": "median of the c.v. of what senders send",
            "cv_p90": "90th percentile of that",
            "of": "what varies: senders, or the flows to each receiver",
        },
    ),
    "deadlines": _transformation(deadlines, "draw deadlines for the coflows, in place of those they have", {
        "least": "least factor on the time that a coflow takes alone",
        "most": "most of it",
        "share": "how many coflows have a deadline",
        "port_speed_bps": _SPEED,
    }),
    "weights": _transformation(
        weights, "draw weights for the coflows, in place of those they have: a heavy one, or 1",
        {"heavy_share": "how many coflows are heavy", "heavy_weight": "what they weigh"},
    ),
    "draw": _transformation(
        draw, "draw coflows with replacement, all at time 0, narrow ones if wanted and on fewer ports", {
            "count": "how many to draw",
            "max_width": "draw from coflows of up to so many flows",
            "ports": ("ports of the switch: port p becomes p modulo this", "all"),
        },
    ),
    "retime": _transformation(
        retime, "draw times of arrival at a rate, alone or in batches, or let all arrive at once", {
            "arrivals": "poisson, bursty, diurnal or at-once",
            "rate_per_s": "mean arrivals per second",
            "batch_least": "the least that arrive together",
            "batch_most": "the most that arrive together",
            "burst_ratio": "bursty: rate in a burst over the mean rate",
            "burst_jobs": "bursty: mean number of arrivals in a burst",
            "period_s": ("diurnal: length of a period", "24h"),
            "amplitude": "diurnal: how far the rate swings about its mean",
        },
    ),
    "jobs": _transformation(shuffle_jobs, "make each coflow the shuffle of a job of maps and reducers", {
        "shuffle_share":
            "share of a job's time that the shuffle takes: philae (drawn), or one of all jobs, such as 25%",
        "map_share": "how much of the other time maps take",
        "port_speed_bps": _SPEED,
    }),
    "constrain": _transformation(
        constrain, "draw placement constraints for the jobs, in place of those they have", {
            "model": "phoenix, sharma, or frequencies such as 'cores >= 16: 10%, spread-racks: 5%'",
            "combined": ("let a job have several constraints", "as the model has it"),
            "jobs": ("draw for short, long or all jobs", "as the model has it"),
            "soft": "attributes whose constraints may be relaxed, such as 'clock, port'",
            "price": "factor on task durations where one is relaxed",
        },
    ),
    "demands": _transformation(
        demands, "draw demands of cores, memory and other resources for the jobs, in place of those they have",
        {"model": "google-2011, or demands and shares such as 'cpu_cores=1 memory_gib=4: 70%, cpu_cores=8: 30%'"},
    ),
    "priorities": _transformation(
        priorities, "draw priorities for the jobs, in place of those they have",
        {"model": "google-2011, or priorities and shares such as '0: 60%, 9: 40%'"},
    ),
    "split": _transformation(split, "one workload for each tenant", {}, many_out=True),
}  # fmt: skip
"""The transformations by the name of their command."""


# Steps: transformations written as a line of text, such as ``deadlines most=4 seed=3``, and applied to a workload.
#
# A step is what `emu workload` is given on its command line, without the workload and the place it is written to: the
# name of a transformation and its options, as ``--most 4`` or ``most=4``, as in a workload's history
# (`workloads.transform.history`). It takes one workload and gives one.

SEED = "seed"
"""The option of the transformations that draw."""


@dataclass(frozen=True)
class Step:
    """A transformation and its options, all of them checked.

    Attributes
    ----------
    name : str
        One of `TRANSFORMATIONS`.
    given : dict of str to str
        The options that were given, by their parameters' names, as text.
    """

    name: str
    given: dict[str, str]

    @property
    def transformation(self) -> Transformation:
        """The transformation itself."""
        return TRANSFORMATIONS[self.name]

    @property
    def follows_seed(self) -> bool:
        """Whether the step draws, and states no seed of its own."""
        return SEED not in self.given and any(option.name == SEED for option in self.transformation.options)

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={shlex.quote(text)}" for name, text in self.given.items())])

    def apply(self, workload: Workload, seed: int) -> Workload:
        """Return what the step makes of a workload.

        Parameters
        ----------
        workload
        seed : int
            Of what the step draws if it states no seed of its own.

        Raises
        ------
        InputError
            The step does not fit the workload, or an option is out of range; names the step and the option.
        """
        options = self.transformation.parse(self.given)
        if self.follows_seed:
            options[SEED] = seed
        try:
            made: Workload = self.transformation.function(workload, **options)
        except InputError as error:
            named = {option.name: option.flag for option in self.transformation.options}
            option = f"{named.get(error.field, error.field)}: " if error.field else ""
            raise InputError(f"{self.name}: {option}{error.message}") from None
        return made


def parse_steps(text: str) -> list[Step]:
    """Return the steps of a text, between which there are semicolons.

    Raises
    ------
    InputError
        A step names no transformation of one workload, or an option that it does not have, lacks one, or has a value
        that is not of the option's kind; names the step and the option.
    """
    return [_parse_step(words) for words in _sentences(text)]


def _sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each step of a text; a semicolon in quotes does not separate steps."""
    parser = shlex.shlex(text, posix=True, punctuation_chars=";")
    parser.whitespace_split = True
    parser.commenters = ""
    words: list[str] = []
    try:
        for word in parser:
            if word.strip(";"):
                words.append(word)
            elif words:
                yield words
                words = []
    except ValueError:
        raise InputError(f"{text!r} has a quotation mark without its other half") from None
    if words:
        yield words


def _parse_step(words: list[str]) -> Step:
    name, *rest = words
    able = [n for n, step in TRANSFORMATIONS.items() if not (step.many_in or step.many_out)]
    if name in TRANSFORMATIONS and name not in able:
        many = "takes" if TRANSFORMATIONS[name].many_in else "makes"
        raise InputError(f"{name} {many} several workloads; a step is one of {', '.join(able)}")
    if name not in able:
        raise InputError(f"no transformation is called {name!r}{did_you_mean(name, able)}")
    step = TRANSFORMATIONS[name]
    by_name = {option.name: option.name for option in step.options}
    by_name |= {option.flag.lstrip("-").replace("-", "_"): option.name for option in step.options}
    given: dict[str, str] = {}
    for option, value in _options(name, rest):
        known = by_name.get(option.replace("-", "_"))
        if known is None:
            flags = [option.flag.lstrip("-") for option in step.options]
            raise InputError(f"{name}: unknown option {option!r}{did_you_mean(option, flags)}")
        if known in given:
            raise InputError(f"{name}: {option} is given twice")
        given[known] = value
    try:
        step.parse(given)
    except InputError as error:
        raise InputError(f"{name}: {error.message}") from None
    ordered = {option.name: given[option.name] for option in step.options if option.name in given}
    return Step(name, ordered)


def _options(name: str, words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield option and value of words such as ``most=4``, ``--most=4`` or ``--most 4``."""
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if not equals:
            found = next(rest, None) if word.startswith("--") else None
            if found is None:
                raise InputError(f"{name}: {word!r} is not of the form option=value, or --option value")
            value = found
        yield option.removeprefix("--"), value
