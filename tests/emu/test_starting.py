"""`emu new scheduler`: what each kind writes runs as it is, passes its own test, and is what its name says."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import pytest

import emu
from actors.schedulers.registry import built_in_schedulers, find_scheduler
from emu.cli import main
from emu.starting.new_scheduler import KINDS, object_of, write_copy, write_scheduler
from workloads.errors import InputError

SMALL: dict[str, Any] = {
    "workload": "yahoo",
    "nodes": 60,
    "workload_options": {"jobs": 30},
    "in_process": True,
}


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_passes_its_own_test(kind: str, tmp_path: Path) -> None:
    module, test = write_scheduler("my-policy", kind, tmp_path)
    assert (module.name, test.name) == ("my_policy.py", "test_my_policy.py")
    tests = imported(test)
    tests.test_an_example_by_hand()
    if kind in (
        "compiled",
        "coflows",
    ):  # for the others it takes as long, and finds what it finds of examples/
        tests.test_the_invariants_of_every_scheduler_hold()
    assert "random" not in module.read_text().partition("import")[0].replace("to a random", "")


def test_the_compiled_kind_is_the_built_in_policy_under_its_name(tmp_path: Path) -> None:
    module, _ = write_scheduler("coin", "compiled", tmp_path)
    own = emu.run(f"{module}:COIN", **SMALL)
    assert own.summary["policy"] == "coin"
    assert own.jobs.equals(emu.run("random", **SMALL).jobs)


def test_a_compiled_scheduler_of_a_file_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scheduler("coin", "compiled", tmp_path)
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(find_scheduler("coin.py:COIN"))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).title == "every task to a random node"


def test_the_probing_kind_is_sparrow(tmp_path: Path) -> None:
    module, _ = write_scheduler("mine", "probing", tmp_path)
    assert emu.run(f"{module}:Mine", **SMALL).jobs.equals(emu.run("sparrow", **SMALL).jobs)


def test_a_parameter_of_what_is_written_moves_the_result(tmp_path: Path) -> None:
    module, _ = write_scheduler("mine", "central", tmp_path)
    one, many = (emu.run(f"{module}:Mine", **SMALL, parameters={"most": most}) for most in (1, 8))
    assert not one.jobs.equals(many.jobs)


def test_names() -> None:
    assert object_of("least-work", "central") == "LeastWork"
    assert object_of("least-work", "compiled") == "LEAST_WORK"


def test_the_command_prints_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "scheduler", "my-policy", "--kind", "dags", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"pytest {tmp_path / 'test_my_policy.py'}" in out
    assert f"--scheduler {tmp_path / 'my_policy.py'}:MyPolicy --workload query-dags" in out
    assert main(["new", "scheduler", "my-policy", "--out", str(tmp_path)]) == 2
    assert "my_policy.py: is there already" in capsys.readouterr().err


@pytest.mark.parametrize("source", [scheduler.name for scheduler in built_in_schedulers()])
def test_a_copy_of_each_built_in_scheduler_is_that_scheduler_under_another_name(
    source: str, tmp_path: Path
) -> None:
    module, test = write_copy(f"my-{source}", source, tmp_path)
    original = find_scheduler(source)
    copy = find_scheduler(f"{module}:{object_of(f'my-{source}', 'compiled')}")
    assert (copy.name, copy.family, copy.title) == (f"my-{source}", original.family, original.title)
    assert copy.parameters == original.parameters
    assert copy.advance.__module__ == f"own_{module.stem}" or copy.advance is original.advance
    assert pickle.loads(pickle.dumps(copy)).name == copy.name
    assert imported(test).SCHEDULER.endswith(object_of(copy.name, "compiled"))


@pytest.mark.parametrize(("source", "workload"), [("sparrow", "yahoo"), ("sebf", "synthetic-coflows")])
def test_what_a_copy_gives_is_what_the_original_gives(source: str, workload: str, tmp_path: Path) -> None:
    setting = (
        SMALL
        if workload == "yahoo"
        else {"workload": workload, "workload_options": {"coflows": 10, "ports": 6}, "in_process": True}
    )
    module, _ = write_copy("mine", source, tmp_path)
    both = emu.compare([source, f"{module}:MINE"], out=tmp_path / "out", **setting)
    one, other = (tmp_path / "out" / f"scheduler={name}" / "seed=1" for name in (source, "mine"))
    table = "jobs.parquet" if workload == "yahoo" else "coflows.parquet"
    assert (one / table).read_bytes() == (other / table).read_bytes()
    assert list(both.results) == [source, "mine"]


def test_a_scheduler_that_is_there_twice_says_what_to_do(tmp_path: Path) -> None:
    module, _ = write_copy("mine", "random", tmp_path)
    module.write_text(module.read_text().replace('name="mine"', 'name="random"'))
    with pytest.raises(
        InputError, match="'random' is given twice; give the one of your file another name, as in name='my"
    ):
        emu.compare(["random", f"{module}:MINE"], **SMALL)
    with pytest.raises(InputError, match="'random' is given twice; give it once, or a variant of it"):
        emu.compare(["random", "random"], **SMALL)


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        write_scheduler("mine", "central", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
