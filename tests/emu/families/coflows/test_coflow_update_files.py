"""Files of updates of coflows: what is read, what is refused, and what a run says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.configuration.plan import Plan, configure, prepare
from tests.workloads.family_examples import coflows_of
from workloads.coflow_updates import DEREGISTER, MOVE, NO_SIDE, RECEIVER, RESTART, SENDER, load_updates
from workloads.coflows import CoflowWorkload
from workloads.errors import InputError

HEADER = "time_s,coflow_id,update,side,port,to\n"
MB = 1e6


def two_coflows() -> CoflowWorkload:
    """Coflows over four ports, one at 0 s and one at 10 s."""
    return coflows_of(
        [(0.0, None, {(0, 1): 3 * MB, (2, 1): MB}), (10.0, None, {(0, 3): MB})],
        ports=4,
    )


def file_of(folder: Path, *lines: str) -> Path:
    path = folder / "updates.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def test_rows_are_sorted_and_followed(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        "11,1,deregister,,,",
        "",
        " 2 ,0,move,receiver,1,3",
        "1.5,0,restart,sender,2,",
        "2,0,move,sender,2,0",
    )
    updates = load_updates(path, two_coflows())
    assert updates.time_ns.tolist() == [1_500_000_000, 2_000_000_000, 2_000_000_000, 11_000_000_000]
    assert updates.kind.tolist() == [RESTART, MOVE, MOVE, DEREGISTER]
    assert updates.side.tolist() == [SENDER, RECEIVER, SENDER, NO_SIDE]
    flows = [
        updates.pair[first:end].tolist()
        for first, end in zip(updates.first_pair, updates.first_pair[1:], strict=False)
    ]
    assert flows == [[[2, 1]], [[0, 1], [2, 1]], [[2, 3]], [[0, 3]]]
    assert updates.onto.tolist() == [[2, 1], [0, 3], [2, 3], [0, 3], [0, 3]]
    assert updates.notes == (f"times of {path} were not in order: 3 updates moved; sorted by time",)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1,0,restart,receiver,2,", "field port: coflow 0 has no receiver at port 2 then; it has 1"),
        ("1,7,deregister,,,", "field coflow_id: the workload has no coflow 7"),
        ("1,x,deregister,,,", "field coflow_id: 'x' is not a whole number from 0 on"),
        ("9,1,deregister,,,", "field time_s: 9 s is before coflow 1 arrives; want 10 s or later"),
        ("-1,0,deregister,,,", "field time_s: '-1' is not a time in seconds"),
        ("nan,0,deregister,,,", "field time_s: 'nan' is not a time in seconds"),
        ("1,0,moves,sender,0,1", "field update: 'moves' is not one of restart, move, deregister"),
        ("1,0,move,senders,0,1", "field side: 'senders' is not one of sender, receiver"),
        ("1,0,move,sender,0,", "field to: '' is not a whole number from 0 on"),
        ("1,0,move,sender,0,4", "field to: there is no port 4; the workload has ports 0 to 3"),
        ("1,0,move,sender,0,0", "field to: the task is there already"),
        ("1,0,restart,sender,0,1", "field to: '1' is not for restart; leave it empty"),
        ("1,0,deregister,sender,,", "field side: 'sender' is not for deregister; leave it empty"),
        ("1,0,restart,sender,0", "has 5 values, want 6"),
        ("6,0,restart,sender,2,", "field port: coflow 0 has no sender at port 2 then; it has 0"),
        (
            "21,1,restart,sender,0,",
            "field coflow_id: coflow 1 has been deregistered by an update before this one",
        ),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, line: str, what: str) -> None:
    path = file_of(tmp_path, "5,0,move,sender,2,0", line, "20,1,deregister,,,")
    with pytest.raises(InputError) as error:
        load_updates(path, two_coflows())
    assert str(error.value).startswith(f"{path}: line 3: {what}")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "",
            "line 1: field time_s: want one such column; the header is time_s,coflow_id,update,side,port,to",
        ),
        (HEADER, "no updates; want rows of time_s,coflow_id,update,side,port,to"),
        (
            "time_s,coflow,update,side,port,to\n",
            "line 1: field coflow: no such column; did you mean 'coflow_id'?",
        ),
        ("\xff", "line 1: field \xff: no such column"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "updates.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_updates(path, two_coflows())
    assert str(error.value).startswith(f"{path}: {what}")
    with pytest.raises(InputError, match=r"update\.csv: no such file; did you mean 'updates\.csv'"):
        load_updates(tmp_path / "update.csv", two_coflows())


def plan_of(**given: Any) -> Plan:
    return prepare(configure({"workload": two_coflows(), "fabric_port_speed": "8 Mbps", **given}))


def test_the_key_makes_updates(tmp_path: Path) -> None:
    path = file_of(tmp_path, "11,1,deregister,,,", "1,0,restart,sender,0,")
    plan = plan_of(scheduler="philae,fifo", fabric_updates=path, parameters={"rates": "greedy"})
    updates = plan.setting(0).updates
    assert updates is not None
    assert updates.coflow.tolist() == [0, 1]
    assert [i["name"] for i in plan.inputs if i["what"] == "updates file"] == [str(path)]
    assert str(path) in plan.config_toml()
    assert plan.notes == updates.notes


@pytest.mark.parametrize(
    ("scheduler", "what"),
    [
        (
            "aalo,saath",
            "fabric_updates: saath does not take updates of coflows; those that do are fifo (rates=greedy),",
        ),
        ("fifo", "fabric_updates: fifo takes updates of coflows only with rates=greedy"),
    ],
)
def test_a_scheduler_without_updates_is_refused(tmp_path: Path, scheduler: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        plan_of(scheduler=scheduler, fabric_updates=file_of(tmp_path, "11,1,deregister,,,"))
    assert str(error.value).startswith(what)
    assert len(str(error.value).splitlines()) == 1
