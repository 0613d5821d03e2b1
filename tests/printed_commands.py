"""Every command and call that README and the pages of docs print: what each is, and how a test takes it.

A page prints commands in fenced blocks, in indented lines, and between backticks in running text and tables. A command
runs as printed, in a folder with the inputs that the pages show, or `NOT_RUN` names it with a reason. All are checked:
the parser of the command line takes them, and their keys, parameters and schedulers are known.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import io
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import emu
from emu.cli import main
from emu.cli.parser import build_parser
from workloads.errors import InputError

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
"""The pages of users; CONTRIBUTING.md is about the repository itself."""
BLOCKS_RUN = (
    "README.md",
    "docs/tour.md",
    *(f"docs/{p.parent.name}/{p.name}" for p in PAGES if p.parent.name == "tutorials"),
)
"""Pages whose blocks run as processes, and print what is below them (`tests.pages`)."""

FENCED = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_BEGIN = r"(?:[A-Z_]+=\S+ )*(?:emu|python3?) (?=[a-z-])"
_OTHERS = r"(?:pytest|pip|ray|sacct|kubectl|sha256sum)\s"
_INDENTED = re.compile(rf"^ {{4}}(?P<code>{_BEGIN}.*)$", re.MULTILINE)
_SPAN = re.compile(r"`(?P<code>[^`\n]+)`")
_ENVIRONMENT = re.compile(r"[A-Z_]+=.*")
_FOR_ANYTHING = re.compile(r"[A-Z][A-Z_]*(\.toml|=VALUE)?…?|.*….*|[a-z]+(\|[a-z]+)+")
"""Words that stand for what the reader gives: ``NAME``, ``FILE.toml``, ``a|b``, ``…``."""

LONG = "runs for minutes: 15,000 nodes, or several thousand jobs, under several schedulers"
TRACE = "needs a trace that is not in the repository"
BEFORE = "needs the results of a run of its page that takes minutes"
OTHER = "a program of the reader's cluster"
FRAGMENT = "the beginning of a class"
SET_UP = "makes an environment; how long it takes is measured by hand"
LIVE = "a live run, which takes as long as the wall clock says"
DETERMINISM = "such runs are compared by tests/actors/schedulers/jobs/test_determinism.py"
NOT_RUN: dict[tuple[str, str], str] = {
    ("", "python -m benchmarks."): "a measurement, which takes minutes",
    ("", "python -m claims."): "a measurement, which takes minutes",
    ("", "python -m tests.oracles."): "a measurement, which takes minutes",
    ("", "python -m tests."): "writes pages, or searches for hours",
    ("docs/architecture.md", "python -X importtime"): "measures the start of Python",
    ("README.md", "python3 -m venv"): SET_UP,
    ("docs/checkpoints.md", "emu"): "goes on with a run of the reader's",
    ("docs/clocks.md", "emu run"): LONG,
    ("docs/coflows.md", "emu compare"): TRACE,
    ("docs/dag-network.md", "emu run --scheduler drf --workload facebook-mapreduce"): LONG,
    ("docs/dag-network.md", "emu run --scheduler tetris"): LONG,
    ("docs/dags.md", "emu"): LONG,
    ("docs/live.md", "emu run"): LIVE,
    ("docs/own-logs.md", "sacct"): OTHER,
    ("docs/own-logs.md", "kubectl"): OTHER,
    ("docs/plots.md", "emu compare"): LONG,
    ("docs/plots.md", "emu"): BEFORE,
    ("docs/reference/results.md", "emu compare"): LONG,
    ("docs/reference/results.md", "import pandas"): BEFORE,
    ("docs/results.md", "emu compare"): LONG,
    ("docs/results.md", "python run.py"): LONG,
    ("docs/results.md", "emu sweep"): LONG,
    ("docs/results.md", "NUMBA_"): DETERMINISM,
    ("docs/results.md", "sha256sum"): DETERMINISM,
    ("docs/results/dags.md", "emu"): LONG,
    ("docs/results/deadlines.md", "emu sweep"): LONG,
    ("docs/results/deadlines.md", "emu compare"): TRACE,
    ("docs/results/phoenix.md", "emu sweep"): LONG,
    ("docs/run-directories.md", "import emu"): LONG,
    ("docs/schedulers.md", "emu compare"): LONG,
    ("docs/schedulers.md", "class"): FRAGMENT,
    ("docs/schedulers.md", "emu schedulers mine.py"): FRAGMENT,
    ("docs/schedulers.md", "emu run --scheduler examples/smallest_coflow.py:LeastSent --workload FB2010"): TRACE,
    ("docs/schedulers.md", "emu run --scheduler drf"): LONG,
    ("docs/sweeps.md", "emu compare --schedulers eagle,sparrow --workload yahoo"): LONG,
    ("docs/sweeps.md", "emu compare --schedulers eagle,sparrow --workload trace.tr"): TRACE,
    ("docs/sweeps.md", "emu sweep grid.toml  "): LONG,
    ("docs/sweeps.md", "emu sweep grid.toml --in-process"): LONG,
    ("docs/sweeps.md", "import emu"): LONG,
    ("docs/sweeps.md", "emu size"): LONG,
    ("docs/sweeps.md", "emu.size"): LONG,
    ("docs/tutorials/size-a-cluster.md", "emu report"): BEFORE,
    ("docs/workloads.md", "emu workload fetch"): "downloads a trace",
    ("docs/workloads.md", "emu workload convert trace.tr.gz"): TRACE,
    ("docs/workloads.md", "emu workload info FB-2009"): TRACE,
    ("docs/workloads.md", "emu workload synth synthetic-coflows large"): "10 million flows",
    ("docs/workloads.md", "emu workload synth query-dags production"): "3 million tasks",
    ("docs/workloads.md", "emu workload draw"): TRACE,
    ("docs/workloads.md", "emu workload deadlines"): TRACE,
    ("docs/workloads.md", "emu workload weights"): TRACE,
    ("docs/workloads.md", "emu workload retime"): TRACE,
    ("docs/workloads.md", "emu workload convert batches"): TRACE,
    ("docs/workloads.md", "emu compare"): TRACE,
    ("docs/workloads.md", "emu run --scheduler dcoflow"): TRACE,
    ("docs/workloads.md", "emu workload info tpch"): TRACE,
    ("docs/workloads.md", "emu cluster info google-2011/machine_events"): TRACE,
    ("docs/workloads.md", "emu workload convert clusterdata"): TRACE,
    ("docs/workloads.md", "emu workload info google"): TRACE,
    ("docs/workloads.md", "emu run --workload google"): TRACE,
    ("docs/workloads.md", "emu workload jobs FB2010"): TRACE,
    ("docs/workloads.md", "emu workload resample trace"): TRACE,
    ("docs/workloads.md", "emu workload filter FB2010"): TRACE,
    ("docs/workloads.md", "emu workload skew FB2010"): TRACE,
    ("docs/workloads.md", "emu workload replicate FB2010"): TRACE,
    ("docs/workloads.md", "emu workload scale FB2010"): TRACE,
}  # fmt: skip
"""Page (empty: any) and beginning of what is checked and not run, to the reason."""
SLOW = {
    "README.md": "compiles five schedulers",
    "docs/dag-network.md": "DAG jobs over a network, under six schedulers",
    "docs/explain.md": "runs with all events",
    "docs/plots.md": "a comparison of thousands of jobs",
    "docs/reference/results.md": "970,089 tasks",
    "docs/results.md": "970,089 tasks",
    "docs/sweeps.md": "the plans of 48 runs on 15,000 nodes",
    "docs/workloads.md": "workloads of 970,089 tasks",
}
"""Pages whose commands take more than some seconds, to the reason."""


class Printed(NamedTuple):
    """A command, a call, or a block of Python of a page."""

    page: Path
    line: int
    kind: str  # of a shell: "block", "indented", "text"; of Python: "python", "call"
    text: str

    @property
    def place(self) -> str:
        """The path of its page in the repository."""
        return self.page.relative_to(ROOT).as_posix()

    @property
    def name(self) -> str:
        return f"{self.place}, line {self.line}: {self.text.strip().splitlines()[0]}"

    @property
    def words(self) -> list[str]:
        """The words of a command of a shell, without comments and what is set for it in the environment."""
        words = shlex.split(self.text, comments=True)
        return [word for i, word in enumerate(words) if i or not _ENVIRONMENT.fullmatch(word)]

    @property
    def is_whole(self) -> bool:
        """Whether it can be run as it is: nothing is left to the reader, and it has all that it needs.

        In running text ``emu workload info --cluster`` is the name of an option, and ``emu run`` that of a command.
        """
        if self.kind == "python":
            return True
        if self.kind == "call":
            return "…" not in self.text and _is_literal(call_of(self))
        if self.is_run_with_its_block:
            return True
        if any(_FOR_ANYTHING.fullmatch(word) for word in self.words[1:]) and self.kind != "indented":
            return False
        return self.kind != "text" or not _lacking(self.words)

    @property
    def is_run_with_its_block(self) -> bool:
        """Whether it is run by its page's blocks, which run as processes (`tests.pages`)."""
        return self.place in BLOCKS_RUN and self.kind in ("block", "python")

    @property
    def not_run(self) -> str:
        """The reason for which it is not run; empty if it is."""
        for (page, begin), reason in NOT_RUN.items():
            if page in ("", self.place) and self.text.lstrip().startswith(begin):
                return reason
        return ""


