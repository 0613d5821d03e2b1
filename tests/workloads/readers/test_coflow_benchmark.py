import gzip
import os
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.mutations import Mutant
from tests.workloads.text_mutations import Lines, check_refused, count_refused_flips, text_mutants, to_text
from workloads import limits
from workloads.coflows import make_coflow_workload
from workloads.errors import InputError
from workloads.readers.coflow_benchmark import read_coflow_benchmark, recognises, write_coflow_benchmark
from workloads.readers.coflowlib import recognises as recognises_coflowlib
from workloads.readers.report import Report
from workloads.readers.text import number_text

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
SMALL = b"4 2\n7 0 2 3 1 2 0:4.0 1:1.0\n9 1500 1 2 1 2:0.5\n"


def test_a_flow_goes_from_each_mapper_to_each_reducer(tmp_path):
    path = tmp_path / "fb.txt"
    path.write_bytes(SMALL)
    workload = read_coflow_benchmark(path)
    assert workload.coflows.to_pydict() == {
        "coflow_id": [7, 9],
        "arrival_s": [0.0, 1.5],
        "width": [4, 1],
        "senders": [2, 1],
        "receivers": [2, 1],
        "size_bytes": [5.0 * 2**20, 0.5 * 2**20],
        "weight": [1.0, 1.0],
        "deadline_s": [None, None],
    }
    assert workload.flows.to_pydict() == {
        "coflow_id": [7, 7, 7, 7, 9],
        "ingress": [3, 1, 3, 1, 2],
        "egress": [0, 0, 1, 1, 2],
        "size_bytes": [2.0 * 2**20, 2.0 * 2**20, 2.0**19, 2.0**19, 2.0**19],
    }
    assert workload.num_ports == 4
    assert workload.ports["egress_bytes_per_s"].null_count == 4
    assert workload.name == "fb"
    assert workload.metadata["megabyte_bytes"] == str(2**20)
    assert workload.metadata["read"] == "2 coflows; 5 flows"
    assert read_coflow_benchmark(path, megabyte_bytes=10**6).flows["size_bytes"][0].as_py() == 2e6


