"""Hostile inputs over everything that Emu reads: none may end in a traceback, take over 5 s, or over 1 GiB.

How to run: `python -m benchmarks.hostile [--inputs 10000] [--seed 1] [--only KIND ...] [--workers 2]`

Small valid files of each kind (`benchmarks.hostile_samples`) are damaged at random (`benchmarks.hostile_mutations`:
bits, spans, numbers, encodings, ends of lines, nesting, packings, bombs, cells of tables, values of TOML and JSON,
pipes and devices in place of files) and given to the command that reads them. Each input has a seed and a kind, which
give it again: `--seed N --inputs 1 --only KIND --keep DIR`. An input is at fault if its command

- raises, or ends with another code than 0 (done), 2 (wrong input) and, of several runs of which one fails, 1;
- says "unexpected", more than one line of error, or a character that acts on a terminal;
- takes more than 5 s of wall and of processor time, or its process more than 1 GiB at its peak (with 0.5 GB free);
- leaves a temporary file;
- kills its process, or does not end in 60 s.

It prints the counts by kind, and the seed of each fault; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import io
import json
import os
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from benchmarks.hostile_tables import job_table_options
from workloads import limits

LIMIT_S, LIMIT_MB, PATIENCE_S = 5.0, 1024, 60.0
FREE_BYTES = 500_000_000
"""What readers take for free memory, so that sources which state as many tasks as fit stay within `LIMIT_MB`."""
INPUTS_PER_WORKER = 150
"""Then a worker is started again: what its allocator keeps would count as the next input's."""
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e]")

Argv = list[str]


class Kind(NamedTuple):
    """What is read, and how.

    Attributes
    ----------
    commands : callable
        Path of the input, a folder for what is written, and random numbers, to the command lines that read it.
    weight : float
        Its share of the inputs.
    mutated : str
        Pattern of the names of the files that are mutated.
    fits : bool
        Whether the hashes of manifests are made to fit afterwards. A comparison may then end with 1: it tells which of
        its runs cannot be read, and goes on with the others.
    samples : str
        The kind whose samples they are, if not its own.
    """

    commands: Callable[[Path, Path, random.Random], list[Argv]]
    weight: float = 1.0
    mutated: str = "*"
    fits: bool = False
    samples: str = ""