def printed_on(page: Path) -> list[Printed]:
    """Return the commands, calls and blocks of Python of a page, from the top down."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCED.finditer(text):
        line = text.count("\n", 0, fence.start("code")) + 1
        if fence["kind"] == "python":
            found.append(Printed(page, line, "python", fence["code"]))
        elif fence["kind"] in ("bash", ""):
            found += [Printed(page, line + at, "block", one) for at, one in _lines(fence["code"])]
    rest = FENCED.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)  # lines keep their numbers
    for pattern, kind in ((_INDENTED, "indented"), (_SPAN, "text")):
        for one in pattern.finditer(rest):
            line, code = rest.count("\n", 0, one.start()) + 1, one["code"]
            if re.match(_BEGIN, code):
                found.append(Printed(page, line, kind, code))
            elif re.match(r"emu\.\w+\(.", code):
                found.append(Printed(page, line, "call", code.removesuffix(".nodes")))
        rest = pattern.sub("", rest) if kind == "indented" else rest
    return sorted(found, key=lambda one: one.line)


def _lines(code: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a block of a shell, each with the number of its line; lines that go on are one."""
    at, text = 0, ""
    for number, line in enumerate(code.splitlines()):
        if not text and not re.match(f"{_BEGIN}|{_OTHERS}", line):
            continue
        at = at if text else number
        text += line
        if text.endswith("\\"):
            text = text[:-1]
            continue
        yield at, text
        text = ""


