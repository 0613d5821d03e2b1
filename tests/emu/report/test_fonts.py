"""Names in figures: control characters are escaped, other scripts get fonts that have them, and there is one note."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from emu.report import fonts
from emu.report.drawing import add_legend, figure_style, new_figure, plain_label, to_png, to_svg
from emu.report.fonts import FONT, fonts_for

SCRIPTS = {"latin": "abcé", "han": "漢字", "hindi": "हिन्दी", "emoji": "🚀"}
BEEPS = "team\x1b[31m\x07"


@pytest.fixture(autouse=True)
def again() -> Iterator[None]:
    """Nothing is known of earlier figures."""
    for forget in (fonts._noted.clear, fonts.fonts_for.cache_clear):
        forget()
    yield
    fonts.fonts_for.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine whose fonts of matplotlib's have the characters of this mapping, by family, beside those of ASCII."""
    has: dict[str, str] = {}
    plain = frozenset(range(128))

    def charmap(path: str) -> frozenset[int]:
        from matplotlib import font_manager

        return plain | set(map(ord, has.get(font_manager.get_font(path).family_name, "")))

    monkeypatch.setattr(fonts, "_charmap", charmap)
    return has


def figure_with(*names: str):
    with figure_style():
        figure, axes = new_figure()
        for number, name in enumerate(names):
            axes.plot([0, 1], [number, 1], label=plain_label(name))
        axes.set_xticks([0, 1], [plain_label(name) for name in names[:2]])
        axes.set_title(names[0], parse_math=False)
        add_legend(figure, axes)
    return figure


def test_fonts_that_have_what_is_lacking_come_after_ours_the_one_that_has_most_first(
    machine: dict[str, str],
) -> None:
    machine |= {FONT: "é", "STIXGeneral": "漢", "DejaVu Serif": "漢字ह"}
    assert fonts_for(frozenset("abcé")) == ((), "")
    assert fonts_for(frozenset("é漢字ह🚀")) == (("DejaVu Serif",), "🚀")
    machine |= {"STIXGeneral": "🚀"}
    fonts_for.cache_clear()
    assert fonts_for(frozenset("漢字ह🚀")) == (("DejaVu Serif", "STIXGeneral"), "")


@pytest.mark.drawn
def test_a_font_that_has_the_glyphs_draws_them_and_nothing_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A circled letter is in a font that matplotlib brings, and not in Emu's."""
    names, without = fonts_for(frozenset("Ⓐ𝟙"))
    if not names:
        pytest.skip("this matplotlib brings other fonts")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = [to_png(figure_with(f"team {sign}", "b")) for sign in ("Ⓐ", "Ⓑ")]
    assert drawn[0] != drawn[1]  # two boxes would look alike
    assert (without, capsys.readouterr().err) == ("", "")


@pytest.mark.drawn
def test_names_without_a_font_and_with_control_characters_are_one_note_and_no_warning(
    machine: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        figure = figure_with(*SCRIPTS.values(), BEEPS)
        svg, png = to_svg(figure), to_png(figure)
        to_png(figure_with(*SCRIPTS.values(), BEEPS))
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert err.startswith("emu: note: no font on this machine has ")
    assert err.isprintable() or err.rstrip("\n").isprintable()
    assert "team\\u001b[31m\\u0007" in svg
    assert all(name in svg for name in SCRIPTS.values())
    assert png.startswith(b"\x89PNG")


@pytest.mark.drawn
def test_text_that_no_function_of_ours_has_escaped_is_escaped_when_it_is_drawn() -> None:
    figure = figure_with("a", "b")
    figure.axes[0].set_title(f"two\nlines, {BEEPS}")
    svg = to_svg(figure)
    assert "two" in svg
    assert "\\u000a" not in svg
    assert figure.axes[0].get_title() == "two\nlines, team\\u001b[31m\\u0007"
