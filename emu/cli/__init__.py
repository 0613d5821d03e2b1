"""The command line: how a command is called, errors in arguments, and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib import import_module

from emu.cli.parser import COMMANDS, Parser, build_parser
from emu.configuration.keys import BY_NAME
from workloads.errors import FULL, InputError, UnavailableError, printable
from workloads.hints import did_you_mean

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with arguments (by default the process's) and return its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    from actors.hosting.interrupts import Lost, ends_as_ctrl_c
    from emu.directories.provenance import commanded
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
        _print_error("; ".join(filter(None, ("interrupted", *getattr(error, "__notes__", ()), str(error)))))
        return INTERRUPTED
    except Lost as error:
        _print_error(str(error))
        return FAILED
    except BrokenPipeError:
        # The reader of our output has closed it. What is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except BaseException as error:
        # Also SystemExit of users' code, which would end the program without a message.
        if isinstance(error, OSError) and error.errno in FULL and "--debug" not in argv:
            place = f"{error.filename}: " if error.filename else ""
            _print_error(f"{place}cannot be written: {error.strerror}")
            return FAILED
        return _crash(error, "--debug" in argv)
    finally:
        _close_ray()


def _run(argv: list[str]) -> int:
    main_job = not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"))
    argv = ["compare", *argv] if main_job else argv
    parser = build_parser(argv[0])
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
    from emu.running.progress import telling
    from emu.terminal import talking
    from workloads.doing import doing

    sys.path.append(os.getcwd())  # package.module:Class is looked for here, however emu was started
    with talking(quiet=options.quiet, verbose=options.verbose), telling(), doing(f"emu {options.command}"):
        return _do(options, main_job)


def _do(options: argparse.Namespace, main_job: bool) -> int:
    """Do what the options ask for."""
    if main_job:
        from emu.cli import commands

        return commands.compare(options, commands.MAIN_JOB)
    module, _, function = COMMANDS[options.command].home.partition(":")
    return int(getattr(import_module(f"emu.cli.{module}"), function)(options))


def _unknown(parser: Parser, argv: list[str], text: str) -> str:
    """Return the error for an argument that no command takes."""
    if not text.startswith("-"):
        hint = f"; values are given by --set {text}" if "=" in text else ""
        return f"unexpected argument {text!r}{hint}; `emu {argv[0]} --help` lists its arguments"
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
    # Standard error may be closed; the exit code still reports the failure.
    with suppress(OSError, ValueError, AttributeError):
        print(printable(f"emu: {text}"), file=sys.stderr, flush=True)


def _crash(error: BaseException, debug: bool) -> int:
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
        with suppress(KeyboardInterrupt):  # the run is over, and has reported its end
            child.close()