def programs_of(one: Printed) -> Iterator[tuple[list[str], str | None]]:
    """Yield the programs that a command starts, one after another, as words, and the file for what each prints."""
    part: list[str] = []
    for word in [*one.words, "&&"]:
        if word not in ("&&", "||", "|"):
            part.append(word)
            continue
        part = part[: part.index("<<EOF")] if "<<EOF" in part else part
        to = part[part.index(">") + 1] if ">" in part else None
        yield part[: part.index(">")] if ">" in part else part, to
        part = []


def call_of(one: Printed) -> ast.Call:
    """Return a call of the package that is printed in running text."""
    node = ast.parse(one.text.replace("…", "..."), mode="eval").body
    assert isinstance(node, ast.Call), one.name
    return node


def _is_literal(call: ast.Call) -> bool:
    try:
        _arguments(call)
    except ValueError:
        return False
    return True


@cache
def _parser() -> argparse.ArgumentParser:
    return build_parser()


def _arguments(call: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    positional = [ast.literal_eval(value) for value in call.args]
    return positional, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}


def _parser_of(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of a command of `emu`, down to that of its action, and the words behind."""
    parser: argparse.ArgumentParser = _parser()
    rest = words[1:]
    while rest:
        inner = next((a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)), {})
        if rest[0] not in inner:
            break
        parser, rest = inner[rest[0]], rest[1:]
    return parser, rest


def _lacking(words: list[str]) -> bool:
    """Return whether a command in running text lacks what it needs: an action, an argument, a scheduler."""
    if words[0] != "emu" or words == ["emu"] or "--help" in words:
        return False
    try:
        options, _ = _parser().parse_known_args(words[1:])
    except InputError:
        return True
    needed = {"run": "scheduler", "compare": "schedulers", "size": "target"}.get(words[1])
    no_action = words[1] in ("workload", "cluster", "new") and len(words) < 3
    return no_action or (needed is not None and not getattr(options, needed))


def check(one: Printed) -> None:
    """Check a command or a call without running it: names, options, keys and parameters are known."""
    if one.kind == "python":
        tree = ast.parse(one.text)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "emu"
            ):
                assert hasattr(emu, node.attr), f"{one.name}: emu.{node.attr}"
    elif one.kind == "call":
        _check_call(one)
    else:
        for words, _ in programs_of(one):
            if words[:1] == ["emu"] or words[:2] in (["python", "run.py"], ["python3", "run.py"]):
                _check_emu(one, ["emu", *words[words[0].startswith("python") + 1 :]])
            elif words[0].startswith("python") and words[1:2] == ["-m"]:
                _check_module(one, words[2:])


def _check_call(one: Printed) -> None:
    from emu.configuration.plan import configure

    call = call_of(one)
    assert isinstance(call.func, ast.Attribute)
    function = getattr(emu, call.func.attr)
    if "…" in one.text:
        return
    inspect.signature(function).bind(*call.args, **{str(k.arg): k.value for k in call.keywords if k.arg})
    if one.is_whole and call.func.attr == "run":
        positional, named = _arguments(call)
        configure({**dict(zip(("scheduler", "workload", "nodes"), positional, strict=False)), **named})


def _check_emu(one: Printed, words: list[str]) -> None:
    parser, rest = _parser_of(words)
    if one.kind == "text" and _lacking(words):  # no more than the name of a command, or of an option of it
        rest = [word.partition("|")[0] for word in rest]
    known = {name for action in parser._actions for name in action.option_strings}
    for word in rest:
        assert not word.startswith("--") or word.partition("=")[0] in known, f"{one.name}: {word}"
    if not one.is_whole or one.is_run_with_its_block or words == ["emu"] or "--help" in words:
        return  # a block that runs as a process has files, and a shell, of its own
    options, unknown = _parser().parse_known_args(words[1:])
    assert not unknown, f"{one.name}: {unknown}"
    if words[1] in ("run", "compare", "size"):
        _check_keys(options)


def _check_keys(options: argparse.Namespace) -> None:
    """Check the keys, schedulers and parameters of a command that emulates; it raises `InputError`."""
    from emu.cli import commands
    from emu.configuration.schedulers import find_schedulers, scheduler_parameters
    from emu.sweeps.targets import read_targets

    if options.resume is not None:
        return
    config = commands._config(options, "schedulers" if options.command == "compare" else "scheduler")
    files = [str(name) for name in config["scheduler"] or () if ".py:" in str(name)]
    if config["scheduler"] and all(Path(name.partition(":")[0]).exists() for name in files):
        scheduler_parameters(config, find_schedulers(config))
    if options.command == "size":
        read_targets(options.target)


def _check_module(one: Printed, words: list[str]) -> None:
    if words[0] == "venv":
        return
    found = importlib.util.find_spec(words[0])
    assert found is not None, f"{one.name}: no module {words[0]}"
    assert found.origin is not None
    source = Path(found.origin).read_text(encoding="utf-8")
    for word in words[1:]:
        if word.startswith("--"):  # as it is written, or as `options` of benchmarks take it
            name = word.partition("=")[0]
            own = name[2:].replace("-", "_")
            assert name in source or re.search(rf"\b{own}(=|\":)", source), f"{one.name}: {word}"


def shown_inputs() -> Mapping[str, str]:
    """Return the files that pages show, by name: logs, a table, configurations."""
    own_logs = (ROOT / "docs" / "own-logs.md").read_text(encoding="utf-8")
    found = {
        m[1]: m[2] for m in re.finditer(r"<!-- (\S+): [^>]* -->\n```text\n(.*?)```", own_logs, re.DOTALL)
    }
    for name, page in (
        ("grid.toml", "sweeps.md"),
        ("machines.toml", "clusters.md"),
        ("experiment.toml", "reference/configuration.md"),
    ):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        found[name] = next(fence["code"] for fence in FENCED.finditer(text) if fence["kind"] == "toml")
    return found | {"FILE": found["log.swf"]}


def run(one: Printed) -> None:
    """Run a command or a call in the current folder; AssertionError where it fails."""
    if one.kind in ("python", "call"):
        exec(compile(one.text, one.name, "exec"), {"emu": emu} if one.kind == "call" else {})
        return
    for words, to in programs_of(one):
        if words[0] != "emu":
            assert words[0] == "source", one.name  # of a shell: nothing to run
            continue
        printed, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(errors):
            code = main(words[1:])
        assert code == 0, f"{one.name}: {errors.getvalue()}"
        if to is not None:
            Path(to).write_text(printed.getvalue(), encoding="utf-8")
