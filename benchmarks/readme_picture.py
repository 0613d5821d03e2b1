"""The picture in README.md: completion times of short jobs under four schedulers, of the run it describes.

How to run: `python -m benchmarks.readme_picture` (about 10 s); it writes docs/img/short-jobs.svg. The run is the
one that `python run.py` does without arguments.
"""

import sys

import emu
from benchmarks.measuring import ROOT, parser_of
from emu.cli.commands import MAIN_JOB
from emu.families.jobs.plots import cdf_figure
from emu.report.drawing import to_svg

PICTURE = ROOT / "docs" / "img" / "short-jobs.svg"


def picture() -> str:
    """Return the picture as SVG, with a white ground of its own: pages may be dark."""
    schedulers, workload, nodes = MAIN_JOB["scheduler"], MAIN_JOB["workload"], MAIN_JOB["nodes"]
    comparison = emu.compare(schedulers, workload, nodes, in_process=True)
    figure = cdf_figure(comparison.results, "short")
    assert figure is not None
    axes = figure.axes[0]
    jobs = comparison.rows()[0].count
    axes.set_title(f"{jobs:,.0f} short jobs of the workload {workload} on {nodes:,} nodes", loc="left")
    axes.set_xlim(10, 30_000)
    return to_svg(figure)


def main() -> int:
    """Write the picture."""
    parser_of(__doc__).parse_args()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
