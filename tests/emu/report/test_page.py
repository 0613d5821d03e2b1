"""Parts of pages: what is HTML, and what is escaped."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from emu.report.page import fill, paragraph, section, table_of
from emu.results.text_tables import Cell

EVIL = "<script>'a' & \"b\"\x1b[0m</script>"
SHOWN = "&lt;script&gt;&#39;a&#39; &amp; &#34;b&#34;\\u001b[0m&lt;/script&gt;"


def test_every_value_is_escaped_wherever_it_stands() -> None:
    page = section(EVIL, EVIL, [EVIL], [[EVIL], [Cell(EVIL, "best")]])
    assert page.count(SHOWN) == 6
    assert "script>" not in page.replace(SHOWN, "")
    assert f'<td><span class="best">{SHOWN}</span></td>' in page


def test_parts_are_not_escaped_again_and_lines_stay() -> None:
    note = paragraph("a <\n\tb", "note")
    assert note == '<p class="note">a &lt;\n\tb</p>'
    assert note in fill("size.html", answer="", sure=[], **table_of([], [], ""), figure=note)


def test_what_is_empty_is_left_out() -> None:
    table = (
        '<div class="scroll" role="group" aria-label="{}" tabindex="0"><table style="--chars: 5.0"><thead><tr>'
        '<th scope="col">n</th><td></td></tr></thead>\n<tbody><tr><th scope="row">1</th><td>2</td></tr>\n'
        "</tbody></table></div>"
    )
    assert section("", "", ["n", ""], [["1", "2"]]) == table.format("n, ")
    assert section("T", "w", ["n", ""], [["1", "2"]]) == f"<h3>T</h3>\n<p>w</p>\n{table.format('T')}"


def test_print_has_room_for_the_longest_line_of_each_column() -> None:
    rows = [["a", "1,000,000"], ["bbb", Cell("w" * 80, "text")]]
    assert table_of(["x", "two words"], rows, "")["chars"] == 3 + 40 + 2 * 1.5


def test_a_template_without_its_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'answer' is undefined"):
        fill("size.html", head=[], rows=[], figure="")
