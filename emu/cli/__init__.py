"""The command line: commands and options, errors in wrong arguments, and exit codes."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import Any, NoReturn

from emu.cli.examples import EXAMPLES
from emu.cli.results_parser import add_reading
from emu.cli.workload_parser import add_actions, add_transformations
from emu.configuration.keys import BY_NAME, KEYS
from emu.configuration.kinds import Key
from emu.disk import FULL
from workloads.errors import InputError, UnavailableError, printable
from workloads.hints import did_you_mean

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130

_ABOUT = """\
Emu emulates datacenter schedulers at cluster scale: which scheduler, at which size, for which workload?

Without a command it compares sparrow, hawk, eagle and central-lwl on the bundled workload `yahoo` over
15,000 nodes, prints a table and writes a report.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `InputError`s."""

    def error(self, message: str) -> NoReturn:
        """Raise argparse's error, with the nearest command where one is unknown."""
        message = re.sub(r"^argument (\S+): ", lambda m: f"{m[1].split('/')[0]}: ", message)
        if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            known = [name.strip(" '") for name in match[2].split(",")]
            message = f"unknown command {match[1]!r}{did_you_mean(match[1], known)}"
        elif message.endswith("required: ACTION"):
            message = f"{self.prog} does nothing alone; `{self.prog} --help` lists its commands"
        raise InputError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with arguments (by default the process's) and return its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    from actors.hosting.interrupts import Lost, ends_as_ctrl_c
    from emu.directories.record import commanded
    from emu.terminal import results_alone

    try:
        with ends_as_ctrl_c(), commanded(argv), results_alone() if "--json" in argv else nullcontext():
            code = _run(argv)
        sys.stdout.flush()
        return code
    except InputError as error:
        _print_error(str(error))
        return FAILED if isinstance(error, UnavailableError) else WRONG_INPUT
    except KeyboardInterrupt as error:
        _print_error(f"interrupted; {error}" if str(error) else "interrupted")
        return INTERRUPTED
    except Lost as error:
        _print_error(str(error))
        return FAILED
    except BrokenPipeError:
        # Who read our output has seen enough. What is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL and "--debug" not in argv:
            place = f"{error.filename}: " if error.filename else ""
            _print_error(f"{place}cannot be written: {error.strerror}")
            return FAILED
        return _crash(error, "--debug" in argv)
    finally:
        _close_ray()


def build_parser(transformations: bool = False) -> Parser:
    """Return the parser of all commands; transformations take time to load, and are in it where wanted."""
    parser = Parser(prog="emu", allow_abbrev=False, **_texts(_ABOUT, ""))
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, about: str) -> Parser:
        made: Parser = commands.add_parser(
            name, help=about, allow_abbrev=False, **_texts(f"{about.capitalize()}.", name)
        )
        _add_common(made)
        return made

    running = command("run", "emulate one scheduler")
    _add_emulation(running, several=False)
    _add_view(running)
    comparing = command("compare", "emulate several schedulers on the same workload and compare them")
    _add_emulation(comparing, several=True)
    _add_view(comparing)
    sweep = command("sweep", "run a grid of emulations in parallel; started again it does what is missing")
    sweep.add_argument("file", metavar="FILE.toml")
    sweep.add_argument("--out", metavar="DIR", help="the sweep's directory (runs/sweep-FILE)")
    sweep.add_argument("--dry-run", action="store_true", help="check every run and list them; run nothing")
    for name in ("in_process", "address"):
        key = BY_NAME[name]
        kind = (
            {"action": "store_const", "const": True} if key.kind == "flag" else {"metavar": _METAVARS[name]}
        )
        sweep.add_argument(f"--{name.replace('_', '-')}", help=_help(key), **kind)
    _add_overwrite(sweep)
    _add_set(sweep)
    _add_view(sweep)
    sweep.add_argument("--json", action="store_true", help="print the summary alone, as JSON")
    size = command("size", "find the fewest nodes that meet a target")
    size.add_argument(
        "--target",
        metavar="TEXT",
        action="append",
        default=[],
        help="[class.]statistic < bound, such as 'short.p99 < 60s' or 'all.slowdown.p99 < 3'; all that are given "
        "must hold",
    )
    size.add_argument("--low", metavar="N", help="the fewest nodes to try")
    size.add_argument("--high", metavar="N", help="the most nodes to try")
    size.add_argument(
        "--tolerance",
        metavar="SHARE",
        help="how close the answer is to a number that fails (1%%); 0: neighbours",
    )
    _add_emulation(size, several=False)
    for several in (sweep, size):
        several.add_argument("--parallel", metavar="N", help="runs at once (Ray's CPUs)")
        several.add_argument("--retries", metavar="N", help="tries more when a worker process dies (2)")
    validate = command("validate", "check a configuration file and print it fully resolved")
    validate.add_argument("file", metavar="FILE.toml")
    for reading in (sweep, validate):
        reading.add_argument(
            "--no-code",
            action="store_true",
            help="refuse a file that names a scheduler by FILE.py:CLASS or MODULE:CLASS, which is code and is run",
        )
    _add_set(validate)
    workload = command("workload", "list, describe, convert, make, transform and fetch workloads")
    _add_workload(workload, transformations)
    _add_cluster(command("cluster", "list and describe clusters"))
    schedulers = command("schedulers", "list schedulers, or describe one")
    schedulers.add_argument("name", metavar="NAME", nargs="?")
    schedulers.add_argument("--json", action="store_true", help="print the same as JSON")
    add_reading(command)
    new = command("new", "write a scheduler of one's own to start from, and its test")
    new.add_argument("what", metavar="scheduler")
    new.add_argument("name", metavar="NAME", help="in small letters, as my-policy")
    new.add_argument(
        "--kind",
        metavar="KIND",
        default="compiled",
        help="central, probing, coflows or dags: a class in plain Python; compiled: as the built-in ones (compiled)",
    )
    new.add_argument("--out", metavar="DIR", default=".", help="the folder of the two files (this one)")
    completion = command("completion", "print a script that completes commands and options in a shell")
    completion.add_argument("shell", metavar="bash|zsh|fish")
    schema = command("schema", "print the JSON schema of a TOML file, for editors")
    schema.add_argument("file", metavar="config|sweep|cluster")
    return parser