@pytest.mark.reference
def test_the_published_trace(tmp_path):
    path = SHARED / "traces" / "FB2010-1Hr-150-0.txt"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    workload = read_coflow_benchmark(path)
    assert (workload.num_ports, workload.num_coflows, workload.num_flows) == (150, 526, 706_397)
    arrays = workload.arrays()
    itself = arrays.ingress == arrays.egress
    of = np.repeat(np.arange(526), np.diff(arrays.first_flow))
    assert (np.count_nonzero(itself), len(np.unique(of[itself]))) == (4_911, 172)
    assert np.count_nonzero(np.diff(arrays.first_flow) > 7) == 269
    assert arrays.size_bytes.sum() == 35_533_534 * 2**20
    assert not (arrays.size_bytes % 2**20).any()
    assert workload.notes == ()
    assert recognises(path)
    write_coflow_benchmark(workload, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == path.read_bytes()


@st.composite
def shuffles(draw):
    """Workloads that the format can hold."""
    ports = draw(st.integers(1, 5))
    racks = st.lists(st.integers(0, ports - 1), min_size=1, max_size=ports, unique=True)
    made = draw(st.lists(st.tuples(racks, racks), min_size=1, max_size=4))
    size = st.floats(1e-3, 1e15)
    sizes = [draw(st.lists(size, min_size=len(r), max_size=len(r))) for _, r in made]
    return make_coflow_workload(
        "random",
        draw(st.lists(st.floats(0, 1e9), min_size=len(made), max_size=len(made))),
        [len(m) * len(r) for m, r in made],
        np.concatenate([np.tile(m, len(r)) for m, r in made]),
        np.concatenate([np.repeat(r, len(m)) for m, r in made]),
        np.concatenate([np.repeat(s, len(m)) for s, (m, _) in zip(sizes, made, strict=True)]),
        ports,
        coflow_id=draw(
            st.lists(st.integers(0, 2**63 - 1), min_size=len(made), max_size=len(made), unique=True)
        ),
        metadata={"megabyte_bytes": draw(st.sampled_from(["1000000", str(2**20), "x"]))},
    )


@settings(max_examples=60)
@given(shuffles())
def test_a_round_trip_is_exact(tmp_path_factory, workload):
    folder = tmp_path_factory.mktemp("fb")
    unit = workload.metadata["megabyte_bytes"]
    for name in ("w.txt", "w.txt.gz"):
        write_coflow_benchmark(workload, folder / name)
        again = read_coflow_benchmark(folder / name, megabyte_bytes=int(unit) if unit.isdigit() else 1 << 20)
        assert (again.name, again.fingerprint()) == ("w", workload.fingerprint())
        assert recognises(folder / name)
        assert not recognises_coflowlib(folder / name)
    assert gzip.decompress((folder / "w.txt.gz").read_bytes()) == (folder / "w.txt").read_bytes()


@given(st.floats(1e-9, 1e18), st.integers(1, 10**6), st.integers(1, 200))
def test_numbers_are_written_so_that_they_read_back(value, unit, parts):
    scale = Fraction(unit, parts)
    assert float(Fraction(number_text(value, scale)) * scale) == value


def test_numbers_are_written_short():
    assert number_text(514.699, Fraction(1, 1000)) == "514699.0"
    assert number_text(float(Fraction(1048576, 3)), Fraction(1048576, 3)) == "1.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; want a line 'ports coflows'"),
        ("4\n", "line 1: field coflows: the line ends after 1 fields"),
        ("4 2 1\n", "line 1: field 3: the line has 3 fields; want 'ports coflows'"),
        ("0 1\n", "line 1: field ports: '0' is not a whole number from 1"),
        ("4 1\n", "line 2: the file ends after 0 of the 1 coflows"),
        ("4 2\n1 0 1 0 1 0:1\n\n", "line 3: the file ends after 1 of the 2 coflows"),
        ("4 1\n1 0 1 0 1 0:1\n2 0 1 0 1 0:1\n", "line 3: more coflows than the 1"),
        ("4 2\n1 0 1 0 1 0:1\n1 0 1 0 1 0:1\n", "line 3: field id: coflow 1 occurs already in line 2"),
        ("4 1\n1 -1 1 0 1 0:1\n", "line 2: field arrival_ms: '-1' is negative"),
        ("4 1\n1 1e13 1 0 1 0:1\n", "line 2: field arrival_ms: '1e13' is more than 4e+12"),
        ("4 1\n1 0 0 1 0:1\n", "line 2: field mappers: '0' is not a whole number from 1 to 4"),
        ("4 1\n1 0 2 1 4 1 0:1\n", "line 2: field mapper 2: '4' is not a whole number from 0 to 3"),
        ("4 1\n1 0 2 1 1 1 0:1\n", "line 2: field mappers: rack 1 occurs twice"),
        ("4 1\n1 0 1 1 2 0:1\n", "line 2: field reducer 2: the line ends after 6 fields"),
        ("4 1\n1 0 1 1 1 0:1 1:1\n", "line 2: field 7: the line has 7 fields; want"),
        ("4 1\n1 0 1 1 2 0:1 0:1\n", "line 2: field reducers: rack 0 occurs twice"),
        ("4 1\n1 0 1 1 1 0;1\n", "line 2: field reducer 1: want rack:MB, have '0;1'"),
        ("4 1\n1 0 1 1 1 0:\n", "line 2: field reducer 1: '' is not a number"),
        ("4 1\n1 0 1 1 1 0:1e300\n", "line 2: field reducer 1: '1e300' is more than"),
        ("4 1\n1 0 1 1 1 0:0.0\n", "line 2: field reducers: no reducer gets any bytes"),
    ],
)
def test_what_is_broken_is_named_by_file_line_and_field(tmp_path, text, message):
    path = tmp_path / "w.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_coflow_benchmark(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_reducer_that_gets_nothing_has_no_flows_and_is_reported(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("4 1\n1 0 1 1 2 0:0.0 3:2.0\n")
    report = Report()
    workload = read_coflow_benchmark(path, report=report)
    assert workload.flows["egress"].to_pylist() == [3]
    assert "dropped 1: reducers that get 0 MB" in report.lines()
    assert "dropped 1: reducers that get 0 MB" in workload.notes
    assert workload.metadata["dropped"] == "1 reducers that get 0 MB"


