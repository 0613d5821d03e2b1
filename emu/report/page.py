"""The parts of pages, made of the templates beside this file, which escape every value that is not marked as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from emu.report.drawing import to_svg
from emu.report.hover import describe_axes
from workloads.errors import printable

if TYPE_CHECKING:
    from jinja2 import Environment


class Cell(NamedTuple):
    """A cell of a table that does not look like the others: `look` is a class of page.html's style."""

    words: str
    look: str


def fill(template: str, **values: Any) -> Markup:
    """Return a template with its values, as HTML."""
    return Markup(_templates().get_template(template).render(values))


def paragraph(words: str, look: str = "") -> Markup:
    """Return a paragraph; `look` is a class of page.html's style, such as ``note``."""
    return fill("paragraph.html", words=words, look=look)


def section(title: str, words: str, head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> Markup:
    """Return a table under a title and a paragraph, each left out where it is empty."""
    return fill("section.html", title=title, words=words, head=head, rows=rows)


def figure_of(figure: Any, caption: str) -> Markup:
    """Return a figure with its caption, and what the page's script needs to show its values."""
    svg = to_svg(figure)  # which lays it out
    found = describe_axes(figure)
    return fill("figure.html", svg=svg, caption=caption, axes=json.dumps(found) if found else "")


def sentence(words: str) -> str:
    """Return words that begin with a capital letter."""
    return words[0].upper() + words[1:]


@cache
def _templates() -> Environment:
    from jinja2 import (  # runs without a report need not wait for it
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    return Environment(
        loader=PackageLoader("emu.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value), keep="\n\t"),
    )
