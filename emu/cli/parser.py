"""The commands of the program and their options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

from emu.cli.examples import EXAMPLES
from emu.cli.results_parser import add_explain, add_plot, add_report, add_timeline
from emu.cli.workload_parser import add_actions, add_transformations
from emu.configuration.key import Key
from emu.configuration.keys import BY_NAME, KEYS
from workloads.errors import InputError
from workloads.hints import did_you_mean

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


def build_parser(command: str | None = None) -> Parser:
    """Return the parser of all commands, or one in which only `command` has its options, which take time to make."""
    parser = Parser(prog="emu", allow_abbrev=False, **_texts(_ABOUT, ""))
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, (about, add_options) in _COMMANDS.items():
        made: Parser = commands.add_parser(
            name, help=about, allow_abbrev=False, **_texts(f"{about.capitalize()}.", name)
        )
        if command in (None, name):
            _add_common(made)
            add_options(made)
    return parser


def _add_run(run: Parser) -> None:
    _add_emulation(run, several=False)
    _add_view(run)


def _add_compare(compare: Parser) -> None:
    _add_emulation(compare, several=True)
    _add_view(compare)


def _add_sweep(sweep: Parser) -> None:
    sweep.add_argument("file", metavar="FILE.toml")
    sweep.add_argument("--out", metavar="DIR", help="the sweep's directory (runs/sweep-FILE)")
    sweep.add_argument("--dry-run", action="store_true", help="check every run and list them; run nothing")
    for name in ("in_process", "address"):
        _add_key(sweep, BY_NAME[name])
    _add_overwrite(sweep)
    _add_set(sweep)
    _add_view(sweep)
    sweep.add_argument("--json", action="store_true", help="print the summary alone, as JSON")
    _add_parallel(sweep)
    _add_no_code(sweep)


def _add_size(size: Parser) -> None:
    size.add_argument(
        "--target",
        metavar="TEXT",
        action="append",
        default=[],
        help="[class.]statistic < bound, such as 'short.p99 < 60s' or 'all.slowdown.p99 < 3'; in place of a class a "
        "priority or a tenant, as 'priority:9.wait.p99 < 60s' and 'tenant:ads.mean < 1h'; all that are given must hold",
    )
    size.add_argument("--low", metavar="N", help="the fewest nodes to try")
    size.add_argument("--high", metavar="N", help="the most nodes to try")
    size.add_argument(
        "--tolerance",
        metavar="SHARE",
        help="how close the answer is to a number that fails (1%%); 0: neighbours",
    )
    size.add_argument(
        "--mix",
        metavar="N",
        nargs="?",
        const="",
        help="search the cheapest mix of the cluster's machine types, and measure at most N mixes (100)",
    )
    size.add_argument(
        "--curve",
        metavar="SHARES",
        nargs="?",
        const="",
        help="measure sizes around the answer besides, as shares of it (50%%,80%%,90%%,110%%,120%%,200%%)",
    )
    size.add_argument(
        "--waits",
        action="store_true",
        help="state at the answer what the jobs of each target waited for, in shares by reason",
    )
    size.add_argument(
        "--price",
        metavar="TEXT",
        help="prices of an hour of a node, such as 'fast=0.35, plain=0.1', in place of the cluster's own",
    )
    _add_emulation(size, several=False)
    _add_parallel(size)


def _add_validate(validate: Parser) -> None:
    validate.add_argument("file", metavar="FILE.toml")
    _add_no_code(validate)
    _add_set(validate)


def _add_schedulers(schedulers: Parser) -> None:
    schedulers.add_argument("name", metavar="NAME", nargs="?")
    schedulers.add_argument("--json", action="store_true", help="print the same as JSON")


def _add_new(new: Parser) -> None:
    new.add_argument("what", metavar="scheduler")
    new.add_argument("name", metavar="NAME", help="in small letters, as my-policy")
    new.add_argument(
        "--kind",
        metavar="KIND",
        help="central, probing, coflows or dags: a class in plain Python; compiled: as the built-in ones (compiled)",
    )
    new.add_argument(
        "--from",
        dest="source",
        metavar="SCHEDULER",
        help="a built-in scheduler: a copy of its module under the new name, in place of a kind",
    )
    new.add_argument("--out", metavar="DIR", default=".", help="the folder of the two files (this one)")


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
        if key.name != "scheduler":
            _add_key(parser, key)
        elif several:
            add("--schedulers", metavar="A,B,…", help="the first is the one that others are compared with")
        else:
            add(key.option, metavar="NAME", help="a name, package.module:Class or file.py:Class (required)")
    _add_set(parser)
    add("--config", metavar="FILE.toml", help="configuration file; options and --set beat it")
    add("--out", metavar="DIR", help="run directory; by default a new one below runs/")
    _add_overwrite(parser)
    add("--resume", metavar="DIR", help="go on with a run that ended early; show a finished one")
    add("--json", action="store_true", help="print the summary alone, as JSON")


def _add_key(parser: Parser, key: Key) -> None:
    """Add the option of a key."""
    if key.kind == "flag":
        form: dict[str, Any] = {"action": "store_const", "const": True}
    else:
        form = {"metavar": "|".join(key.choices) or _METAVARS.get(key.name) or _METAVARS.get(key.kind, "N")}
    parser.add_argument(str(key.option), dest=key.name, help=_help(key), **form)


_METAVARS = {
    "workload": "NAME|PATH",
    "cluster": "PRESET|PATH",
    "seed": "S",
    "address": "RAY",
    "duration": "TIME",
    "cutoff": "TIME|SHARE",
    "share": "SHARE",
}


def _add_set(
    parser: Parser,
    text: str = "set a configuration key or a scheduler's parameter; can be given several times",
) -> None:
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=text)


def _add_overwrite(parser: Parser) -> None:
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what an earlier command left in DIR"
    )


def _add_parallel(parser: Parser) -> None:
    parser.add_argument("--parallel", metavar="N", help="runs at once (Ray's CPUs)")
    parser.add_argument("--retries", metavar="N", help="tries more when a worker process dies (2)")


def _add_no_code(parser: Parser) -> None:
    parser.add_argument(
        "--no-code",
        action="store_true",
        help="refuse a file that names a scheduler by FILE.py:CLASS or MODULE:CLASS, which is code and is run",
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


def _actions(parser: Parser) -> Callable[[str, str], Parser]:
    """Return a function that adds an action to a command, from its name and its help."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)

    def action(name: str, about: str) -> Parser:
        made: Parser = actions.add_parser(
            name, help=about, description=f"{about.capitalize()}.", allow_abbrev=False
        )
        _add_common(made, shown=False)
        return made

    return action