def _run(argv: list[str]) -> int:
    main_job = not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"))
    argv = ["compare", *argv] if main_job else argv
    parser = build_parser(transformations=argv[0] == "workload")
    try:
        options, unknown = parser.parse_known_args(argv)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    if unknown:
        raise InputError(_unknown(parser, argv, unknown[0]))
    if options.version:
        from emu.cli import commands

        return commands.version()
    if options.quiet and options.verbose:
        raise InputError("--quiet and --verbose: give one of them")
    from emu.terminal import talking

    sys.path.append(
        os.getcwd()
    )  # --scheduler package.module:Class means the one here, however emu was started
    with talking(quiet=options.quiet, verbose=options.verbose):
        return _do(options, main_job)


def _do(options: argparse.Namespace, main_job: bool) -> int:
    """Do what the options ask for."""
    from emu.cli import commands

    if main_job:
        return commands.main_job(options)
    if options.command in ("completion", "schema"):
        from emu.cli.completion import print_for_shells_and_editors

        return print_for_shells_and_editors(options, build_parser(transformations=True))
    if options.command in _HOMES:
        module, function = _HOMES[options.command]
        return int(getattr(import_module(f"emu.cli.{module}"), function)(options))
    return int(getattr(commands, options.command.replace("-", "_"))(options))


_HOMES = {
    "cluster": ("listing_commands", "cluster"),
    "explain": ("explain_command", "explain_run"),
    "new": ("new_command", "write_new"),
    "plot": ("plot_command", "plot_runs"),
    "schedulers": ("listing_commands", "schedulers"),
    "timeline": ("explain_command", "write_run"),
    "workload": ("workload_commands", "run_action"),
}
"""Commands that are not in `emu.cli.commands`, to module and function."""


def _add_common(parser: argparse.ArgumentParser, *, shown: bool = True) -> None:
    """Add the options of all commands; those of actions do not show them again."""
    for option, about in (
        ("--quiet", "print results and errors, no notes and no progress"),
        (
            "--verbose",
            "print also what each run took to load, compile and compute, and where kernels are kept",
        ),
        ("--debug", "show the traceback of an unexpected error"),
    ):
        parser.add_argument(option, action="store_true", help=about if shown else argparse.SUPPRESS)


def _add_emulation(parser: Parser, *, several: bool) -> None:
    """Add the options of ``run`` and ``compare``; those that are keys come from the registry."""
    add = parser.add_argument
    for key in KEYS:
        if key.option is None:
            continue
        if key.name == "scheduler" and several:
            add("--schedulers", metavar="A,B,…", help="the first is the one that others are compared with")
        elif key.kind == "flag":
            add(key.option, action="store_const", const=True, help=_help(key))
        elif key.name == "scheduler":
            add(key.option, metavar="NAME", help="a name, package.module:Class or file.py:Class (required)")
        else:
            metavar = "|".join(key.choices) or _METAVARS.get(key.name) or _METAVARS.get(key.kind, "N")
            add(key.option, metavar=metavar, help=_help(key))
    _add_set(parser)
    parser.add_argument("--config", metavar="FILE.toml", help="configuration file; options and --set beat it")
    parser.add_argument("--out", metavar="DIR", help="run directory; by default a new one below runs/")
    _add_overwrite(parser)
    parser.add_argument(
        "--resume", metavar="DIR", help="go on with a run that ended early; show a finished one"
    )
    parser.add_argument("--json", action="store_true", help="print the summary alone, as JSON")


