"""Writes ``emu/configuration/settings.py``, the keys as typed arguments of `emu.run`, `emu.compare` and `emu.size`."""

from __future__ import annotations

from pathlib import Path

from emu.configuration.ineffective_values import needs_text
from emu.configuration.key import Key
from emu.configuration.keys import KEYS, PARAMETERS

SETTINGS = Path(__file__).parents[1] / "configuration" / "settings.py"
_TYPES = {
    "integer": "int | str",
    "flag": "bool",
    "path": "str | Path",
    "text": "str",
    "machines": "str | Mapping[str, int]",
    "table": "Mapping[str, Any]",
    "steps": "str | Sequence[str]",
    "events": "bool | str",
}
"""Types of the values of a kind in Python; the others are numbers, or text with a unit."""
_NAMED = ("scheduler", "workload", "nodes", "seeds", PARAMETERS)
"""Keys that `emu.run` and the others have as parameters of their own."""


def settings_module() -> str:
    """Return the text of the module."""
    lines = [
        '"""The keys of configurations as arguments of `emu.run`, `emu.compare` and `emu.size`, with their types.',
        "",
        "Made by ``python -m emu.cli.reference docs/reference`` from the registry of keys.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping, Sequence",
        "from pathlib import Path",
        "from typing import Any, Literal, TypedDict",
        "",
        "",
        "class Settings(TypedDict, total=False):",
        '    """Keys with ``_`` for the dot; what is left out, or None, is the default.',
        "",
        "    ``docs/reference/configuration.md`` has their meanings.",
        '    """',
        "",
    ]
    for key in KEYS:
        name = key.name.removesuffix(".*").replace(".", "_")
        if name not in _NAMED:
            choices = ", ".join(f'"{choice}"' for choice in key.choices)
            kind = f"Literal[{choices}]" if choices else _TYPES.get(key.kind, "float | str")
            lines.append(f"    {name}: {kind} | None")
    return "\n".join(lines) + "\n"


def meaning_of(key: Key) -> str:
    """Return the meaning of a key, and the keys that it goes with."""
    return f"{key.meaning} Goes with {needs_text(key.needs)}." if key.needs else key.meaning
