"""Files that are no files, or hold what no parser was made for: one line, never a traceback and never a wait."""

import os

import pytest

from emu.cli import main
from workloads.errors import InputError
from workloads.small_files import parse_toml

DEEP = 100_000


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def error_of(capsys, *argv) -> str:
    assert main([*map(str, argv)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


COMMANDS = {
    "configuration": ("run", "--in-process", "--config", "FILE"),
    "validate": ("validate", "FILE"),
    "sweep": ("sweep", "FILE", "--dry-run"),
    "workload": ("workload", "info", "FILE"),
    "cluster": ("cluster", "info", "FILE"),
    "failures": (
        "run", "--in-process", "--scheduler", "sparrow", "--workload", "poisson", "--nodes", "4",
        "--set", "workload_options.jobs=5", "--set", "dynamics.failures=FILE",
    ),
    "report": ("report", "FILE"),
    "resume": ("run", "--resume", "FILE"),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_pipe_or_a_device_is_refused(command, what, fifo, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = str(fifo) if what == "pipe" else "/dev/zero"
    line = error_of(capsys, *(part.replace("FILE", path) for part in COMMANDS[command]))
    assert path in line
    assert "unexpected" not in line


def test_a_pipe_as_a_description_or_table_of_nodes(tmp_path, capsys):
    for name in ("c.toml", "c.parquet"):
        os.mkfifo(tmp_path / name)
        assert name in error_of(capsys, "cluster", "info", tmp_path / name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + "[" * DEEP + "]" * DEEP, "nested too deep"),
        ("a = " + "{b=" * DEEP + "1" + "}" * DEEP, "nested too deep"),
        ("a" + ".a" * 5000 + " = 1", "nested too deep"),
        ("nodes = " + "9" * 5000, "4300 digits"),
        ("a = 1\r\rb", "line"),
    ],
)
def test_toml_that_no_parser_was_made_for(tmp_path, capsys, text, says):
    path = tmp_path / "c.toml"
    path.write_text(text)
    assert says in error_of(capsys, "validate", path)
    with pytest.raises(InputError, match=says):
        parse_toml(text, path)
    assert says in error_of(capsys, "cluster", "info", path)


@pytest.mark.parametrize(
    "key", ["a" + ".a" * 200_000, '"a" . ' * 200_000 + "b", "[" + "'a'." * 200_000 + "b"]
)
def test_keys_of_many_parts_are_not_parsed(tmp_path, monkeypatch, key):
    """tomllib takes the square of their number: 16 s."""
    monkeypatch.setattr("workloads.small_files.tomllib.loads", lambda text: pytest.fail("it is parsed"))
    with pytest.raises(InputError, match=r"c.toml: line 2: tables or arrays are nested too deep"):
        parse_toml(f"b = 1\n{key} = 1", tmp_path / "c.toml")


@pytest.mark.parametrize("part", ["a", "a ", '"', "'a' ", '"a".\n', "b.c = 1\n# ", "...."])
def test_what_only_looks_like_such_a_key_is_parsed(tmp_path, monkeypatch, part):
    monkeypatch.setattr("workloads.small_files.tomllib.loads", lambda text: {"text": len(text)})
    text = part * 500_000
    assert parse_toml(text, tmp_path / "c.toml") == {"text": len(text)}


def test_a_configuration_larger_than_any_is(tmp_path, capsys):
    with open(tmp_path / "c.toml", "wb") as file:
        file.truncate(100 << 30)
    assert "larger than 4 MiB" in error_of(capsys, "validate", tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('scheduler = "./own.py:Own"\nworkload = "poisson"\nnodes = 3\n', ("validate",)),
        (
            'scheduler = "v"\nworkload = "poisson"\nnodes = 3\n[variants.v]\nscheduler = "./own.py:Own"\n',
            ("validate",),
        ),
        (
            'workload = "poisson"\nnodes = 3\n[sweep]\nscheduler = ["sparrow", "./own.py:Own"]\n',
            ("sweep", "--dry-run"),
        ),
    ],
)
def test_code_is_announced_and_can_be_refused(tmp_path, capsys, text, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(text)
    ran = tmp_path / "ran"
    (tmp_path / "own.py").write_text(
        f"open({str(ran)!r}, 'w').close()\nclass Own:\n    def place(self, job, nodes):\n        return []\n"
    )
    assert "own.py:Own' is code, and --no-code was given" in error_of(capsys, *command, "c.toml", "--no-code")
    assert not ran.exists()
    assert main([*command, "c.toml"]) == 0
    assert "own.py:Own is code: it is loaded, and so run" in capsys.readouterr().err
    assert ran.exists()
