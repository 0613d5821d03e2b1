"""Whether Emu computes the same with other versions of numba and Ray: at both ends of the ranges that it allows.

How to run: `python -m benchmarks.versions [numba==0.60.* ray==2.44.* …] [--runs sparrow,…] [--wheel FILE]`

Each version is installed with Emu's wheel by pip into a new environment, so that pip has to find the ranges of
pyproject.toml satisfied. There a scheduler of each family runs in one process, and one under `virtual` and `windows` on
Ray. Without versions: the oldest and the newest of each that pip can get for this Python. Compared are the sha256 of
the result tables with those of the first environment. Prints a line for each; the exit code is 1 if one differs. Takes
2 to 5 minutes and 1.5 GB of disk at a time for each version.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import ROOT, options

ENDS = ("numba", "numba==0.60.*", "ray==2.44.*")
"""Without a version: the newest that pip has in the range."""
FEW = "workload_options.jobs=20"
SIZE = ("--set", "workload_options.jobs=60", "--set", "workload_options.nodes=60")
JOBS = ("--workload", "yahoo", "--nodes", "60", *SIZE)
RUNS = {
    "sparrow": ("sparrow", *JOBS, "--in-process"),
    "drf": ("drf", "--workload", "facebook-mapreduce", "--nodes", "10", "--set", FEW, "--in-process"),
    "sebf": ("sebf", "--workload", "synthetic-coflows", "--set", "workload_options.coflows=60", "--in-process"),
    "virtual": ("sparrow", *JOBS),
    "windows": ("sparrow", *JOBS, "--clock", "windows", "--partitions", "2"),
}  # fmt: skip
VERSIONS = """
import numba, numpy, llvmlite, ray, sys
from actors.compiling.kernel_cache import IS_QUICK
print(f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, NumPy {numpy.__version__}, Ray {ray.__version__}, "
      f"Python {sys.version.split()[0]}, {'quick' if IS_QUICK else 'plain'} form")
"""


def installed(folder: Path, wheel: str, version: str) -> Path:
    """Return Python of a new environment with the wheel and a version of a dependency."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel, version], check=True)
    return python


def ran(python: Path, arguments: tuple[str, ...], out: Path) -> str:
    """Return the sha256 of the result tables of a run, or the last line of its error."""
    argv = [python, "-m", "emu", "run", "--scheduler", *arguments, "--out", out]
    environment = {
        **os.environ,
        "EMU_CACHE_DIR": str(out.parents[1] / "cache"),
    }  # of all: its keys have versions
    ended = subprocess.run(
        argv, cwd=out.parent, env=environment, capture_output=True, text=True, timeout=1800
    )
    if ended.returncode:
        return (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
    digest = hashlib.sha256()
    for table in sorted(out.rglob("*.parquet")):
        if table.stem != "timeline":  # its columns of wall time differ from run to run
            digest.update(table.name.encode() + table.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    """Print for each version what it gives."""
    given = options(__doc__, "versions", versions=ENDS, runs=tuple(RUNS), wheel=str)
    expected: dict[str, str] = {}
    differing = False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if (wheel := given.wheel) is None:
            pip = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--quiet", "--wheel-dir", place]
            subprocess.run(pip, check=True)
            wheel = str(next(place.glob("*.whl")))
        for version in given.versions:
            with tempfile.TemporaryDirectory(dir=place) as environment:
                began = time.monotonic()
                python = installed(Path(environment) / "venv", wheel, version)
                print(subprocess.check_output([python, "-c", VERSIONS], text=True).strip(), flush=True)
                for name in given.runs:
                    found = ran(python, RUNS[name], Path(environment) / name)
                    same = found == expected.setdefault(name, found)
                    differing |= not same
                    print(f"  {name:8} {found}{'' if same else ', which differs'}", flush=True)
                print(f"  {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(differing)


if __name__ == "__main__":
    main()