def _read_workload(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    more = ["--set", "instance=1"] if path.suffix == ".zip" else []
    named = ["--from", path.parent.name] if rng.random() < 0.3 and path.parent.name in _FORMATS else []
    if rng.random() < 0.3:
        return [["workload", "convert", str(path), str(out / "converted"), *named, *more]]
    return [["workload", "info", str(path), *named, *more, *rng.choice(([], ["--json"]))]]


def _read_cluster(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    return [["cluster", "info", str(path), *rng.choice(([], ["--json"], ["--set", "slots=3"]))]]


def _validate(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    return [["validate", str(path / "c.toml" if path.is_dir() else path)]]


def _sweep(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    return [["sweep", str(path), "--dry-run", "--out", str(out / "sweep")]]


def _report_and_resume(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    report = ["report", str(path), "--out", str(out / "r.html")]
    return [rng.choice((report, *_resume(path, out, rng)))]


def _resume(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    return [["run", "--resume", str(path), "--in-process"]]


def _explain_and_draw(path: Path, out: Path, rng: random.Random) -> list[Argv]:
    explained = [["explain", str(path), *more] for more in ([], ["3"])]
    drawn = [["plot", str(path), "--kind", kind, "--out", str(out / "x.svg")] for kind in ("cdf", "gantt")]
    return [rng.choice((*explained, *drawn, ["timeline", str(path), "--out", str(out / "t.json")]))]


_FORMATS = (
    "tr", "parquet", "google-2011", "google-2019", "alibaba-2018", "tpch", "coflowlib", "coflow-benchmark", "swim",
    "dag-text", "wfcommons", "swf", "sacct", "kubernetes",
)  # fmt: skip
KINDS: dict[str, Kind] = {
    **{name: Kind(_read_workload) for name in _FORMATS},
    "job-table": Kind(lambda path, _, rng: [["workload", "info", str(path), *job_table_options(rng)]], 2.0),
    "cluster": Kind(_read_cluster, 1.5),
    "beside": Kind(_validate, 1.0, "*[!l]"),
    "config": Kind(_validate, 1.5),
    "sweep": Kind(_sweep),
    "run-directory": Kind(_report_and_resume, 1.5),
    "forged-directory": Kind(_report_and_resume, fits=True, samples="run-directory"),
    "recorded-directory": Kind(_explain_and_draw),
    "forged-events": Kind(_explain_and_draw, 1.5, "*.parquet", fits=True, samples="recorded-directory"),
    "checkpoint": Kind(_resume),
}
"""By the name of the kind's samples; a new one is one entry here and one in `benchmarks.hostile_samples.SAMPLES`."""


def inputs(first_seed: int, count: int, only: list[str]) -> Iterator[tuple[str, int]]:
    """Yield (kind, seed) of the inputs."""
    names = only or [*KINDS]
    weights = [KINDS[name].weight for name in names]
    for seed in range(first_seed, first_seed + count):
        yield random.Random(f"kind {seed}").choices(names, weights)[0], seed


def try_input(kind: str, seed: int, samples: Path, keep: Path | None = None) -> dict[str, Any]:
    """Make an input, give it to its command, and return what came of it."""
    from benchmarks.hostile_mutations import copy_sample, files_of, fit_hashes, mutate

    rng = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory(prefix="hostile-", dir=keep) as folder:
        work, out, scratch = (Path(folder) / name for name in (kind, "out", "tmp"))
        for place in (work, out, scratch):
            place.mkdir()
        sample = rng.choice(sorted((samples / (KINDS[kind].samples or kind)).iterdir()))
        path = copy_sample(sample, work)
        done = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            if there := [file for file in files_of(path) if file.match(KINDS[kind].mutated)]:
                file = rng.choice(there)
                with suppress(Exception):  # what the first mutation left may be nothing to be mutated
                    done.append(f"{file.name}: {mutate(file, rng)}")
        if KINDS[kind].fits:
            with suppress(Exception):  # what cannot be read is refused as it stands
                fit_hashes(path)
        outcome = {"kind": kind, "seed": seed, "sample": sample.name, "done": done}
        with tempfile.TemporaryDirectory() as _:
            tempfile.tempdir = str(scratch)
            try:
                for argv in KINDS[kind].commands(path, out, rng):
                    outcome |= _outcome(argv, (0, 1, 2) if KINDS[kind].fits else (0, 2))
            finally:
                tempfile.tempdir = None
        left = sorted(p.name for p in scratch.iterdir())
        if left and "fault" not in outcome:
            outcome["fault"] = f"left {left[:3]}"
        if keep is not None:
            shutil.copytree(
                folder, keep / f"{kind}-{seed}", symlinks=True, dirs_exist_ok=True, ignore=_no_pipes
            )
    return outcome


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    import stat

    modes = {name: os.lstat(f"{folder}/{name}").st_mode for name in names}
    return [name for name, mode in modes.items() if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)]


def _outcome(argv: Argv, codes: tuple[int, ...] = (0, 2)) -> dict[str, Any]:
    """Return what a command line did: its code, what it said, how long it took, and the fault if it is one."""
    from emu.cli import main

    out, err, code, fault = io.StringIO(), io.StringIO(), None, ""
    _forget_peak()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([*argv, "--debug"])
        except BaseException as error:
            fault = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    took_s = min(time.perf_counter() - begin, time.process_time() - begin_cpu)
    peak_mb, said = _peak_mb(), err.getvalue()
    wrong = [
        line for line in said.splitlines() if line.startswith("emu: ") and not line.startswith("emu: note: ")
    ]
    if not fault and code not in codes:
        fault = f"code {code}: {said[-3000:]}"
    elif code == 2 and len(wrong) != 1:
        fault = f"{len(wrong)} lines of error: {said[-500:]}"
    elif acts := _ACTS.search(said) or _ACTS.search(out.getvalue()):
        fault = (
            f"prints {acts[0]!r}: {(said + out.getvalue())[max(acts.start() - 60, 0) : acts.start() + 60]!a}"
        )
    elif took_s > LIMIT_S:
        fault = f"took {took_s:.1f} s: {said[-300:]}"
    elif peak_mb > LIMIT_MB:
        fault = f"took {peak_mb} MB: {said[-300:]}"
    said = (wrong or [""])[0][:300]
    outcome = {"argv": argv, "code": code, "said": said, "took_s": round(took_s, 2), "peak_mb": peak_mb}
    return outcome | ({"fault": fault} if fault else {})


def _forget_peak() -> None:
    """Let the peak begin at what is in use now, without what allocators keep of making the input."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError):  # not of the GNU library
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) >> 10 if match else 0


def work(samples: Path) -> None:
    """Be a worker: read kinds and seeds, a line each, and answer each with a line of JSON."""
    limits.free_bytes = lambda: FREE_BYTES
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints on its own
    for line in sys.stdin:
        kind, seed = line.split()
        print(json.dumps(try_input(kind, int(seed), samples)), file=answers, flush=True)


class Worker:
    """A process that tries inputs, one after the other, and is watched."""

    def __init__(self, samples: Path) -> None:
        self._samples = samples
        self._process: subprocess.Popen[str] | None = None
        self._done = 0
        self.now: tuple[str, int] | None = None
        self._since = 0.0

    def give(self, kind: str, seed: int) -> None:
        """Let it try an input."""
        if self._process is None or self._done >= INPUTS_PER_WORKER:
            self.end()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.hostile", "--worker", str(self._samples)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            self._done = 0
        assert self._process.stdin is not None
        print(kind, seed, file=self._process.stdin, flush=True)
        self.now, self._since = (kind, seed), time.perf_counter()
        self._done += 1

    def answer(self) -> dict[str, Any] | None:
        """Return what came of the input, None while it is tried."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self.now is not None
        took_s = time.perf_counter() - self._since
        about = {"kind": self.now[0], "seed": self.now[1], "code": None, "took_s": took_s}
        if select.select([self._process.stdout], [], [], 0.01)[0]:
            line = self._process.stdout.readline()
            outcome = (
                json.loads(line)
                if line
                else {**about, "fault": f"killed its process: {self._process.wait()}"}
            )
        elif time.perf_counter() - self._since > PATIENCE_S:
            outcome = {**about, "fault": f"does not end in {PATIENCE_S:.0f} s"}
        else:
            return None
        if outcome["code"] is None or outcome.get("peak_mb", 0) > LIMIT_MB / 2:
            self.end()  # what its allocator keeps would count as the next input's
        self.now = None
        return outcome

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def run(first_seed: int, count: int, only: list[str], workers: int) -> list[dict[str, Any]]:
    """Try inputs; return what came of each."""
    todo, answers = inputs(first_seed, count, only), []
    with tempfile.TemporaryDirectory(prefix="hostile-samples-") as folder:
        from benchmarks.hostile_samples import make_samples

        make_samples(Path(folder))
        _check_samples(Path(folder))
        crew = [Worker(Path(folder)) for _ in range(workers)]
        try:
            while True:
                for worker in crew:
                    if worker.now is None and (following := next(todo, None)) is not None:
                        worker.give(*following)
                busy = [worker for worker in crew if worker.now is not None]
                if not busy:
                    return answers
                for worker in busy:
                    if (outcome := worker.answer()) is not None:
                        answers.append(outcome)
                        _tell(outcome, len(answers), count)
        finally:
            for worker in crew:
                worker.end()


def _check_samples(samples: Path) -> None:
    """Refuse samples that are refused: what is made of them would test one error alone."""
    for kind in KINDS:
        for sample in sorted((samples / (KINDS[kind].samples or kind)).iterdir()):
            with tempfile.TemporaryDirectory() as out:
                for argv in KINDS[kind].commands(sample, Path(out), random.Random(1)):
                    outcome = _outcome(argv) if kind != "checkpoint" else {}  # that would use it up
                    if outcome.get("code"):
                        raise RuntimeError(f"{kind} {sample.name}: {outcome}")


def _tell(outcome: dict[str, Any], done: int, count: int) -> None:
    if "fault" in outcome:
        about = "; ".join(outcome.get("done", []))[:200]
        print(
            f"FAULT --seed {outcome['seed']} --inputs 1 --only {outcome['kind']} ({about}): {outcome['fault'][-2500:]}",
            flush=True,
        )
    elif done % 500 == 0:
        print(f"{done:,} of {count:,}", flush=True)


def main() -> int:
    """Try inputs and print what came of them; exit code 1 if one is at fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first input; each has the next one")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=[*KINDS], metavar="KIND", help=", ".join(KINDS)
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--keep", type=Path, help="try one input in this process, and keep its files in this folder"
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return 0
    if options.keep is not None:
        from benchmarks.hostile_samples import make_samples

        with tempfile.TemporaryDirectory(prefix="hostile-samples-") as folder:
            make_samples(Path(folder))
            ((kind, seed),) = inputs(options.seed, 1, options.only)
            options.keep.mkdir(parents=True, exist_ok=True)
            print(json.dumps(try_input(kind, seed, Path(folder), options.keep.resolve()), indent=2))
        return 0
    begin = time.perf_counter()
    answers = run(options.seed, options.inputs, options.only, options.workers)
    print(
        f"\nseeds {options.seed} to {options.seed + options.inputs - 1}, {time.perf_counter() - begin:.0f} s"
    )
    print(f"{'kind':<18}{'inputs':>8}{'taken':>8}{'refused':>8}{'faults':>8}{'longest s':>11}{'most MB':>9}")
    for kind in (*KINDS, ""):
        own = [outcome for outcome in answers if kind in (outcome["kind"], "")]
        codes = Counter("fault" if "fault" in outcome else outcome["code"] for outcome in own)
        if own:
            longest = max(outcome["took_s"] for outcome in own)
            most = max(outcome.get("peak_mb", 0) for outcome in own)
            counts = f"{len(own):>8}{codes[0]:>8}{codes[2]:>8}{codes['fault']:>8}"
            print(f"{kind or 'all':<18}{counts}{longest:>11.2f}{most:>9}")
    return int(any("fault" in outcome for outcome in answers))


if __name__ == "__main__":
    sys.exit(main())
