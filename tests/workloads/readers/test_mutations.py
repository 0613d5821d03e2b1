import random
from pathlib import Path

import pytest

from tests.workloads.mutations import mutants, parquet_bytes, to_bytes, valid_lines, valid_tables
from workloads.catalogue import load_workload
from workloads.errors import InputError

MUTANTS = list(mutants(seed=0))


def test_there_are_at_least_200_mutants_of_every_kind():
    assert len(MUTANTS) >= 200
    assert {m.target for m in MUTANTS} >= {"w.tr", "w.tr.gz", "."}
    assert len({(m.label, *sorted(m.files.items())) for m in MUTANTS}) >= 200


def test_every_mutant_is_refused_in_one_line_that_names_file_and_line(tmp_path: Path):
    for i, mutant in enumerate(MUTANTS):
        path = mutant.write(tmp_path / str(i))
        with pytest.raises(InputError) as caught:
            load_workload(path)
        text = str(caught.value)
        assert len(text.splitlines()) == 1, mutant.label
        assert text.isprintable(), mutant.label
        assert len(text) < 400 + len(str(tmp_path)), mutant.label
        culprit = path.parent / mutant.culprit if path.is_file() else path / mutant.culprit
        assert text.startswith(f"{culprit}: "), (mutant.label, text)
        if mutant.line is not None:
            assert text.startswith(f"{culprit}: line {mutant.line}: "), (mutant.label, text)


@pytest.mark.parametrize("seed", range(5))
def test_the_files_that_are_mutated_were_valid(tmp_path: Path, seed: int):
    lines = valid_lines(random.Random(seed))
    (tmp_path / "w.tr").write_bytes(to_bytes(lines))
    assert load_workload(tmp_path / "w.tr").num_jobs == len(lines)
    jobs, tasks = valid_tables(random.Random(seed))
    (tmp_path / "jobs.parquet").write_bytes(parquet_bytes(jobs))
    (tmp_path / "tasks.parquet").write_bytes(parquet_bytes(tasks))
    assert load_workload(tmp_path).num_jobs == len(jobs["job_id"])


def test_flipped_bits_anywhere_give_a_workload_or_an_input_error(tmp_path: Path):
    rng = random.Random(1)
    path = tmp_path / "w.tr"
    refused = 0
    for _ in range(300):
        data = bytearray(to_bytes(valid_lines(rng)))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            load_workload(path)
        except InputError:
            refused += 1
    assert refused > 100
