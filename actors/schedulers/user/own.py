"""A user's own scheduler, a class or an object in plain Python: its parameters, its calls, its errors, its pickles.

Parameters are keywords of its `__init__` and attributes of its class, with their defaults:

    class LeastLoaded:
        slack = 1.5                     # a parameter: an attribute of the class
        def __init__(self, choices=2):  # another: a keyword with a default
            self.choices = choices

A parameter's kind is that of its default: a truth value, a whole number, a number, a text; a number whose name ends in
`_s` is a duration, in `_bytes` a size. What is None takes anything. Names that begin with `_` or are all capitals, the
attribute `name`, and what holds anything else (a list, an array, a function) are not parameters. An object has the
values it was made with, of those that it keeps under the same names: `LeastLoaded(choices=4)`.

Whatever its methods raise becomes an error of one line with the file and line of the user's code.

Its module may not be importable where a checkpoint is read: it was loaded from a file, or came from another process. So
classes and functions of its module are pickled as names, and found again in the module itself or in what the methods of
the object's class refer to. cloudpickle 3.1 cannot take the place of this. By value it saves the module's globals that
methods refer to (8 MB for a table of 8 MB, here 20 bytes; a lock is refused), and a load replaces the methods of a
class that has a living object, so that they refer to copies of the globals. By name it needs a module that can be
imported.
"""

import copy
import inspect
import io
import math
import pickle
import sys
import sysconfig
import traceback
from abc import abstractmethod
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

import numpy as np

from actors.scheduler import Host, Parameter, name_with
from workloads.errors import InputError
from workloads.units import parse_duration

