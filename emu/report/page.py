"""The parts of pages, from the templates in templates/, which escape every value that is not marked as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from emu.report.drawing import to_svg
from emu.report.hover import describe_axes
from emu.results.text_tables import Cell
from workloads.errors import printable

if TYPE_CHECKING:
    from jinja2 import Environment


PADDING = 1.5
"""Of a cell in print, in characters."""
WIDTH_OF_TEXT = 40


def fill(template: str, **values: Any) -> Markup:
    """Return a template with its values, as HTML."""
    return Markup(_templates().get_template(template).render(values))


def paragraph(words: str, look: str = "") -> Markup:
    """Return a paragraph; `look` is a class of page.html's style, such as ``note``."""
    return fill("paragraph.html", words=words, look=look)


def section(title: str, words: str, head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> Markup:
    """Return a table under a title and a paragraph, which are left out where they are empty."""
    label = title or words.rstrip(":.") or f"{head[0]}, {head[-1]}"
    return fill("section.html", title=title, words=words, **table_of(head, rows, label))


def table_of(head: Sequence[str], rows: Iterable[Sequence[str | Cell]], label: str) -> dict[str, Any]:
    """Return the values of ``table.html``: `label` names its scroll area, ``chars`` is its width in print."""
    shown = [list(row) for row in rows]
    widths = [max(map(len, cell.split()), default=0) for cell in head]
    for row in shown:
        widths = [max(width, _width(cell)) for width, cell in zip(widths, row, strict=True)]
    return {
        "head": head,
        "rows": shown,
        "label": label,
        "chars": round(sum(widths) + PADDING * len(widths), 1),
        "texts": {at for row in shown for at, cell in enumerate(row) if _is_text(cell)},
    }


def _width(cell: str | Cell) -> int:
    """Return the characters of a cell on one line; text, which may be wrapped, has at most `WIDTH_OF_TEXT`."""
    words = cell.words if isinstance(cell, Cell) else cell
    return min(len(words), WIDTH_OF_TEXT) if _is_text(cell) else len(words)


def _is_text(cell: str | Cell) -> bool:
    return isinstance(cell, Cell) and cell.look == "text"


def figure_of(figure: Any, caption: str, narrow: Any = None) -> Markup:
    """Return a figure with its caption and what page.js needs; `narrow` is its form for narrow screens."""
    drawn = []
    for one, width in ((figure, "wide" if narrow is not None else ""), (narrow, "narrow")):
        if one is not None:
            svg = to_svg(one)  # which lays it out
            found = describe_axes(one)
            drawn.append({"svg": svg, "width": width, "axes": json.dumps(found) if found else ""})
    return fill("figure.html", drawn=drawn, caption=caption)


def sentence(words: str) -> str:
    """Return words that begin with a capital letter."""
    return words[0].upper() + words[1:]


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("emu.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value), keep="\n\t"),
    )
