"""The parts of pages: HTML of tables, figures and text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from emu.report.drawing import to_svg
from workloads.errors import printable

CSS = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; }
body { max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h2, h3 { border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin-top: 1.8rem; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
table { display: block; overflow-x: auto; font-size: 14px; }
th, td { padding: .2rem .4rem; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th { font-weight: 600; background: #f6f6f6; } td:first-child, th:first-child { text-align: left; }
.ratio { color: #666; } .best { font-weight: 600; } .note { background: #fff6e0; padding: .5rem .8rem; }
.sub { color: #555; margin-top: 0; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: 13px; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .wide figure { margin-bottom: 1rem; }
figure { margin: 0; flex: 1 1 24rem; min-width: 0; } .figures figure { max-width: 40rem; }
svg { width: 100%; height: auto; } svg text { font-family: system-ui, sans-serif; }
figcaption { color: #555; font-size: 13px; } details { margin: .6rem 0; } summary { cursor: pointer; }
"""


def figure_of(figure: Any, caption: str) -> str:
    """Return a figure with its caption."""
    return f"<figure>{to_svg(figure)}<figcaption>{text(caption)}</figcaption></figure>"


def pairs(facts: Mapping[str, str]) -> list[list[str]]:
    """Return names and values as rows of a table."""
    return [[text(name), text(value)] for name, value in facts.items()]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table>"


def sentence(words: str) -> str:
    """Return words that begin with a capital letter."""
    return words[0].upper() + words[1:]


def text(value: object) -> str:
    """Return a value as HTML."""
    return html.escape(printable(str(value), keep="\n\t"))
