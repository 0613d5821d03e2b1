"""Pages in a real browser: nothing is wider than the window, no script fails, figures show values and zoom.

Where there is no Chromium, nothing is tested: pages are the same without scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emu
from emu.report.report import render_report
from emu.sweeps.reading import read_runs, sections_of
from tests.browser import CHROMIUM, NO_BROWSER, Browser

pytestmark = [pytest.mark.drawn, pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)]

BEFORE = """<script>
window.failed = [];
window.addEventListener("error", (event) => window.failed.push(String(event.message)));
</script>"""
AFTER = """(() => {
const found = { failed, width: document.documentElement.scrollWidth, window: innerWidth, wide: [] };
for (const element of document.querySelectorAll("body *")) {
  const inside = element.closest("table, pre, svg, .tip");
  if ((!inside || inside === element) && element.getBoundingClientRect().right > innerWidth + 1)
    found.wide.push(element.tagName);
}
const point = (target, name, x, y) =>
  target.dispatchEvent(new PointerEvent(name, { clientX: x, clientY: y, bubbles: true, pointerType: "mouse" }));
const figure = document.querySelector("figure[data-axes]");
if (figure) {
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
  found.tip = [...figure.querySelectorAll(".tip div")].map((row) => row.textContent);
  point(svg, "pointerdown", ...place(0.25, 0.25));
  point(svg, "pointermove", ...place(0.75, 0.75));
  point(svg, "pointerup", ...place(0.75, 0.75));
  found.zoomed = path() !== before;
  point(svg, "pointermove", ...place(0.5, 0.5));
  found.tipZoomed = [...figure.querySelectorAll(".tip div")].map((row) => row.textContent);
  svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  found.back = path() === before;
}
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
    return dict(browser.evaluate(AFTER))


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
        assert found["failed"] == []
        assert found["wide"] == []
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
            # The middle of what was dragged over is the middle of the axes, so the values are the same.
            assert found["tipZoomed"] == found["tip"]


def test_names_that_users_give_are_text(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>failed.push('run')</script>"
    page = render_report([emu.run("sparrow", "yahoo", 60, **SMALL)], title=name)
    assert browse(browser, page, tmp_path, 1400)["failed"] == []
