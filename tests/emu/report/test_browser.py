"""Pages in a real browser: they fit window and paper, no script fails, figures show values, axe-core finds nothing.

Where there is no Chromium, nothing is tested: pages are the same without scripts.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emu
from emu.report.report import render_report
from emu.sweeps.report_input import read_runs, sections_of
from tests.browser import CHROMIUM, NO_BROWSER, Browser

_AXE = importlib.util.find_spec("axe_playwright_python")
AXE = None if _AXE is None or _AXE.origin is None else Path(_AXE.origin).with_name("axe.min.js")
"""The rules of axe-core, as a package has them; its Python is not used."""
PICTURES = os.environ.get("EMU_PICTURES", "")
"""A folder for a picture of each page in both windows; `tests.screenshots.sheet` puts them on one sheet."""
LEGIBLE = 7.0
"""Pixels of the smallest text of a figure, at the least."""

pytestmark = [pytest.mark.drawn, pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)]

BEFORE = """<script>
window.failed = [];
window.addEventListener("error", (event) => window.failed.push(String(event.message)));
</script>"""
AFTER = """(() => {
const found = { failed, width: document.documentElement.scrollWidth, window: innerWidth, wide: [] };
for (const element of document.querySelectorAll("body *")) {
  const inside = element.closest(".scroll, pre, svg, .tip");
  if ((!inside || inside === element) && element.getBoundingClientRect().right > innerWidth + 1)
    found.wide.push(element.tagName);
}
const point = (target, name, x, y, pointerType = "mouse") =>
  target.dispatchEvent(new PointerEvent(name, { clientX: x, clientY: y, bubbles: true, pointerType }));
const figure = [...document.querySelectorAll(".drawn[data-axes]")].find((one) => one.offsetWidth);
if (figure) {
  const rows = () => [...figure.parentElement.querySelectorAll(".tip:not([hidden]) div")].map((row) => row.textContent);
  const key = (name) => figure.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const svg = figure.querySelector("svg");
  const axes = JSON.parse(figure.dataset.axes)[0];
  const place = (across, down) => {
    const at = new DOMPoint(axes.box[0] + across * (axes.box[2] - axes.box[0]),
                            axes.box[1] + down * (axes.box[3] - axes.box[1]));
    const there = at.matrixTransform(svg.getScreenCTM());
    return [there.x, there.y];
  };
  const path = () => svg.querySelector(`[id="${axes.lines[0][0]}"] path`).getAttribute("d");
  const before = path();
  point(svg, "pointermove", ...place(0.5, 0.5));
  found.tip = rows();
  point(svg, "pointerdown", ...place(0.25, 0.25));
  point(svg, "pointermove", ...place(0.75, 0.75));
  point(svg, "pointerup", ...place(0.75, 0.75));
  found.zoomed = path() !== before;
  point(svg, "pointermove", ...place(0.5, 0.5));
  found.tipZoomed = rows();
  svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  found.back = path() === before;
  point(svg, "pointerleave", 0, 0);
  found.left = rows();
  point(svg, "pointerdown", ...place(0.5, 0.5), "touch");
  point(svg, "pointerup", ...place(0.5, 0.5), "touch");
  point(svg, "pointerleave", ...place(0.5, 0.5), "touch");
  found.tapped = rows();
  point(document.querySelector("h1"), "pointerdown", 5, 5, "touch");
  found.tappedElsewhere = rows();
  key("ArrowRight");
  found.keyed = rows();
  for (const [name, word] of [["Home", "home"], ["End", "end"]]) {
    key(name);
    found[word] = rows();
  }
  key("Escape");
  found.escaped = rows();
  found.name = figure.getAttribute("aria-label");
}
const all = (what) => [...document.querySelectorAll(what)];
found.stops = all(".scroll").map((one) => [one.scrollWidth > one.clientWidth, one.tabIndex]);
const scale = (matrix) => Math.hypot(matrix.a, matrix.b);
found.text = Math.min(...all("figure svg text").filter((one) => one.getBoundingClientRect().width)
  .map((one) => parseFloat(getComputedStyle(one).fontSize) * scale(one.getScreenCTM())));
const table = [...document.querySelectorAll("table")].find((one) => one.tBodies[0].rows.length > 1);
if (table) {
  const head = table.tHead.rows[0].cells[1];
  const column = () => [...table.tBodies[0].rows].map((row) => row.cells[1].textContent);
  head.click();
  found.up = column();
  head.click();
  found.down = column();
}
return found;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


def browse(browser: Browser, page: str, folder: Path, width: int) -> dict[str, Any]:
    """Return what `AFTER` finds on a page, in a window of a width."""
    file = folder / f"page-{width}.html"
    file.write_text(str(page).replace("<head>", f"<head>{BEFORE}", 1), encoding="utf-8")
    browser.open(file.as_uri(), width)
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return dict(browser.evaluate(AFTER)) | {"axe": findings_of(browser)}


def findings_of(browser: Browser) -> list[Any]:
    """Return what axe-core finds on the open page; nothing where it is not installed."""
    if AXE is None:
        return []
    browser.evaluate(f"{AXE.read_text(encoding='utf-8')}; 0")
    what = "[one.id, one.nodes.map((node) => node.html.slice(0, 200))]"
    return list(browser.evaluate(f"axe.run().then((found) => found.violations.map((one) => {what}))"))


PRINTED = """(() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const wide = all("table").filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
  const lines = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.bottom))).size;
  };
  const cells = all("tbody td:not(.text)").filter((one) => lines(one) > 1);
  const hidden = all(".drawn.wide").filter((one) => !one.offsetWidth);
  return { tables: wide.length, broken: cells.map((one) => one.textContent), hidden: hidden.length };
})()"""
PAPER = 718
"""Pixels of a page's width: A4 less two margins of 1 cm."""


SMALL: dict[str, Any] = {"workload_options": {"jobs": 30}, "in_process": True}


def comparison(out: Path) -> None:
    emu.compare(
        ["sparrow", "hawk"], "yahoo", 60, seeds=2, output_events="all", output_tasks=True, **SMALL, out=out
    )


def grid(out: Path) -> None:
    axes = {"scheduler": ["sparrow", "hawk"], "nodes": [50, 60, 80, 100]}
    emu.sweep(
        {"workload": "yahoo", "workload_options": {"jobs": 30}, "sweep": axes}, in_process=True, out=out
    )


def coflows(out: Path) -> None:
    options = {"coflows": 30, "ports": 20}
    emu.compare(["aalo", "philae"], "synthetic-coflows", workload_options=options, in_process=True, out=out)


def deadlines(out: Path) -> None:
    emu.compare(["dcoflow", "cs-mha"], "deadline-coflows", in_process=True, out=out)


def phoenix(out: Path) -> None:
    constrained = {"cluster": "phoenix", "constraints_model": "phoenix", "infeasible": "drop"}
    emu.compare(["hawk-c", "phoenix"], "yahoo", 100, **SMALL, **constrained, out=out)


def failures(out: Path) -> None:
    emu.compare(
        ["sparrow", "eagle"],
        "yahoo",
        60,
        **SMALL,
        dynamics_mtbf="1 h",
        dynamics_mttr="60 s",
        out=out,
    )


def dags(out: Path) -> None:
    options = {"jobs": 20, "tasks": 400}
    emu.compare(
        ["drf", "tetris"], "facebook-mapreduce", 10, workload_options=options, in_process=True, out=out
    )


def size(out: Path) -> None:
    emu.size("short.p50 < 200s", "hawk", "yahoo", **SMALL, low=20, high=200, out=out)


PAGES = (comparison, grid, coflows, deadlines, phoenix, failures, dags, size)


def reported(runs: Path) -> str:
    """Return the page of what writes none itself."""
    return render_report(read_runs([runs]), sections=sections_of([runs]))


@pytest.mark.parametrize("make", PAGES, ids=lambda f: f.__name__)
def test_a_page_fits_its_window_and_works(make: Any, browser: Browser, tmp_path: Path) -> None:
    make(tmp_path / "runs")
    written = tmp_path / "runs" / "report.html"
    page = written.read_text(encoding="utf-8") if written.exists() else reported(tmp_path / "runs")
    for width in (1400, 500):
        found = browse(browser, page, tmp_path, width)
        if PICTURES:
            browser.screenshot(Path(PICTURES) / f"{make.__name__}-{width}-opened.png", whole=True)
        assert found["failed"] == []
        assert found["axe"] == []
        assert found["wide"] == []
        assert all(stop == (0 if scrolls else -1) for scrolls, stop in found["stops"])
        assert found["text"] >= LEGIBLE
        assert found["width"] <= found["window"]
        assert found["up"] == found["down"][::-1] or len(set(found["up"])) < len(found["up"])
        if make is comparison:
            assert (tmp_path / "runs" / "timeline.svg").read_text(encoding="utf-8") in page
            assert found["zoomed"]
            assert found["back"]
            assert [row.partition(":")[0] for row in found["tip"]] == [
                "completion time of short jobs (s)",
                "sparrow",
                "hawk",
            ]
            shares = [float(row.rpartition(" ")[2]) for row in found["tip"][1:]]
            assert all(0 <= share <= 1 for share in shares)
            assert found["tapped"] == found["keyed"] == found["tip"]
            assert found["left"] == found["tappedElsewhere"] == found["escaped"] == []
            assert found["name"] == "Distribution of completion times of short jobs"
            # Each line has a value at both ends, also where the other's values have not begun, or have ended.
            for end, least, most in (("home", 0.0, 0.1), ("end", 1.0, 1.0)):
                values = [float(row.rpartition(" ")[2]) for row in found[end][1:]]
                assert len(values) == 2
                assert all(least <= value <= most for value in values)
            # The middle of what was dragged over is the middle of the axes, so the values are the same.
            assert found["tipZoomed"] == found["tip"]

    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.open((tmp_path / "page-1400.html").as_uri(), PAPER)
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    printed = browser.evaluate(PRINTED)
    browser.call("Emulation.setEmulatedMedia", media="")
    assert printed == {"tables": 0, "broken": [], "hidden": 0}


def test_names_that_users_give_are_text(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>failed.push('run')</script>"
    page = render_report([emu.run("sparrow", "yahoo", 60, **SMALL)], title=name)
    assert browse(browser, page, tmp_path, 1400)["failed"] == []