_SIMPLE = (bool, int, float, str)
_ROOT = Path(__file__).resolve().parents[3]
_OURS = tuple(f"{_ROOT / package}/" for package in ("actors", "clusters", "emu", "workloads"))
_INSTALLED = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
_LIBRARIES = (*_INSTALLED, *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")))


def described(own: Any, name: str | None, what: str) -> dict[str, Any]:
    """Return the fields of `Scheduler` for a user's class or object: its names, its docstring, its parameters.

    Without a docstring its title is `what` it is.

    Raises:
        InputError: a class that cannot be made without arguments; the message names the first without a default.
    """
    kind = own if isinstance(own, type) else type(own)
    policy = name or getattr(kind, "name", None) or kind.__name__
    parameters = parameters_of(own)
    if own is kind:
        if missing := _required(kind):
            raise InputError(
                f"scheduler {policy}: __init__ has no default for {missing[0]}; give it one, or in Python an object:"
                f" {kind.__name__}({missing[0]}=…)"
            )
        found: dict[str, Any] = {"name": policy}
    else:
        own_values = _changed(own, parameters)
        shown = getattr(own, "__dict__", {}).get("name") or name_with(policy, own_values)
        found = {"name": shown, "variant_of": policy if shown != policy else "", "fixed": tuple(own_values)}
    about = inspect.cleandoc(kind.__doc__ or "")
    title = about.partition("\n")[0] or what
    return {**found, "title": title, "paper": "-", "parameters": parameters, "own": own, "about": about}


def parameters_of(own: Any) -> tuple[Parameter, ...]:
    """Return the parameters of a user's class or object; the defaults of an object are its own values."""
    kind = own if isinstance(own, type) else type(own)
    found = _attributes(kind) | _keywords(kind)
    if own is not kind:
        wanted = [*found, *_required(kind)]
        found = {name: getattr(own, name) for name in wanted if hasattr(own, name)}
    meanings = dict.fromkeys(_attributes(kind), "attribute of the class")
    meanings |= dict.fromkeys(_init(kind), "argument of `__init__`")
    return tuple(
        _parameter(name, value, meanings[name])
        for name, value in ((name, _plain(value)) for name, value in found.items())
        if _may_be(name, value)
    )


def make_own(kind: Any, parameters: Mapping[str, Any]) -> Any:
    """Make an object of a user's class with these parameters; attributes are set before `__init__` is called."""
    keywords = {name: value for name, value in parameters.items() if name in _init(kind)}
    own = kind.__new__(kind, **keywords) if kind.__new__ is not object.__new__ else object.__new__(kind)
    for name, value in parameters.items():
        if name not in keywords and getattr(kind, name) != value:
            setattr(own, name, value)
    own.__init__(**keywords)
    return own


def _changed(own: Any, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """The parameters of an object whose values are not the defaults of its class."""
    usual = {p.name: p.default for p in parameters_of(type(own))}
    return {p.name: p.default for p in parameters if p.name not in usual or usual[p.name] != p.default}


def _attributes(kind: type) -> dict[str, Any]:
    """Return public attributes of the class and its base classes, in order of appearance."""
    found: dict[str, Any] = {}
    for place in reversed(kind.__mro__[:-1]):
        found |= vars(place)
    return {name: value for name, value in found.items() if _may_be(name, value)}


def _init(kind: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of `__init__` that can be given by name."""
    try:
        _, *taken = inspect.signature(kind.__init__).parameters.values()
    except (TypeError, ValueError):  # written in C
        return {}
    return {p.name: p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _keywords(kind: type) -> dict[str, Any]:
    return {name: p.default for name, p in _init(kind).items() if _may_be(name, p.default)}


def _required(kind: type) -> list[str]:
    return [name for name, p in _init(kind).items() if p.default is p.empty]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _may_be(name: str, value: Any) -> bool:
    public = not name.startswith("_") and name != name.upper() and name != "name"
    return public and (value is None or isinstance(_plain(value), _SIMPLE))


def _parameter(name: str, value: Any, meaning: str) -> Parameter:
    return Parameter(name, _in_seconds(name, value), _kind(name, value), meaning)


def _in_seconds(name: str, value: Any) -> Any:
    """Return the default in seconds, if it is a duration that the user has written with its unit."""
    if isinstance(value, str) and name.endswith("_s"):
        try:
            return parse_duration(value, name)
        except InputError:
            pass
    return value


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(_in_seconds(name, value), str):
        return "text"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "any"
    if name.endswith("_s") and _in_seconds(name, value) >= 0:
        return "duration"
    if name.endswith("_bytes") and isinstance(value, int) and value >= 0:
        return "size"
    return "integer" if isinstance(value, int) else "number"


def raised(what: str, error: BaseException, about: str = "") -> InputError:
    """Return the error for what a user's code has raised, with the last line of the user's code on its way.

    Ctrl-C is the user's too, and is raised again.

    Args:
        what: the beginning of the line, before the error.
        about: what the call was for; it ends the line.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    place = _place(error.__traceback__)
    if isinstance(error, InputError) and error.file is None:  # what it asked of a function of ours was wrong
        return InputError(f"{error.message}{about}", **place)
    text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    if isinstance(error, SystemExit):
        text += ", which would end the program; return, or raise an exception that says what is wrong,"
    return InputError(f"{what}{text}{about}", **place)


def _place(trace: TracebackType | None) -> dict[str, Any]:
    """Return file and line: the innermost that is neither of these packages nor of a library.

    A scheduler may be in a package that is installed among the libraries: then the first line of one.
    """
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(("<", *_OURS))]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    users = users or [frame for frame in frames if frame.filename.startswith(_INSTALLED)][:1]
    return {"file": users[-1].filename, "line": users[-1].lineno} if users else {}


def defined_at(kind: type, method: str) -> dict[str, Any]:
    """Return file and line of a method of a user's class, or of its first method if it lacks that one."""
    codes = [code for value in vars(kind).values() if (code := getattr(value, "__code__", None))]
    own = getattr(getattr(kind, method, None), "__code__", None)
    if own is None and not codes:
        return {}
    code = own or min(codes, key=lambda code: code.co_firstlineno)
    return {"file": code.co_filename, "line": code.co_firstlineno}


def pickled(own: Any) -> bytes:
    """Return an object as bytes; an Exception of any type if it holds what cannot be pickled."""
    kind, file = type(own), io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> str | None:
            """Return the name of a class or function of the object's own module; None for anything else."""
            mine = isinstance(value, type | FunctionType) and value.__module__ == kind.__module__
            return value.__qualname__ if mine and _find(kind, value.__qualname__) is value else None

    Pickler(file, pickle.HIGHEST_PROTOCOL).dump(own)
    return file.getvalue()


def unpickled(saved: bytes, kind: type) -> Any:
    """Return the object of that class from its bytes."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Any:
            """Return the class or function of this name."""
            return _find(kind, name)

    return Unpickler(io.BytesIO(saved)).load()


def _find(kind: type, name: str) -> Any:
    """Return what a qualified name means in the module of a class; None if it is not known there."""
    if name == kind.__qualname__:
        return kind
    known = dict(vars(sys.modules[kind.__module__])) if kind.__module__ in sys.modules else {}
    for method in vars(kind).values():
        known |= getattr(method, "__globals__", {})
    first, *inner = name.split(".")
    return reduce(lambda place, part: getattr(place, part, None), inner, known.get(first))


def first_outside(ids: np.ndarray, count: int) -> int | None:
    """Return the first of some whole numbers that is not from 0 to `count` - 1; None if all are."""
    wrong = ids[(ids < 0) | (ids >= count)]
    return int(wrong[0]) if wrong.size else None


class OwnHost(Host):
    """A user's scheduler in one emulation, whose decisions a subclass asks for.

    Of a class an object is made, with the parameters of the emulation; an object is copied. Its method
    `start(number of nodes or ports, seed)`, if it has one, is called first.
    """

    def __init__(self, own: Any, setting: Any):
        self.name = setting.scheduler.name
        self._asked = ""
        method = "__init__" if isinstance(own, type) else "__deepcopy__"
        try:
            self.scheduler = (
                make_own(own, setting.parameters) if isinstance(own, type) else copy.deepcopy(own)
            )
        except BaseException as error:  # whatever a user's code raises is shown, with its place
            raise self._raised(method, error) from error
        if hasattr(self.scheduler, "start"):
            self.ask("start", *self.start_arguments(setting))

    def start_arguments(self, setting: Any) -> tuple[Any, ...]:
        """Return what `start` gets: the number of nodes or ports, and the seed."""
        return setting.cluster.num_nodes, setting.seed

    def ask(self, method: str, *arguments: Any, about: str = "") -> Any:
        """Call a method of the user's scheduler, and return its result; `about` tells in errors what it was for."""
        self._asked = method
        try:  # thousands of times a second, so without another call in between
            return getattr(self.scheduler, method)(*arguments)
        except BaseException as error:  # whatever a user's code raises
            raise self._raised(method, error, about) from error

    def array_of(self, answer: Any, kind: Any = None) -> np.ndarray:
        """Return the answer of a user's method as an array; without dimensions if it cannot be made one."""
        try:
            return np.asarray(answer, kind)
        except (TypeError, ValueError, OverflowError):  # such as rows of different lengths
            return np.array(None)
        except BaseException as error:  # whatever a user's object raises when it is read
            raise self._raised(self._asked, error) from error

    def placed(self, error: InputError) -> InputError:
        """Return an error about what the user's scheduler has answered, with the place of the method."""
        return InputError(error.message, **defined_at(type(self.scheduler), self._asked))

    def _raised(self, method: str, error: BaseException, about: str = "") -> InputError:
        return raised(f"scheduler {self.name}: {method}() raised ", error, about)

    @abstractmethod
    def share_done(self, world: Any, state: Any) -> float:
        """Return the estimated share of all calls to the scheduler that have been made, 0 to 1."""

    def save(self) -> bytes:
        """Return the user's scheduler, pickled.

        Raises:
            InputError: the scheduler holds something that cannot be pickled.
        """
        try:
            return pickled(self.scheduler)
        except BaseException as error:  # pickle and a user's __getstate__ raise what they like
            if isinstance(error, KeyboardInterrupt):
                raise
            raise InputError(
                f"scheduler {self.name} cannot be pickled for a checkpoint ({type(error).__name__}: {error}); give it"
                " a __getstate__ that leaves out what cannot, or run with --set checkpoint.period=never"
            ) from None

    def load(self, saved: bytes) -> None:
        """Restore the scheduler that `save` saved."""
        self.scheduler = unpickled(saved, type(self.scheduler))