def test_more_flows_than_fit_in_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "free_bytes", lambda: 500_000_000)
    path = tmp_path / "w.txt"
    racks = range(10_001)
    line = f"1 0 {len(racks)} {' '.join(map(str, racks))} {len(racks)} " + " ".join(f"{r}:1" for r in racks)
    path.write_text(f"20000 1\n{line}\n")
    with pytest.raises(InputError, match=r"line 2: field reducers: makes .* flows, more than "):
        read_coflow_benchmark(path)


def valid(rng: random.Random) -> Lines:
    lines = []
    for coflow in range(rng.randint(2, 5)):
        mappers, reducers = rng.sample(range(8), rng.randint(1, 4)), rng.sample(range(8), rng.randint(1, 4))
        shuffled = [f"{r}:{rng.randint(1, 99)}.0" for r in reducers]
        line = [coflow, coflow * 100, len(mappers), *mappers, len(reducers), *shuffled]
        lines.append([str(field).encode() for field in line])
    return [[b"8", str(len(lines)).encode()], *lines]


def numbers(lines: Lines, row: int) -> list[int]:
    return list(range(len(lines[row])))  # "rack:MB" is replaced as a whole: no number, and no colon either


def test_100_mutants_are_refused_in_one_line_that_names_file_and_line(tmp_path):
    mutants = [*text_mutants("w.txt", valid, numbers=numbers)]
    rng = random.Random(1)
    for _ in range(20):  # a line less or more than the first says
        lines = valid(rng)
        row = rng.randrange(1, len(lines))
        at = len(lines)
        more, less = to_text([*lines, lines[row]]), to_text(lines[:row] + lines[row + 1 :])
        mutants.append(Mutant("a line twice", {"w.txt": more}, "w.txt", "w.txt", at + 1))
        mutants.append(Mutant("a line lost", {"w.txt": less}, "w.txt", "w.txt", at))
    assert check_refused(mutants, read_coflow_benchmark, tmp_path) >= 100
    path = tmp_path / "w.txt"
    for seed in range(5):
        path.write_bytes(to_text(valid(random.Random(seed))))
        assert read_coflow_benchmark(path).num_coflows == len(valid(random.Random(seed))) - 1


def test_flipped_bits_anywhere_give_coflows_or_an_input_error(tmp_path):
    data = to_text(valid(random.Random(0)))
    assert count_refused_flips(data, read_coflow_benchmark, tmp_path / "w.txt") > 50


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "w.txt"
    shuffle = {"ingress": [0, 1], "egress": [2, 2], "size_bytes": [1.0, 1.0], "num_ports": 3}
    for changes, field in (
        ({"weight": [2.0]}, "has no weight"),
        ({"deadline_s": [2.0]}, "has no deadline_s"),
        ({"ingress_bytes_per_s": [1.0] * 3}, "has no ingress_bytes_per_s"),
        ({"egress_bytes_per_s": [1.0, np.nan, np.nan]}, "has no egress_bytes_per_s"),
        ({"coflow_id": [-1]}, "coflow -1 is not a shuffle"),
        ({"size_bytes": [1.0, 2.0]}, "coflow 0 is not a shuffle"),
        ({"egress": [1, 2]}, "coflow 0 is not a shuffle"),
        ({"ingress": [1, 1]}, "coflow 0 is not a shuffle"),
    ):
        workload = make_coflow_workload("w", [0.0], [2], **(shuffle | changes))
        with pytest.raises(InputError, match=field):
            write_coflow_benchmark(workload, path)
        assert not path.exists()
