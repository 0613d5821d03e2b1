"""The transformations by name, with their options as text: what commands are built from."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.defaults import DEFAULT_SEED, PRICE
from workloads.errors import InputError
from workloads.generators.arrivals import RatedArrivals
from workloads.hints import did_you_mean
from workloads.transform.coflows import CV_MEDIAN, CV_P90, keep_coflows, skew
from workloads.transform.constrain import constrain
from workloads.transform.deadlines import deadlines, draw, retime, weights
from workloads.transform.history import parse_step
from workloads.transform.load import scale
from workloads.transform.merging import merge, replicate, split
from workloads.transform.primitives import W, Workload
from workloads.transform.requests import GOOGLE, demands, priorities
from workloads.transform.resample import resample
from workloads.transform.selection import sample, time_slice, truncate
from workloads.transform.shuffle_jobs import MAP_SHARE, PHILAE, shuffle_jobs
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


_SEED = Option("seed", "integer", "seed of what is drawn", default=str(DEFAULT_SEED))

TRANSFORMATIONS: dict[str, Transformation] = {
    "scale": Transformation(
        scale,
        "stretch or pack the arrivals to an offered load",
        (
            Option("load", "load", "the offered load, such as 90%", required=True),
            Option("nodes", "integer", "nodes the load is meant for (jobs and DAGs: required)"),
            Option("slots", "integer", "slots of a node", default="1"),
            Option("port_speed_bps", "bandwidth", "speed of a port, such as '1 Gbps' (coflows)"),
        ),
    ),
    "slice": Transformation(
        time_slice,
        "keep what arrives in a span of time",
        (
            Option("start_s", "duration", "keep what arrives from this time on", default="0 s"),
            Option("end_s", "duration", "and before this time", default="the last arrival"),
            Option("rebase", "flag", "let the start become time 0", default="yes"),
        ),
    ),
    "sample": Transformation(
        sample,
        "keep a random part of the jobs or coflows, with their mix",
        (
            Option("share", "share", "how much of them, such as 10% (or --count)"),
            Option("count", "integer", "how many of them (or --share)"),
            _SEED,
        ),
    ),
    "replicate": Transformation(
        replicate,
        "copy the workload for several times the nodes, at the same load on each",
        (
            Option("copies", "integer", "how many times the nodes", required=True),
            Option(
                "jitter_s",
                "duration",
                "shift the arrivals of copies by up to half of this, earlier or later",
                default="the mean gap; 0 for coflows",
            ),
            _SEED,
        ),
    ),
    "resample": Transformation(
        resample,
        "draw blocks of its time with replacement, until its span is filled",
        (Option("block_s", "duration", "length of a block, such as '1 h'", required=True), _SEED),
    ),
    "merge": Transformation(
        merge,
        "put several workloads together",
        (
            Option("label", "flag", "make the workloads' names the tenants of their jobs", default="no"),
            Option("align", "flag", "let each workload begin at time 0", default="no"),
            Option("name", "text", "what to call the workload", default="the names with + between"),
        ),
        many_in=True,
    ),
    "truncate": Transformation(
        truncate,
        "end tasks that last longer than a cap",
        (Option("cap_s", "duration", "the longest a task may last", required=True),),
    ),
    "filter": Transformation(
        keep_coflows,
        "keep coflows that are wide enough and have skew enough",
        (
            Option("wider_than", "integer", "keep coflows of more flows than this"),
            Option(
                "skew_above",
                "number",
                "keep coflows whose longest flow is more than this many times the shortest",
            ),
        ),
    ),
    "skew": Transformation(
        skew,
        "divide what receivers of coflows get unequally among the senders, as in Mantri's cluster",
        (
            Option(
                "cv_median", "number", "median of the c.v. of what senders send", default=f"{CV_MEDIAN:g}"
            ),
            Option("cv_p90", "number", "90th percentile of that", default=f"{CV_P90:g}"),
            Option("of", "text", "what varies: senders, or the flows to each receiver", default="senders"),
            _SEED,
        ),
    ),
    "deadlines": Transformation(
        deadlines,
        "draw deadlines for the coflows, in place of those they have",
        (
            Option("least", "number", "least factor on the time that a coflow takes alone", default="1"),
            Option("most", "number", "most of it", default="2"),
            Option("share", "share", "how many coflows have a deadline", default="100%"),
            Option("port_speed_bps", "bandwidth", "speed of a port, such as '1 Gbps'", default="as stated"),
            _SEED,
        ),
    ),
    "weights": Transformation(
        weights,
        "draw weights for the coflows, in place of those they have: a heavy one, or 1",
        (
            Option("heavy_share", "share", "how many coflows are heavy", default="30%"),
            Option("heavy_weight", "number", "what they weigh", default="2"),
            _SEED,
        ),
    ),
    "draw": Transformation(
        draw,
        "draw coflows with replacement, all at time 0, narrow ones if wanted and on fewer ports",
        (
            Option("count", "integer", "how many to draw", required=True),
            Option("max_width", "integer", "draw from coflows of up to so many flows"),
            Option("ports", "integer", "ports of the switch: port p becomes p modulo this", default="all"),
            _SEED,
        ),
    ),
    "retime": Transformation(
        retime,
        "draw times of arrival at a rate, alone or in batches, or let all arrive at once",
        (
            Option("arrivals", "text", "poisson, bursty, diurnal or at-once", default="poisson"),
            Option(
                "rate_per_s", "number", "mean arrivals per second", default=f"{RatedArrivals.rate_per_s:g}"
            ),
            Option("batch_least", "integer", "the least that arrive together", default="1"),
            Option("batch_most", "integer", "the most that arrive together", default="1"),
            Option("burst_ratio", "number", "bursty: rate in a burst over the mean rate", default="5"),
            Option("burst_jobs", "number", "bursty: mean number of arrivals in a burst", default="10"),
            Option("period_s", "duration", "diurnal: length of a period", default="24h"),
            Option("amplitude", "share", "diurnal: how far the rate swings about its mean", default="50%"),
            _SEED,
        ),
    ),
    "jobs": Transformation(
        shuffle_jobs,
        "make each coflow the shuffle of a job of maps and reducers",
        (
            Option(
                "shuffle_share",
                "text",
                "share of a job's time that the shuffle takes: philae (drawn), or one of all jobs, such as 25%",
                default=PHILAE,
            ),
            Option("map_share", "share", "how much of the other time maps take", default=f"{MAP_SHARE:.0%}"),
            Option("port_speed_bps", "bandwidth", "speed of a port, such as '1 Gbps'", default="as stated"),
            _SEED,
        ),
    ),
    "constrain": Transformation(
        constrain,
        "draw placement constraints for the jobs, in place of those they have",
        (
            Option(
                "model",
                "text",
                "phoenix, sharma, or frequencies such as 'cores >= 16: 10%, spread-racks: 5%'",
                default="phoenix",
            ),
            Option("combined", "flag", "let a job have several constraints", default="as the model has it"),
            Option("jobs", "text", "draw for short, long or all jobs", default="as the model has it"),
            Option("soft", "text", "attributes whose constraints may be relaxed, such as 'clock, port'"),
            Option("price", "number", "factor on task durations where one is relaxed", default=f"{PRICE:g}"),
            _SEED,
        ),
    ),
    "demands": Transformation(
        demands,
        "draw demands of cores, memory and other resources for the jobs, in place of those they have",
        (
            Option(
                "model",
                "text",
                "google-2011, or demands and shares such as 'cpu_cores=1 memory_gib=4: 70%, cpu_cores=8: 30%'",
                default=GOOGLE,
            ),
            _SEED,
        ),
    ),
    "priorities": Transformation(
        priorities,
        "draw priorities for the jobs, in place of those they have",
        (
            Option(
                "model",
                "text",
                "google-2011, or priorities and shares such as '0: 60%, 9: 40%'",
                default=GOOGLE,
            ),
            _SEED,
        ),
    ),
    "split": Transformation(split, "one workload for each tenant", many_out=True),
}
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
