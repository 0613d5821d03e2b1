"""Steps: transformations written as a line of text, such as ``deadlines most=4 seed=3``, and applied to a workload.

A step is what `emu workload` is given on its command line, without the workload and the place it is written to: the
name of a transformation and its options, as ``--most 4`` or ``most=4``, as in a workload's history
(`workloads.transform.history`). It takes one workload and gives one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from workloads.errors import InputError
from workloads.hints import did_you_mean
from workloads.transform.primitives import Workload
from workloads.transform.registry import TRANSFORMATIONS, Transformation

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
