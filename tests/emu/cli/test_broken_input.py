"""A malformed workload at the command line: exit code 2 and one line, and no run directory is left.

`tests/test_mutations.py` has every other malformed file.
"""

from pathlib import Path

import pytest

from emu.cli import main


@pytest.mark.parametrize(
    ("text", "place"),
    [("", ""), ("0 1 1 1\n1 x 1 1\n", "line 2:"), ("0 2 1 1\n", "line 1:"), ("\x1b[31m\n", "line 1:")],
)
def test_a_malformed_workload_ends_the_run_with_one_line(
    text: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.tr").write_text(text)
    assert main(["run", "--scheduler", "sparrow", "--workload", "w.tr", "--nodes", "10", "--in-process"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"emu: w.tr: {place}")
    assert not Path("runs").exists()
