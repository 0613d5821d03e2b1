"""Pictures of pages, to be looked at: `python -m tests.screenshots FOLDER [NAME …]`.

Each page in windows of 1400 and 500 px, light and dark, in a real browser, and a sheet with all of them. With --whole
pictures are of whole pages. Pages are those of tests/emu/report/test_browser.py, and one of a live run.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import emu
from emu.report.report import render_report
from emu.sweeps.report_input import read_runs, sections_of
from tests.browser import Browser
from tests.emu.report.test_browser import PAGES

WIDTHS = (1400, 500)
HEIGHT = 900


def live(out: Path) -> None:
    """Run two schedulers by the wall clock."""
    options: dict[str, Any] = {"workload_options": {"jobs": 20}, "in_process": True}
    emu.compare(["sparrow", "hawk"], "yahoo", 40, clock="live", dilation=0.001, **options, out=out)


def main() -> None:
    """Write the pictures."""
    pages = {make.__name__: make for make in (*PAGES, live)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*pages, []])
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        browser = Browser(Path(place) / "browser")
        for name in options.names or pages:
            runs = Path(place) / name
            pages[name](runs)
            file = runs.with_suffix(".html")
            file.write_text(render_report(read_runs([runs]), name, sections_of([runs])), encoding="utf-8")
            for width in WIDTHS:
                browser.open(file.as_uri(), width, HEIGHT)
                for dark in (False, True):
                    picture = options.folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    browser.screenshot(picture, options.whole, dark)
                    print(picture)
        browser.close()
    sheet(options.folder)


def sheet(folder: Path) -> None:
    """Draw all pictures of a folder on one sheet, a row for each page."""
    from matplotlib import pyplot as plt

    pictures: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-*-*.png")):
        pictures.setdefault(path.name.partition("-")[0], []).append(path)
    figure, places = plt.subplots(len(pictures), 4, figsize=(24, 7 * len(pictures)), squeeze=False)
    for row, paths in zip(places, pictures.values(), strict=True):
        for axes, path in zip(row, paths, strict=False):
            axes.imshow(plt.imread(path))
            axes.set_title(path.stem)
        for axes in row:
            axes.axis("off")
    figure.tight_layout()
    figure.savefig(folder / "sheet.png", dpi=60)
    print(folder / "sheet.png")


if __name__ == "__main__":
    main()
