"""Malformed workloads at the command line: exit code 2 and one helpful line, never a traceback."""

from pathlib import Path

from emu.cli import main
from tests.workloads.mutations import Mutant, mutants

MUTANTS = list(mutants(seed=1))[::8]  # tests/workloads tries all of them by reading alone


def command(path: Path) -> list[str]:
    return ["run", "--scheduler", "sparrow", "--workload", str(path), "--nodes", "10", "--in-process"]


def check(code: int, out: str, err: str, mutant: Mutant) -> None:
    assert code == 2, mutant.label
    assert out == "", mutant.label
    assert "Traceback" not in err, mutant.label
    lines = err.splitlines()
    assert len(lines) == 1, mutant.label
    assert mutant.culprit.strip(".") in lines[0], mutant.label
    if mutant.line is not None:
        assert f"line {mutant.line}:" in lines[0], mutant.label


def test_every_malformed_workload_ends_the_run_with_one_line(tmp_path, capsys, monkeypatch):
    assert len(MUTANTS) >= 25
    monkeypatch.chdir(tmp_path)
    for i, mutant in enumerate(MUTANTS):
        code = main(command(mutant.write(tmp_path / str(i))))
        captured = capsys.readouterr()
        check(code, captured.out, captured.err, mutant)
    assert not (tmp_path / "runs").exists(), "a refused run leaves no run directory"
