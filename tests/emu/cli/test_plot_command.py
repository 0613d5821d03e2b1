"""``emu plot``: each option changes the figure, and options of another kind are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import emu
from emu.cli import main
from emu.cli.parser import KINDS

pytestmark = pytest.mark.drawn

CHANGES = {
    "schedulers": "hawk",
    "metric": "wait",
    "of": "short",
    "band": "range",
    "statistics": "mean",
    "along": "network.delay",
    "baseline": "sparrow",
    "nodes": "0-2",
    "job": "3",
}
LOOKS = {"width": "column", "height": "5", "font-size": "6"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    common = {"workload_options": {"jobs": 12}, "in_process": True, "output_tasks": True}
    emu.compare(["sparrow", "hawk"], "yahoo", 60, seeds=2, **common, out=out / "both")
    for nodes in (50, 100):
        for delay in (0.0005, 0.005):
            for name in ("sparrow", "hawk"):
                place = out / "grid" / f"{name}-{nodes}-{delay}"
                emu.run(name, "yahoo", nodes, network_delay=delay, **common, out=place)
    return out


def drawn(folders: Path, kind: str, *options: str) -> bytes:
    """Return the SVG that a command wrote."""
    given = [folders / "both"]
    if kind in ("sweep", "ratio"):
        given = sorted((folders / "grid").iterdir())
    elif kind == "gantt":
        given = [folders / "grid" / "hawk-50-0.005"]
    out = folders / "figure.svg"
    out.unlink(missing_ok=True)
    assert main(["plot", *map(str, given), "--kind", kind, "--out", str(out), *options]) == 0
    return out.read_bytes()


@pytest.mark.slow("draws a figure for every option")
@pytest.mark.parametrize("kind", KINDS)
def test_each_option_changes_the_figure(folders: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = drawn(folders, kind)
    # Of two schedulers one is the baseline, so that there is no choice of the others.
    for name in [name for name in KINDS[kind].options if (kind, name) != ("ratio", "schedulers")]:
        assert drawn(folders, kind, f"--{name}", CHANGES[name]) != plain, name
    for name, value in LOOKS.items():
        assert drawn(folders, kind, f"--{name}", value) != plain, name
    assert capsys.readouterr().out.splitlines()[0].endswith("figure.svg")


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_another_kind_are_refused(
    folders: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in CHANGES.items():
        if name not in KINDS[kind].options:
            assert main(["plot", str(folders / "both"), "--kind", kind, f"--{name}", value]) == 2
            assert f"emu: --{name}: {kind} has none; it takes --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--kind", "cfd"], "these runs have no figure 'cfd'; did you mean 'cdf'?"),
        (["--of", "shrt"], "of: unknown name 'shrt'; did you mean 'short'?"),
        (["--font-size", "big"], "--font-size: 'big' is not a number"),
        (["--width", "0.2"], "--width: "),
        (["--out", "x.gif"], "x.gif ends in .gif"),
        (["--out", "nowhere/x.pdf"], "nowhere is not a folder"),
        (["--kind", "gantt"], "a Gantt chart shows one run, and 4 are given"),
    ],
)
def test_wrong_options_are_one_line(
    folders: Path, options: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(folders / "both"), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"emu: {error}")


def test_a_gantt_chart_names_what_is_no_number(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(folders / "grid" / "hawk-50-0.005")
    assert main(["plot", run, "--kind", "gantt", "--nodes", "1-x"]) == 2
    assert "--nodes: '1-x' is neither a number nor a span" in capsys.readouterr().err
    assert main(["plot", run, "--kind", "gantt", "--job", "x"]) == 2
    assert "--job: 'x' is not a whole number" in capsys.readouterr().err


def test_a_figure_of_the_page_is_drawn_by_its_name(folders: Path) -> None:
    assert b"<svg" in drawn(folders, "cdf-short", "--schedulers", "sparrow,hawk")
    assert drawn(folders, "cdf-short", "--width", "3") != drawn(folders, "cdf-short")
