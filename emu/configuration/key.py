"""A key of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Key:
    """One configuration key.

    Attributes
    ----------
    name : str
        Dotted: ``network.delay`` is ``delay`` in the table ``[network]``.
    kind : str
        A key of `emu.configuration.key_types.KINDS`.
    default : object
        In base units (seconds, shares 0..1); None where `otherwise` describes the default.
    meaning : str
        One sentence for ``--help`` and the reference page.
    option : str | None
        The option of ``emu run`` and ``emu compare`` that gives it.
    choices, words : tuple of str
        All allowed values of a ``choice``; words allowed beside the kind's own values.
    low : float | None
        Smallest allowed number.
    otherwise : str
        What holds when the key is not given and has no default.
    needs : tuple of str
        It has an effect only with one of these other keys: if that is given, or has one of the values that stand there,
        as in ``clock=windows|live``.
    describes : bool
        It describes cluster and workload: where no scheduler of a run uses it, a note is printed in place of an error.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    option: str | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    low: float | None = None
    otherwise: str = ""
    needs: tuple[str, ...] = ()
    describes: bool = False
