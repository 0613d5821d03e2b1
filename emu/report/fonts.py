"""Fonts for names in any script: names of tenants, jobs and schedulers in figures are the user's.

matplotlib draws a character by the first of a list of fonts that has it. Emu's own font is the first of the list; where
it lacks characters of a figure, fonts of this machine follow that have them. What no font has is a box, with one note.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from emu.terminal import note

if TYPE_CHECKING:
    from matplotlib.text import Text

FONT = "DejaVu Sans"
"""Emu's own, which matplotlib brings."""
_NO_FONTS = re.compile(r"last ?resort|adobe ?blank", re.IGNORECASE)
"""Fonts that have a box, or nothing, for every character."""
_OTHER_FACES = re.compile(r"bold|black|heavy|italic|oblique|thin|light", re.IGNORECASE)
_WARNINGS = r"(?s)(Glyph .* missing from|Matplotlib currently does not support)"
_noted: set[str] = set()
"""The characters that the note has been about; there is one note."""


@contextmanager
def missing_glyphs_noted_once() -> Iterator[None]:
    """Within, matplotlib does not warn of each character that no font has: `use_fonts` prints a note."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _WARNINGS)
        yield


def use_fonts(texts: Sequence[Text]) -> None:
    """Give texts of a figure the fonts that they need."""
    wanted = frozenset("".join(text.get_text() for text in texts)) - set("\n\t")
    if all(ord(c) < 128 for c in wanted):
        return
    names, without = fonts_for(wanted)
    if names:
        for text in texts:
            text.set_fontfamily([FONT, *names])
    if without and not _noted:
        _noted.update(without)
        first = without[0]
        many = f"{len(without)} characters" if len(without) > 1 else "a character"
        note(
            f"no font on this machine has {many} of names in figures, such as {first} (U+{ord(first):04X}): pictures"
            " show boxes in their place; fonts for all scripts are the packages fonts-noto-core, fonts-noto-cjk and"
            " fonts-symbola of Debian and Ubuntu, and the like of others"
        )


@lru_cache(maxsize=64)
def fonts_for(wanted: frozenset[str]) -> tuple[tuple[str, ...], str]:
    """Return which fonts are needed beside `FONT` for characters, the one that has most first, and what none has."""
    from matplotlib import font_manager

    codes = {ord(c) for c in wanted}
    lacking = codes - _charmap(font_manager.findfont(FONT))
    if not lacking:
        return (), ""
    # matplotlib keeps a list of fonts on the disk, which lacks those that were installed since.
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    having: list[tuple[str, set[int]]] = []
    for path in sorted(known | set(font_manager.findSystemFonts())):
        if not _OTHER_FACES.search(path) and (found := lacking & _charmap(path)):
            having.append((path, found))
    names = []
    while having := [(path, left) for path, found in having if (left := found & lacking)]:
        path, _ = best = max(having, key=lambda one: len(one[1]))  # of equal ones the first
        having.remove(best)
        if path not in known:
            font_manager.fontManager.addfont(path)
        name = font_manager.get_font(path).family_name
        found = lacking & _charmap(font_manager.findfont(name))  # it may take another file of that name
        if found:
            names.append(name)
            lacking -= found
    return tuple(names), "".join(map(chr, sorted(lacking)))


@lru_cache(maxsize=4096)
def _charmap(path: str) -> frozenset[int]:
    """Return the characters that a font has; none of a file that cannot be read as a font with outlines."""
    from matplotlib import font_manager

    try:
        font: Any = font_manager.get_font(path)
        if _NO_FONTS.search(font.family_name) or not font.scalable:
            return frozenset()
        return frozenset(font.get_charmap())
    except Exception:  # of many kinds, by what is wrong with the file
        return frozenset()
