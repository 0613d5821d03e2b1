"""How long the tests take, beside those of another checkout: with an empty cache of kernels, and as CI runs them.

    python -m benchmarks.suite                                                    all tests of this checkout
    python -m benchmarks.suite --beside ../before --python ../before/venv/bin/python [--repeats 2]

Beside another checkout, only tests that both have run, by function and parameters, whatever their files: what was added
since is left out, so that the ratio is that of the code and not of the tests. `--all` runs all tests of each instead.
`--python` is an interpreter in which the other checkout is installed: its tests run the command `emu`. Traces and
reference results are looked for at EMU_SHARED. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
# In a folder of its own, beside the names: another checkout has no such module.
PLUGIN = """
from pathlib import Path

NAMES = frozenset((Path(__file__).parent / "names.txt").read_text().splitlines())


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if item.name in NAMES]
"""


def environment(root: Path, *folders: Path | str) -> dict[str, str]:
    """Return the environment of the tests of a checkout."""
    path = os.pathsep.join(map(str, (root, *folders)))
    return {**os.environ, "CI": "true", "PYTHONPATH": path}


def cases(root: Path, python: str) -> frozenset[str]:
    """Return the names of all tests of a checkout, with their parameters and without their files."""
    ended = subprocess.run(
        [python, "-m", "pytest", "--collect-only", "-q", "-n0"],
        cwd=root, env=environment(root), check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = (line for line in ended.stdout.splitlines() if line.startswith("tests/"))
    return frozenset(re.sub(r"^\S+?\.py::(?:[A-Z]\w*::)?", "", line) for line in lines)


def run_tests(root: Path, python: str, names: frozenset[str] | None) -> str:
    """Run the tests of these names, or all; returns what they took, as a line."""
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        only = []
        if names is not None:
            (there / "names.txt").write_text("\n".join(sorted(names)))
            (there / "emu_only_named.py").write_text(PLUGIN)
            only = ["-p", "emu_only_named"]
        report = there / "report.xml"
        before, begin_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [python, "-m", "pytest", "-q", f"--junitxml={report}", *only],
            cwd=root, env={**environment(root, there), "EMU_CACHE_DIR": str(there / "cache")}, stdout=sys.stderr,
        )  # fmt: skip
        wall_s = time.perf_counter() - begin_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        suite = next(ET.parse(report).getroot().iter("testsuite")).attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    return f"{suite['tests']:>6s}{failed:8d}{suite['skipped']:>9s}{wall_s:10.0f}{cpu_s:10.0f}   {root}"


def main() -> int:
    """Print a line for each run of the tests of a checkout."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument(
        "--python",
        type=os.path.abspath,  # tests run in the folder of their checkout; where links lead is another environment
        default=sys.executable,
        help="path of the interpreter of the other checkout",
    )
    parser.add_argument("--all", action="store_true", help="all tests of both")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    checkouts = [(HERE, sys.executable)]
    if options.beside:
        checkouts.insert(0, (options.beside.resolve(), options.python))
    names = None
    if options.beside and not options.all:
        names = frozenset.intersection(*(cases(*each) for each in checkouts))
        print(f"{len(names)} names of tests are in both")
    print(" tests  failed  skipped    wall s     CPU s (of Ray's own servers, not all)", flush=True)
    for _ in range(options.repeats):
        for root, python in checkouts:
            print(run_tests(root, python, names), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
