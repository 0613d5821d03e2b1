"""Scripts that complete commands and options, run by a shell."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from python_process import PATIENCE_S

from actors.schedulers.registry import scheduler_names
from emu.cli.completion import _words, script, values_of
from emu.cli.parser import build_parser
from emu.configuration.keys import BY_NAME

PARSER = build_parser()
WORDS = list(_words(PARSER, (), ""))


@pytest.fixture(scope="module")
def completed() -> Callable[[list[list[str]]], list[list[str]]]:
    """Command lines to what bash offers for the last word of each, in one process."""

    def ask(lines: list[list[str]]) -> list[list[str]]:
        calls = [
            f"COMP_WORDS=(emu {' '.join(map(shlex.quote, line))}); COMP_CWORD={len(line)}; _emu; "
            'printf "%s " "${COMPREPLY[@]}"; echo'
            for line in lines
        ]
        text = "\n".join(["cd /", script("bash", PARSER), *calls])
        done = subprocess.run(
            ["bash", "-s"], input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        assert not done.stderr
        return [line.split() for line in done.stdout.splitlines()]

    return ask


def test_bash_completes_every_option_of_every_command(completed: Callable[..., Any]) -> None:
    lines = [[*one.path, "--"] for one in WORDS]
    for one, found in zip(WORDS, completed(lines), strict=True):
        assert found == list(one.options), one.path
    assert len(WORDS) > 30


def test_bash_completes_commands_and_values(completed: Callable[..., Any]) -> None:
    cases = {
        ("ru",): ["run"],
        ("workload", "li"): ["list"],
        ("run", "--scheduler", "spar"): ["sparrow", "sparrow-c"],
        ("compare", "--schedulers", "sparrow,haw"): ["sparrow,hawk", "sparrow,hawk-c"],
        ("run", "--set", "output."): ["output.tasks=", "output.events="],
        ("run", "--clock", "w"): ["windows"],
        ("run", "--overwrite", "--see"): ["--seed", "--seeds"],
        ("explain", "some", "--bes"): ["--beside"],
    }
    assert dict(zip(cases, completed([list(line) for line in cases]), strict=True)) == cases


def test_bash_completes_paths(tmp_path: Path) -> None:
    (tmp_path / "trace.tr").touch()
    text = f"cd {tmp_path}; {script('bash', PARSER)}"
    for line in ("run --workload tra", "explain tra", "run --config tra"):
        words = line.split()
        call = f'COMP_WORDS=(emu {line}); COMP_CWORD={len(words)}; _emu; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(
            ["bash", "-s"], input=f"{text}\n{call}", capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["trace.tr"]


def test_values_are_those_of_the_registries() -> None:
    assert values_of()["--scheduler"] == list(scheduler_names())
    assert {value.rstrip("=") for value in values_of()["--set"]} == set(BY_NAME)


def test_fish_and_zsh_have_the_same_options() -> None:
    fish = script("fish", PARSER)
    for one in WORDS:
        for option in one.options:
            assert any(
                f"-l {option[2:]} " in line and all(name in line for name in one.path)
                for line in fish.splitlines()
            )
    assert "-a run -d" in fish
    assert script("zsh", PARSER).endswith(script("bash", PARSER))


def test_the_command_prints_the_script(emu: Callable[..., Any]) -> None:
    assert emu("completion", "bash").out.strip() == script("bash", PARSER).strip()
    ended = emu("completion", "tcsh")
    assert ended.code == 2
    assert "there is no completion for 'tcsh'; want one of bash, zsh, fish" in ended.err
