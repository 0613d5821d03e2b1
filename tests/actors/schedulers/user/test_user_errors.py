"""What a user's scheduler raises, or asks for wrongly, is one line with the file and the line of the user's."""

import contextlib
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import emu
from actors.schedulers.user.own import raised

RUN: dict[str, Any] = {"workload": "yahoo", "nodes": 20, "workload_options": {"jobs": 5}, "in_process": True}
OF_COFLOWS = RUN | {
    "workload": "synthetic-coflows",
    "nodes": None,
    "workload_options": {"coflows": 5, "ports": 20},
}
HEAD = """
import sys
import numpy as np

class Stop(BaseException):
    pass

def helper(array):
    return np.asarray(array).reshape(7, 7)

class Mine:
"""
PLACE, ARRIVAL = "def place(self, job, nodes):", "def on_arrival(self, job, cluster):"
ON_PROBE = f"{ARRIVAL} cluster.probe(job, cluster.draw(job, 2))\n    def on_probe(self, job, node, cluster):"
MADE = "def place(self, job, nodes): pass\n    def __init__(self):"
CASES = {
    "central, ends the program": (PLACE, "sys.exit(0)", r"place\(\) raised SystemExit: 0, which would end"),
    "central, no exception of Python's": (PLACE, "raise Stop('so')", r"place\(\) raised Stop: so \(job 0\)"),
    "central, in a library": (PLACE, "return np.concatenate(3)", r"place\(\) raised \w+Error: "),
    "probing, a node that is not there": (ARRIVAL, "cluster.probe(job, [99])",
                                          r"scheduler Mine: probe\(\) got node 99; node ids are 0 to 19 \(job 0\)"),
    "probing, ends the program": (ARRIVAL, "sys.exit()", r"on_arrival\(\) raised SystemExit"),
    "probing, asks of a node that is not there": (ARRIVAL, "cluster.is_down(-1)", r"is_down\(\) got node -1; node ids"),
    "made": (MADE, "sys.exit(3)", r"__init__\(\) raised SystemExit: 3"),
}  # fmt: skip


def line_of(path: Path, code: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if code in line)


@pytest.mark.parametrize("case", CASES)
def test_what_it_raises_names_its_line(case: str, tmp_path: Path) -> None:
    method, code, says = CASES[case]
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}    {method}\n        {code}\n")
    with pytest.raises(emu.InputError, match=says) as raised:
        emu.run(f"{path}:Mine", **RUN)
    assert str(raised.value).startswith(f"{path}: line {line_of(path, code)}: scheduler Mine: ")


def test_the_innermost_line_of_the_users_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}    def place(self, job, nodes):\n        return helper([job.num_tasks])\n")
    with pytest.raises(emu.InputError, match="raised ValueError: cannot reshape") as raised:
        emu.run(f"{path}:Mine", **RUN)
    assert raised.value.line == line_of(path, "reshape(7, 7)")


def test_of_a_package_that_is_installed_its_own_line_is_named() -> None:
    place = f"{sysconfig.get_path('purelib')}/package/mine.py"
    code: dict[str, Any] = {}
    exec(compile("import json\n\ndef place():\n    return json.loads('x')\n", place, "exec"), code)
    with pytest.raises(ValueError, match="Expecting value") as error:
        contextlib.contextmanager(code["place"])()  # the standard library calls it, as it imports modules
    trace = error.value.__traceback__
    assert trace is not None
    found = raised("place() raised ", error.value.with_traceback(trace.tb_next))
    assert str(found).startswith(f"{place}: line 4: place() raised JSONDecodeError: Expecting value")


@pytest.mark.parametrize(
    ("method", "code", "says"),
    [
        (PLACE, "return [99] * job.num_tasks", r"place\(\) returned node 99 for job 0"),
        (PLACE, "return [[1], [1, 2]]", r"place\(\) returned object of shape \(\) for job 0; it must return"),
        ("def order(self, coflows, now_s):", "return [[1], [1, 2]]", r"order\(\) returned object of shape \(\)"),
        (ON_PROBE, "return np.zeros(2)", r"on_probe\(\) raised ValueError: The truth value of an array"),
        (ARRIVAL, "cluster.wake(0.1)", "it asked to be woken, and it has no method on_wake"),
    ],
)  # fmt: skip
def test_a_wrong_answer_names_the_method(method: str, code: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}    {method}\n        {code}\n")
    with pytest.raises(emu.InputError, match=says) as raised:
        emu.run(f"{path}:Mine", **(OF_COFLOWS if "coflows" in method else RUN))
    place = f"{path}: line {line_of(path, method.splitlines()[-1])}"
    assert str(raised.value).startswith(f"{place}: scheduler Mine: ")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sys.exit(0)", "SystemExit: 0, which would end the program"),
        ("raise Stop('so')", "Stop: so"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_imported_names_its_line(code: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}    def place(self, job, nodes): pass\n\n{code}\n")
    with pytest.raises(emu.InputError, match=says) as raised:
        emu.run(f"{path}:Mine", **RUN)
    assert str(raised.value).startswith(f"{path}: line {line_of(path, code)}: scheduler '{path}:Mine': ")


def test_ctrl_c_is_the_users(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}    def place(self, job, nodes):\n        raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        emu.run(f"{path}:Mine", **RUN)