_METAVARS = {
    "workload": "NAME|PATH",
    "cluster": "PRESET|PATH",
    "seed": "S",
    "address": "RAY",
    "duration": "TIME",
    "cutoff": "TIME|SHARE",
    "share": "SHARE",
}


def _add_set(parser: Parser) -> None:
    text = "set a configuration key or a scheduler's parameter; can be given several times"
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=text)


def _add_overwrite(parser: Parser) -> None:
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what an earlier command left in DIR"
    )


def _add_view(parser: Parser) -> None:
    """Add the options that choose the columns of tables."""
    parser.add_argument(
        "--columns",
        metavar="A,B,…",
        help="figures to show: mean, p50, p90, p95, p99, p99.9, max of completion times, and wait.p99, "
        "slowdown.mean, bounded_slowdown.p99 and so on (mean,p50,p90,p99)",
    )
    parser.add_argument(
        "--reasons",
        action="store_true",
        help="show also decision latency, waits, and how busy schedulers and nodes were",
    )


def _add_workload(parser: Parser, transformations: bool) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)

    def action(name: str, about: str) -> Parser:
        made: Parser = actions.add_parser(
            name, help=about, description=f"{about.capitalize()}.", allow_abbrev=False
        )
        _add_common(made, shown=False)
        return made

    add_actions(action)
    if transformations:
        add_transformations(action)


def _add_cluster(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, about in (("list", "list the presets"), ("info", "describe a cluster")):
        action = actions.add_parser(
            name, help=about, description=f"{about.capitalize()}.", allow_abbrev=False
        )
        _add_common(action, shown=False)
        action.add_argument("--json", action="store_true", help="print the same as JSON")
        if name == "info":
            action.add_argument("cluster", metavar="PRESET|PATH")
            action.add_argument("--nodes", metavar="N", help="number of nodes")
            action.add_argument(
                "--set", metavar="KEY=VALUE", action="append", default=[], help="slots=N or cluster_seed=N"
            )


def _help(key: Key) -> str:
    default = "" if key.default is None or key.kind == "flag" else f" ({key.default})"
    default = f" ({key.otherwise})" if key.otherwise else default
    return f"{key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}{default}".replace("`", "").replace(
        "%", "%%"
    )


def _texts(about: str, name: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"examples:\n{EXAMPLES[name]}" if name in EXAMPLES else None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _unknown(parser: Parser, argv: list[str], text: str) -> str:
    """Return the error for an argument that no command takes."""
    if not text.startswith("-"):
        return f"unexpected argument {text!r}; `emu {argv[0]} --help` lists its arguments"
    option = text.partition("=")[0]
    current: argparse.ArgumentParser = parser
    for word in argv:  # down to the parser of the command, and of its action
        inner = next((a.choices for a in current._actions if isinstance(a, argparse._SubParsersAction)), {})
        current = inner.get(word, current)
    known = [name for a in current._actions for name in a.option_strings if name.startswith("--")]
    key = option.lstrip("-").replace("-", "_")
    if key in BY_NAME and BY_NAME[key].option is None:
        return f"unknown option {option!r}; {key} is a key: --set {key}=…"
    return f"unknown option {option!r}{did_you_mean(option, known)}"


def _print_error(text: str) -> None:
    line = printable(f"emu: {text}")
    try:
        print(line, file=sys.stderr, flush=True)
    except (
        OSError,
        ValueError,
        AttributeError,
    ):  # standard error is closed; the exit code still reports the failure
        return


def _crash(error: Exception, debug: bool) -> int:
    """Report the error in one line, with the traceback on standard error or in a file."""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    message = message if len(message) <= 300 else f"{message[:299]}…"
    if debug:
        traceback.print_exception(error)
        _print_error(message)
        return FAILED
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="emu-error-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(error, file=file)
        _print_error(f"{message} (unexpected; the traceback is in {file.name}, or use --debug)")
    except OSError:
        _print_error(f"{message} (unexpected; --debug shows the traceback)")
    return FAILED


def _close_ray() -> None:
    child = sys.modules.get("actors.hosting.child")
    if child is not None:
        with suppress(KeyboardInterrupt):  # the run is over, and has said how
            child.close()
