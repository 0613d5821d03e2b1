"""The reference pages: ``python -m emu.cli.reference docs/reference`` writes their tables from the registries.

It also writes ``emu/configuration/settings.py``, the keys as typed arguments of `emu.run`, `emu.compare`, `emu.size`.

A page is text with marks: what stands between ``<!-- made: NAME -->`` and ``<!-- end -->`` is made by `PARTS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu.columns import Column
from emu.configuration.config_file import as_toml
from emu.configuration.family_keys import has_key
from emu.configuration.ineffective_values import needs_text
from emu.configuration.key_types import KINDS, Key
from emu.configuration.keys import KEYS, PARAMETERS
from emu.families.family import Family
from emu.families.registry import FAMILIES, families

if TYPE_CHECKING:
    from actors.kernel.message_kinds import Kind

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
_MADE = re.compile(r"(<!-- made: (?P<name>[\w ]+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the text of a page with its tables written again."""
    return _MADE.sub(lambda m: f"{m[1]}{PARTS[m['name']]()}{m[3]}", page)


def _keys() -> str:
    """Return the table of the keys of the configuration."""
    head = ["key", "option", "value", "default", "for", "meaning"]
    rows = [[f"`{k.name}`", _option(k), _kind(k), _default(k), _families(k), _meaning(k)] for k in KEYS]
    return _table(head, rows)


def _counters() -> str:
    """Return the table of the counters of all families."""
    found: dict[tuple[str, str], list[str]] = {}
    for family in families():
        for name, about in family.counters().items():
            if name != "lost_work_wholes":  # which results have in lost_work_ns
                found.setdefault((name, about), []).append(family.name)
    rows = [[f"`{name}`", ", ".join(of), about] for (name, about), of in found.items()]
    return _table(["counter", "family", "meaning"], rows)


def _tables(family: Family) -> str:
    """Return the sections on the tables that runs of a family write, without those of the first family."""
    first, parts = families()[0], []
    for name, table in family.tables.items():
        if family is not first and name in first.tables and first.tables[name].columns is table.columns:
            continue
        of_which = f" of {family.name}" * (family is not first and name in first.tables)
        parts.append(f"## {name}.parquet{of_which}\n\n{table.about}\n\n{_columns(table.columns)}")
        if table.further:
            parts.append(f"Of some runs also:\n\n{_columns(table.further)}")
    return "\n".join(parts)


def _event_columns() -> str:
    from emu.results.events import COLUMNS

    return _columns(COLUMNS)


def _kinds() -> dict[int, Kind]:
    """Return the kinds of events of Emu's families by number; this process may have imported others."""
    from actors.hosting.recorded import RECORDED

    return {n: kind for n, kind in sorted(RECORDED.items()) if set(kind.family.split()) <= FAMILIES.keys()}


def _recorded(notes: bool) -> str:
    """Return the table of the kinds of messages, or of the notes, that runs record."""
    from actors.kernel.trace import NOTES

    rows = []
    for number, kind in _kinds().items():
        if (number in NOTES) == notes:
            numbers = (re.sub(":float|:or_none", "", kind.columns.get(name, "")) for name in "abcd")
            rows.append([f"`{kind.name}`", kind.family.replace(" ", ", ") or "all", kind.about, *numbers])
    about = "meaning" if notes else "from whom, to whom"
    return _table(["kind", "family", about, "a", "b", "c", "d"], rows)


def _event_fields() -> str:
    from actors.kernel.message_kinds import FIELDS

    fields = {name for kind in _kinds().values() for name in kind.fields}
    return _table(["field", "meaning"], [[f"`{name}`", FIELDS[name]] for name in sorted(fields)])


PARTS: dict[str, Callable[[], str]] = {
    "keys": _keys,
    "counters": _counters,
    "event columns": _event_columns,
    "message kinds": partial(_recorded, notes=False),
    "notes": partial(_recorded, notes=True),
    "event fields": _event_fields,
    **{f"tables of {family.name}": partial(_tables, family) for family in families()},
}


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


def main(folder: str) -> None:
    """Write the tables into the pages of a folder, and the module of arguments."""
    for page in Path(folder).glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    SETTINGS.write_text(settings_module(), encoding="utf-8")


def _meaning(key: Key) -> str:
    """Return the meaning of a key, and the keys that it goes with."""
    return f"{key.meaning} Goes with {needs_text(key.needs)}." if key.needs else key.meaning


def _families(key: Key) -> str:
    """Return the families that have a key, if not all have it."""
    having = [family.name for family in families() if has_key(family, key.name)]
    return "" if len(having) == len(families()) else ", ".join(having)


def _option(key: Key) -> str:
    if key.name == "scheduler":
        return "`--scheduler`, `--schedulers`"
    return f"`{key.option}`" if key.option else ""


def _kind(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{c}`" for c in key.choices)
    words = "".join(f', or `"{word}"`' for word in key.words)
    least = f", {key.low:g} or more" if key.low is not None else ""
    return f"{KINDS[key.kind].wants}{least}{words}"


def _default(key: Key) -> str:
    if key.otherwise:
        return key.otherwise
    if key.default is None:
        return ""
    shown = _value(key, key.default)
    others = [(f.name, f.defaults[key.name]) for f in families() if key.name in f.defaults]
    return "; ".join([shown, *(f"for {name} {_value(key, value)}" for name, value in others)])


def _value(key: Key, default: Any) -> str:
    value = as_toml(key.name, default)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _columns(columns: tuple[Column, ...]) -> str:
    kinds = [getattr(c.type, "value_type", c.type) for c in columns]  # of a dictionary of texts
    rows = [
        [f"`{c.name}`", str(kind), c.unit, "yes" if c.nullable else "", c.meaning]
        for c, kind in zip(columns, kinds, strict=True)
    ]
    return _table(["column", "type", "unit", "may be null", "meaning"], rows)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
