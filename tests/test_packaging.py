"""What is installed works alone: the wheel holds the four packages and their data, and runs in an empty folder."""

from __future__ import annotations

import configparser
import importlib.metadata
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
RUN = ("run", "--scheduler", "random", "--workload", "poisson", "--nodes", "10", "--out", "out")
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
    for name in (*PACKAGES, "tests", "benchmarks", "examples"):
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


def call(installed: Path, folder: Path, *argv: str) -> str:
    """Call the console script as it is installed, in `folder`; returns what it printed."""
    (info,) = installed.glob("*.dist-info")
    scripts = configparser.ConfigParser()
    scripts.read(info / "entry_points.txt")
    module, _, function = scripts["console_scripts"]["emu"].partition(":")
    script = f"""
import sys
import {module} as script
assert script.__file__.startswith({str(installed)!r}), script.__file__
sys.exit(script.{function}())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert "usage: emu" in call(installed, tmp_path, "--help")
    assert list(tmp_path.iterdir()) == []


def test_version_and_presets(installed: Path, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert call(installed, tmp_path, "--version") == f"emu {project['version']}\n"
    assert call(installed, tmp_path, "cluster", "list").startswith("homogeneous")


@pytest.mark.parametrize(
    "where", [["--in-process"], pytest.param([], marks=pytest.mark.ray)], ids=["in-process", "ray"]
)
def test_a_run_in_an_empty_folder(installed: Path, tmp_path: Path, where: list[str]) -> None:
    assert '"tasks": 50' in call(installed, tmp_path, *RUN, *where)
    assert {f.name for f in (tmp_path / "out").iterdir()} >= {"config.toml", "manifest.json", "jobs.parquet"}
