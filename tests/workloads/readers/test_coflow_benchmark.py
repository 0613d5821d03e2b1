import gzip
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads import limits
from workloads.coflows import make_coflow_workload
from workloads.errors import InputError
from workloads.readers.coflow_benchmark import read_coflow_benchmark, recognises, write_coflow_benchmark
from workloads.readers.coflowlib import recognises as recognises_coflowlib
from workloads.readers.text import number_text

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")


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


@settings(max_examples=20)
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


def test_more_flows_than_fit_in_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "free_bytes", lambda: 500_000_000)
    path = tmp_path / "w.txt"
    racks = range(10_001)
    line = f"1 0 {len(racks)} {' '.join(map(str, racks))} {len(racks)} " + " ".join(f"{r}:1" for r in racks)
    path.write_text(f"20000 1\n{line}\n")
    with pytest.raises(InputError, match=r"line 2: field reducers: makes .* flows, more than "):
        read_coflow_benchmark(path)


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
