"""Results in the cells of a notebook: tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

STYLE = (
    "<style>.emu td, .emu th {text-align: right} .emu td:first-child, .emu th:first-child {text-align: left}"
    " .emu .best {font-weight: bold} .emu .ratio {opacity: 0.7}</style>"
)


def as_html(title: str, parts: Iterable[str], facts: Mapping[str, str] | None = None) -> str:
    """Return parts of a page below a title, and facts in a line, for a notebook."""
    said = ", ".join(f"{name} {value}" for name, value in (facts or {}).items())
    inner = [f"<p><b>{escape(title)}</b></p>", *parts, *([f"<p>{escape(said)}</p>"] if said else [])]
    return f'{STYLE}<div class="emu">{"".join(inner)}</div>'