def _add_workload(parser: Parser) -> None:
    action = _actions(parser)
    add_actions(action)
    add_transformations(action)


def _add_cluster(parser: Parser) -> None:
    action = _actions(parser)
    listed, info = action("list", "list the presets"), action("info", "describe a cluster")
    for made in (listed, info):
        made.add_argument("--json", action="store_true", help="print the same as JSON")
    info.add_argument("cluster", metavar="PRESET|PATH")
    info.add_argument("--nodes", metavar="N", help="number of nodes")
    _add_set(info, "slots=N or cluster_seed=N")


def _help(key: Key) -> str:
    default = "" if key.default is None or key.kind == "flag" else f" ({key.default})"
    default = f" ({key.otherwise})" if key.otherwise else default
    text = f"{key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}{default}"
    return text.replace("`", "").replace("%", "%%")


def _texts(about: str, name: str) -> dict[str, Any]:
    return {
        "description": about,
        "epilog": f"examples:\n{EXAMPLES[name]}" if name in EXAMPLES else None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _add_completion(completion: Parser) -> None:
    completion.add_argument("shell", metavar="bash|zsh|fish")


def _add_schema(schema: Parser) -> None:
    schema.add_argument("file", metavar="config|sweep|cluster")


_COMMANDS: dict[str, tuple[str, Callable[[Parser], None]]] = {
    "run": ("emulate one scheduler", _add_run),
    "compare": ("emulate several schedulers on the same workload and compare them", _add_compare),
    "sweep": ("run a grid of emulations in parallel; started again it does what is missing", _add_sweep),
    "size": ("find the fewest nodes that meet a target", _add_size),
    "validate": ("check a configuration file and print it fully resolved", _add_validate),
    "workload": ("list, describe, convert, make, transform and fetch workloads", _add_workload),
    "cluster": ("list and describe clusters", _add_cluster),
    "schedulers": ("list schedulers, or describe one", _add_schedulers),
    "explain": ("explain why a job of a run, or all of them, took as long as they did", add_explain),
    "timeline": ("write a run as a timeline for Perfetto or Chrome's trace viewer", add_timeline),
    "plot": ("draw runs: a figure for a paper", add_plot),
    "report": ("write one self-contained HTML page about runs", add_report),
    "new": ("write a scheduler of one's own to start from, and its test", _add_new),
    "completion": ("print a script that completes commands and options in a shell", _add_completion),
    "schema": ("print the JSON schema of a TOML file, for editors", _add_schema),
}
"""The help of each command, and the function that adds its options."""
