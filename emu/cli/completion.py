"""``emu completion`` and ``emu schema``: what shells and editors need to complete commands, options, names and keys.

They are made from the parser and the registries, so that they have every option. All words are in the script, so that
completion does not start Python.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from emu.cli.parser import build_parser
from emu.configuration.json_schema import json_schema
from emu.configuration.keys import BY_NAME
from emu.terminal import put
from workloads.errors import InputError

SHELLS = ("bash", "zsh", "fish")
FILES = ("--out", "--config", "--resume", "--beside", "--cluster")
"""Options whose value is a path, or may be one."""


class Words(NamedTuple):
    """What may follow ``emu COMMAND`` or ``emu COMMAND ACTION``."""

    path: tuple[str, ...]  # the command, and its action if it has any
    about: str
    options: dict[str, str]  # option to its help


def print_script(options: argparse.Namespace) -> int:
    """Print the script of ``emu completion``."""
    put(script(options.shell, build_parser()))
    return 0


def print_schema(options: argparse.Namespace) -> int:
    """Print the schema of ``emu schema``."""
    put(json.dumps(json_schema(options.file), indent=2))
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script of a shell; raise `InputError` for other shells."""
    if shell not in SHELLS:
        raise InputError(f"there is no completion for {shell!r}; want one of {', '.join(SHELLS)}")
    words = list(_words(parser, (), ""))
    if shell == "fish":
        return _fish(words)
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + _bash(words)


def _words(parser: argparse.ArgumentParser, path: tuple[str, ...], about: str) -> Iterator[Words]:
    options: dict[str, str] = {}
    inner: dict[str, argparse.ArgumentParser] = {}
    texts: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner = action.choices
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.help != argparse.SUPPRESS:
            help_text = (action.help or "").replace("%%", "%")
            options |= dict.fromkeys((o for o in action.option_strings if o.startswith("--")), help_text)
    yield Words(path, about, options)
    for name, one in inner.items():
        yield from _words(one, (*path, name), texts.get(name, ""))


def values_of() -> dict[str, list[str]]:
    """Return what an option's value may be, by option."""
    from actors.schedulers.registry import scheduler_names
    from workloads.catalogue import generators
    from workloads.formats import FORMATS

    keys = [f"{name}=" for name in BY_NAME]
    found = {"--scheduler": list(scheduler_names()), "--schedulers": list(scheduler_names()), "--set": keys}
    found |= {"--workload": sorted(generators()), "--from": list(FORMATS), "--to": list(FORMATS)}
    found |= {key.option: list(key.choices) for key in BY_NAME.values() if key.option and key.choices}
    return found


def _bash(words: list[Words]) -> str:
    after = []
    for option, values in values_of().items():
        # Of several with commas between them the last one is completed; after a key comes its value.
        more = " compopt -o nospace 2>/dev/null;" if option == "--set" else ""
        paths = ' COMPREPLY+=($(compgen -f -- "$cur"));' if option == "--workload" else ""
        lead = '${cur%"${cur##*,}"}' if option == "--schedulers" else ""
        listed = shlex.quote(" ".join(values))
        after.append(
            f'        {option}){more} COMPREPLY=($(compgen -P "{lead}" -W {listed} -- "${{cur##*,}}"));{paths} return;;'
        )
    after.append(f'        {"|".join(FILES)}) COMPREPLY=($(compgen -f -- "$cur")); return;;')
    cases = []
    for one in words:
        names = [other.path[-1] for other in words if other.path[:-1] == one.path and other.path]
        listed = shlex.quote(" ".join([*names, *one.options]))
        cases.append(f"        {shlex.quote(' '.join(one.path))}) words={listed};;")
    lines = [
        "# Completion of emu, made by `emu completion`.",
        "_emu() {",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" word words=""',
        "    COMPREPLY=()",
        '    case "$prev" in',
        *after,
        "    esac",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "$word" in -*) break;; *) path="${path:+$path }$word";; esac',
        "    done",
        "    while :; do",
        '        case "$path" in',
        *("    " + case for case in cases),
        "        esac",
        '        if [ -n "$words" ] || [ -z "$path" ]; then break; fi',
        '        case "$path" in *" "*) path="${path% *}";; *) path="";; esac',
        "    done",
        '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        '    [ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))',
        "}",
        "complete -o filenames -F _emu emu",
    ]
    return "\n".join(lines) + "\n"


def _fish(words: list[Words]) -> str:
    lines = ["# Completion of emu, made by `emu completion fish`."]
    values = values_of()
    for one in words:
        seen = [f"__fish_seen_subcommand_from {name}" for name in one.path]
        for other in words:
            if other.path and other.path[:-1] == one.path:
                when = " && ".join(seen) or "__fish_use_subcommand"
                text = f"-a {shlex.quote(other.path[-1])} -d {shlex.quote(_short(other.about))}"
                lines.append(f"complete -c emu -n {shlex.quote(when)} {text}")
        for option, about in one.options.items():
            known = f" -xa {shlex.quote(' '.join(values[option]))}" if option in values else ""
            when = f" -n {shlex.quote(' && '.join(seen))}" if seen else ""
            lines.append(f"complete -c emu{when} -l {option[2:]}{known} -d {shlex.quote(_short(about))}")
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:69]}…"
