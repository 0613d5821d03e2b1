"""The command line: exit codes, one-line errors, what is printed and written."""

# ruff: noqa: RUF001 (the sign for "times" is what is printed)

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import emu.cli
import emu.cli.commands
import emu.terminal
from emu.cli import main
from emu.cli.parser import COMMANDS, EXAMPLES, build_parser
from workloads.jobs import JobWorkload

ROOT = Path(__file__).parents[3]
Cli = Callable[..., "Ended"]  # noqa: F821
RUN = ("run", "--scheduler", "sparrow", "--nodes", "20", "--in-process", "--workload")


@pytest.mark.parametrize(
    "argv", [[], ["run"], ["compare"], ["validate"], ["workload"], ["cluster"], ["schedulers"], ["report"]]
)
def test_help_has_examples(emu: Cli, argv: list[str]) -> None:
    ended = emu(*argv, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert "examples:\n  emu" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 120


def test_examples_in_help_parse() -> None:
    import shlex

    parser = build_parser()
    for text in (EXAMPLES, *(command.examples for command in COMMANDS.values())):
        for line in text.splitlines():
            words = shlex.split(line.split("   ")[0] if "   " in line.strip() else line, comments=True)
            argv = words[1:]
            if argv and line.count("  ") > 1:
                argv = shlex.split(line.strip().split("  ")[0])[1:]
            _, unknown = parser.parse_known_args(argv)
            assert unknown == []


def test_seeds_lie_side_by_side_with_intervals(emu: Cli, trace: Path) -> None:
    ended = emu(*RUN, "small", "--seeds", "3", "--out", "r", "--json")
    summary = json.loads(ended.out)
    assert summary["seeds"] == [1, 2, 3]
    runs = [json.loads(Path(f"r/seed={k}/summary.json").read_text()) for k in (1, 2, 3)]
    assert summary["jobs"]["all"]["p50"] == pytest.approx(sum(r["jobs"]["all"]["p50"] for r in runs) / 3)
    low, high = summary["confidence_95"]["jobs"]["all"]["mean"]
    assert low < summary["jobs"]["all"]["mean"] < high
    assert "seeds 1 to 3" in emu("run", "--resume", "r").out


def test_ctrl_c_ends_with_130_and_says_so_in_the_manifest(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("emu.running.runs.execute", interrupted)
    ended = emu(*RUN, "small", "--out", "r")
    assert (ended.code, ended.line()) == (130, "emu: interrupted; emu run --resume r resumes it")
    assert json.loads(Path("r/manifest.json").read_text())["status"] == "interrupted"
    assert emu("compare", "--schedulers", "sparrow,random", *RUN[3:], "small", "--out", "c").code == 130
    assert json.loads(Path("c/manifest.json").read_text())["status"] == "interrupted"


def test_the_unexpected_ends_with_1_and_a_traceback_on_request(
    emu: Cli, trace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("emu.running.runs.execute", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = emu(*RUN, "small", "--out", "r")
    assert ended.code == 1
    assert ended.line().startswith("emu: RuntimeError: two lines (unexpected; the traceback is in ")
    (file,) = tmp_path.glob("emu-error-*.txt")
    assert "Traceback" in file.read_text()
    assert json.loads(Path("r/manifest.json").read_text())["status"] == "failed"
    ended = emu(*RUN, "small", "--out", "r2", "--debug")
    assert ended.code == 1
    assert "Traceback" in ended.err


def test_an_output_that_is_not_utf8_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    emu.terminal.put("0.43× ± 1")
    out.flush()
    assert out.buffer.getvalue() == b"0.43x ~ 1\n"


def program(*argv: str, **more: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **more,
    )


def test_run_py_is_the_same_program(tmp_path: Path) -> None:
    process = program("rnu", cwd=tmp_path)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert err.startswith(b"emu: unknown command 'rnu'")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    process = program("workload", "list", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_starting_is_cheap() -> None:
    """What every command pays: no frames, plots, Ray or compiler are imported before they are needed."""
    code = "import sys, emu, emu.cli.commands, emu.results.comparison; print([m for m in HEAVY if m in sys.modules])"
    heavy = ("pandas", "ray", "matplotlib", "numba", "tqdm", "pyarrow.parquet", "scipy")
    run = subprocess.run(
        [sys.executable, "-c", f"HEAVY = {heavy}; {code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"


def test_a_run_in_this_process_imports_neither_ray_nor_pandas(trace: Path) -> None:
    argv = [*RUN, "small", "--json", "--out", "r"]
    code = f"import sys; from emu.cli import main; print(main({argv}), *sys.modules, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    ended, *modules = run.stderr.split()
    assert ended == "0", run.stderr
    assert not {"pandas", "ray", "matplotlib", "tqdm"} & set(modules)


def test_the_python_interface(workload: JobWorkload) -> None:
    import emu

    assert {"run", "compare", "Result"} <= set(dir(emu))
    assert emu.__version__
    assert callable(emu.compare)
    with pytest.raises(AttributeError):
        emu.nothing  # noqa: B018
    assert main(["--version"]) == 0
