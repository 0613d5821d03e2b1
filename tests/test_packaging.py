"""What is installed works alone: the wheel holds the four packages and their data, and runs in an empty folder."""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("emu", "actors", "clusters", "workloads")
SUFFIXES = (".py", ".toml", ".typed", ".html", ".js")
RUN = ("run", "--scheduler", "random", "--workload", "poisson", "--nodes", "10")
RUN += ("--set", "workload_options.jobs=50", "--json")


def build_tools_are_here() -> bool:
    """Whether this environment has the setuptools that pyproject.toml asks for, so that no index is needed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (need,) = project["build-system"]["requires"]
    bounds = re.fullmatch(r"setuptools>=(\d+),<(\d+)", need)
    assert bounds is not None
    try:
        here = int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return False
    return int(bounds[1]) <= here < int(bounds[2])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that nothing is left behind in the tree."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    for name in (*PACKAGES, "tests", "benchmarks", "claims", "examples"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE", "run.py"):
        shutil.copy(ROOT / name, source / name)
    argv = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--quiet", "--wheel-dir", str(place)]
    argv += ["--disable-pip-version-check", *(["--no-build-isolation"] if build_tools_are_here() else [])]
    built = subprocess.run(argv, cwd=source, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs."""
    place = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for compiled code."""
    return tmp_path_factory.mktemp("cache")


# The console script as it is installed; then, on the last line of standard error, of a run: whether its loop was in the
# disk cache, functions compiled, functions loaded, and the folders of these.
SCRIPT = """
import json, sys
import {module} as script
assert script.__file__.startswith({installed!r}), script.__file__
if sys.argv[1] != "run":
    sys.exit(script.{function}())
from actors.kernel.compiled import is_warm
from actors.schedulers.jobs.random_placement import advance
warm = is_warm(advance)
code = script.{function}()
from numba.core.dispatcher import Dispatcher
loaded = [module for name, module in sys.modules.items() if name.startswith("actors.")]
found = {{id(v): v for module in loaded for v in vars(module).values() if isinstance(v, Dispatcher)}}
stats = [d.stats for d in found.values()]
misses, hits = (sum(sum(getattr(s, name).values()) for s in stats) for name in ("cache_misses", "cache_hits"))
folders = {{s.cache_path for s in stats if s.cache_hits or s.cache_misses}}
print(json.dumps([warm, misses, hits, *folders]), file=sys.stderr)
sys.exit(code)
"""


def call(installed: Path, folder: Path, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the console script as it is installed, in `folder`."""
    (info,) = installed.glob("*.dist-info")
    scripts = configparser.ConfigParser()
    scripts.read(info / "entry_points.txt")
    module, _, function = scripts["console_scripts"]["emu"].partition(":")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            SCRIPT.format(module=module, function=function, installed=str(installed)),
            *argv,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    for package in PACKAGES:
        files = (ROOT / package).rglob("*")
        wanted = {f.relative_to(ROOT).as_posix() for f in files if f.suffix in SUFFIXES}
        assert f"{package}/py.typed" in wanted
        assert {name for name in names if name.startswith(f"{package}/")} == wanted
    pages = {f"emu/report/templates/page.{form}" for form in ("html", "js")}
    assert {"clusters/presets/homogeneous.toml", *pages} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_help_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    assert "usage: emu" in call(installed, tmp_path, "--help").stdout
    assert list(tmp_path.iterdir()) == []


def test_version_and_presets(installed: Path, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert call(installed, tmp_path, "--version").stdout == f"emu {project['version']}\n"
    assert call(installed, tmp_path, "cluster", "list").stdout.startswith("homogeneous")


FILES = {"config.toml", "manifest.json", "jobs.parquet"}


@pytest.mark.slow("compiles a scheduler in a process")
@pytest.mark.compiled
def test_a_run_in_an_empty_folder_and_a_second_process_that_compiles_nothing(
    installed: Path, cache: Path, tmp_path: Path
) -> None:
    used = []
    for out in ("one", "two"):
        done = call(installed, tmp_path, *RUN, "--in-process", "--out", out, EMU_CACHE_DIR=str(cache))
        assert json.loads(done.stdout)["engine"]["tasks"] == 50
        assert {file.name for file in (tmp_path / out).iterdir()} >= FILES
        used.append(json.loads(done.stderr.splitlines()[-1]))
    (warm, misses, _, *folders), (warm_again, misses_again, hits_again, *folders_again) = used
    assert (warm, misses > 20) == (False, True)
    assert (warm_again, misses_again, hits_again > 0) == (True, 0, True)
    assert all(folder.startswith(str(cache)) for folder in folders + folders_again)


@pytest.mark.ray
def test_a_run_on_ray_in_an_empty_folder(installed: Path, cache: Path, tmp_path: Path) -> None:
    done = call(installed, tmp_path, *RUN, "--out", "out", EMU_CACHE_DIR=str(cache))
    assert json.loads(done.stdout)["engine"]["tasks"] == 50
    assert {file.name for file in (tmp_path / "out").iterdir()} >= FILES
