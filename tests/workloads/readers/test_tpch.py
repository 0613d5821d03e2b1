import os
import pickle
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import tpch_profiles
from workloads.arrow import column
from workloads.dags import stage_levels
from workloads.errors import InputError
from workloads.readers.tpch import DURATIONS, EDGES, TABLES, read_tpch, recognises

SHARED = Path(os.environ.get("EMU_SHARED") or Path(__file__).parents[3].parent / "shared")
FIRST, REST, FRESH = "first_wave", "rest_wave", "fresh_durations"

# Two stages, the second after the first, which was run with 2 executors at most.
PROFILE = {
    0: {
        FIRST: {2: [1000, 2000], 50: [5000, 6000, 7000]},
        REST: {2: [10], 50: []},
        FRESH: {2: [2000], 50: [5000, 6000, 7000]},
    },
    1: {FIRST: {2: [300, 400]}, REST: {2: [30, 40, 50]}, FRESH: {2: []}},
}


def save(path: Path, *queries: tuple[str, int], edges=((0, 1),), profile=PROFILE, spark=(0, 1)) -> Path:
    """Write the tables of queries, by default one, that have the same stages; return the folder."""
    queries = queries or (("2g", 1),)
    rows = [
        (size, number, stage, spark[stage], executors, wave, float(took))
        for size, number in queries
        for stage, waves in profile.items()
        for wave, runs in waves.items()
        for executors, durations in runs.items()
        for took in durations
    ]
    between = [(size, number, *edge) for size, number in queries for edge in edges]
    path.mkdir(parents=True, exist_ok=True)
    for name, schema, own in zip(TABLES, (DURATIONS, EDGES), (rows, between), strict=True):
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in own], schema)
        pq.write_table(table, path / name)
    return path


def save_pickles(folder: Path, number: int = 1, matrix=((0, 1), (0, 0)), profile=PROFILE, spark=None) -> Path:
    """Write a query in Decima's layout and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"adj_mat_{number}.npy", np.array(matrix, float))
    for name, value in (("task_duration", profile), ("stage_id_to_node_idx_map", spark)):
        if value is not None:
            np.save(folder / f"{name}_{number}.npy", np.array(value, object), allow_pickle=True)
    return folder


def durations(dag) -> list[list[float]]:
    arrays, tasks = dag.arrays(), column(dag.tasks, "duration_s")
    first = arrays.stage_first_task
    return [tasks[first[s] : first[s + 1]].tolist() for s in range(dag.num_stages)]


@settings(max_examples=20)
@given(st.integers(0, 2**64 - 1))
def test_sampled_durations_follow_the_rules(tmp_path_factory, seed):
    folder = save(tmp_path_factory.mktemp("t"))
    first, second = durations(read_tpch(folder, executors=2, seed=seed))
    assert first[:2] == [2.0, 2.0]  # new to the job: fresh durations
    assert first[2:] == [0.01]  # the rest wave
    assert set(second[:2]) <= {0.3, 0.4}  # not new to the job
    assert set(second[2:]) <= {0.03, 0.04, 0.05}
    first, second = durations(read_tpch(folder, executors=50, seed=seed))
    assert set(first) <= {5.0, 6.0, 7.0}
    assert set(second) <= {0.3, 0.4}  # five tasks, all first tasks of 50 executors


def test_what_stands_in_for_durations_that_were_not_measured(tmp_path):
    """Without fresh durations a second is added; a first wave that is all fresh is that of fewer executors."""
    unmeasured = {FIRST: {2: [1000], 5: [2000]}, REST: {2: [10], 5: []}, FRESH: {2: [], 5: [2000]}}
    folder = save(tmp_path / "t", profile={0: unmeasured, 1: unmeasured})
    assert durations(read_tpch(folder, executors=2)) == [[2.0, 2.0], [1.0, 1.0]]
    assert durations(read_tpch(folder, executors=5)) == [[2.0], [1.0]]
    fresh_only = {FIRST: {2: [1000]}, REST: {2: []}, FRESH: {2: [1000]}}
    rest_only = {FIRST: {2: []}, REST: {2: [70, 70, 70]}, FRESH: {2: []}}
    folder = save(tmp_path / "u", profile={0: rest_only, 1: fresh_only})
    assert durations(read_tpch(folder, executors=2)) == [[0.07] * 3, [1.0]]


def test_each_query_comes_once_or_as_many_as_asked_are_drawn(tmp_path):
    save(tmp_path, *((size, q) for size in ("10g", "2g") for q in (10, 1, 2)), spark=(3, 7))
    dag = read_tpch(tmp_path, executors=2)
    names = dag.stages["name"].to_pylist()
    assert names == [f"{s}-q{q}-{i}" for s in ("2g", "10g") for q in (1, 2, 10) for i in (3, 7)]
    assert dag.num_jobs == 6
    chosen = read_tpch(tmp_path, executors=2, sizes="10g", queries=[2, 1])
    assert chosen.stages["name"].to_pylist() == ["10g-q2-3", "10g-q2-7", "10g-q1-3", "10g-q1-7"]
    assert read_tpch(tmp_path, executors=2, queries="2,1").num_jobs == 4
    many = read_tpch(tmp_path, executors=2, jobs=2000, mean_gap_s=10.0, seed=3)
    counts = {name: many.stages["name"].to_pylist().count(name) for name in set(names)}
    assert sum(counts.values()) == 4000
    assert min(counts.values()) > 250  # 333 in the mean, standard deviation 17
    submit_s = column(many.jobs, "submit_s")
    assert submit_s[-1] / 2000 == pytest.approx(10.0, rel=0.1)
    assert (
        many.fingerprint()
        == read_tpch(tmp_path, executors=2, jobs=2000, mean_gap_s=10.0, seed=3).fingerprint()
    )
    assert (
        many.fingerprint()
        != read_tpch(tmp_path, executors=2, jobs=2000, mean_gap_s=10.0, seed=4).fingerprint()
    )


def test_demands_are_made_up_only_when_asked_and_it_is_said(tmp_path):
    folder = save(tmp_path / "t")
    dag = read_tpch(folder, executors=2, jobs=50, demands=True)
    memory = column(dag.stages, "memory")
    assert column(dag.stages, "cpu_cores").tolist() == [1.0] * 100
    assert 0 < memory.min() < 0.1 < 0.9 < memory.max() <= 1
    assert dag.notes == ("demands of tasks are made up: 1 core a task, memory uniform in (0, 1] by stage",)
    # Demands are drawn last: they change nothing else.
    assert durations(dag) == durations(read_tpch(folder, executors=2, jobs=50))


def test_demands_by_place_are_those_of_the_query_whenever_it_arrives(tmp_path):
    folder = save(tmp_path, ("2g", 1), ("2g", 2))
    dag = read_tpch(folder, executors=2, jobs=50, demands=True, demand_model="by-place")
    assert dag.resources == ("cpu_cores", "memory", "disk_in", "disk_out", "network_in", "network_out")
    needs = {}
    for name, demand in zip(dag.stages["name"].to_pylist(), dag.arrays().demand.tolist(), strict=True):
        assert needs.setdefault(name, demand) == demand
    assert len({tuple(demand) for demand in needs.values()}) == len(needs) > 1
    alike = read_tpch(folder, executors=2, demands=True, demand_model="by-place", diversity=0.0)
    level = stage_levels(alike)
    assert alike.arrays().demand[level == 0][:, 2].tolist() == [0.06] * int((level == 0).sum())
    assert alike.arrays().demand[level > 0][:, 2].tolist() == [0.01] * int((level > 0).sum())
    assert "diversity 0" in alike.notes[0]
    with pytest.raises(InputError, match="field diversity: 3 is not a share in"):
        read_tpch(folder, demands=True, diversity=3)


@pytest.mark.slow("every published profile")
@pytest.mark.reference
def test_the_published_profiles(tmp_path, monkeypatch):
    given = SHARED / "traces" / "tpch"
    if not given.exists():
        pytest.skip(f"{given} is not there")
    path = tmp_path / "tpch"
    monkeypatch.setattr("sys.argv", ["", str(given), str(path)])
    assert tpch_profiles.main() == 0
    dag = read_tpch(path, durations="recorded")
    assert recognises(path)
    assert dag.num_jobs == 66
    assert dag.num_stages == 606
    names = dag.stages["name"].to_pylist()
    assert {name.split("-")[0] for name in names} == {"2g", "10g", "50g"}
    for size in ("2g", "10g", "50g"):
        assert {n.split("-")[1] for n in names if n.startswith(f"{size}-")} == {f"q{q}" for q in range(1, 23)}
    first = dag.arrays().first_stage
    assert stage_levels(dag)[first[0] : first[1]].tolist() == [0, 1, 2, 3]  # query 1 is a chain
    assert dag.tasks["duration_s"][0].as_py() == 4.324
    sampled = read_tpch(path)
    assert sampled.stages["num_tasks"].equals(dag.stages["num_tasks"])
    works = [float(column(d.tasks, "duration_s").sum()) for d in (dag, sampled)]
    assert works[1] == pytest.approx(works[0], rel=0.1)  # the same runs, drawn from
    for executors in (2, 5, 10, 20, 40, 60, 80, 100):
        assert read_tpch(path, sizes="2g", queries=[1, 9], executors=executors).num_jobs == 2


def stage(**changes):
    return {0: PROFILE[0], 1: PROFILE[1] | changes}


def test_a_number_of_executors_that_a_stage_skips_is_refused(tmp_path):
    """There, its run with the most executors would stand in for one with fewer."""
    few, many = ({w: {e: [1] for e in (2, k, 50)} for w in (FIRST, REST, FRESH)} for k in (12, 13))
    save(tmp_path, profile={0: few, 1: many})
    with pytest.raises(InputError, match=r"no run with 12 executors; there are 2, 50$"):
        read_tpch(tmp_path, executors=12)


def test_folders_are_recognised_by_their_names(tmp_path):
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "none")
    with pytest.raises(InputError, match=r"none.tpch_durations\.parquet: no such file"):
        read_tpch(tmp_path / "none")
    assert recognises(save(tmp_path))
    (tmp_path / TABLES[1]).unlink()
    with pytest.raises(InputError, match=r"tpch_edges\.parquet: no such file"):
        read_tpch(tmp_path)


def test_decimas_own_files_are_named_with_the_command_that_converts_them(tmp_path):
    save_pickles(tmp_path / "2g")
    for folder in (tmp_path, tmp_path / "2g"):
        assert recognises(folder)
        with pytest.raises(InputError, match=rf"python -m benchmarks\.tpch_profiles {folder} NEW_FOLDER"):
            read_tpch(folder)


def test_what_the_script_makes_of_decimas_files_is_what_they_hold(tmp_path):
    save_pickles(tmp_path / "d" / "2g", spark={3: 0, 7: 1})
    save_pickles(tmp_path / "d" / "10g", 2)
    made = tpch_profiles.tables_of(tmp_path / "d")
    save(tmp_path / "t", ("2g", 1), spark=(3, 7))
    want = [pq.read_table(tmp_path / "t" / name) for name in TABLES]
    first = [table.filter(pc.equal(table["size"], "2g")) for table in made]
    assert [table.num_rows for table in first] == [table.num_rows for table in want]
    rows = [sorted(map(str, table.to_pylist())) for table in (first[0], want[0])]
    assert rows[0] == rows[1]
    assert tpch_profiles.tables_of(tmp_path / "d" / "10g")[1].to_pylist() == [
        {"size": "10g", "query": 2, "parent": 0, "child": 1}
    ]


class Harmful:
    def __init__(self, call=os.mkdir, *arguments):
        self.reduced = call, arguments or ("harm",)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "harmful", [Harmful(), {0: Harmful()}, np.dtype("f8"), {0: [np.float64(1.0)]}, [1, 2]]
)
def test_nothing_that_a_pickle_names_is_run(tmp_path, monkeypatch, harmful):
    monkeypatch.chdir(tmp_path)
    save_pickles(tmp_path / "2g", profile=harmful)
    with pytest.raises(InputError, match=r"task_duration_1\.npy: is not a dictionary"):
        tpch_profiles.tables_of(tmp_path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "harmful",
    [
        Harmful(),
        Harmful(eval, "__import__('os').mkdir('harm')"),
        Harmful(getattr, "harm", "upper"),
        Harmful(__import__, "os"),
        Harmful(np.ndarray.tofile, np.zeros(1), "harm"),
    ],
    ids=lambda harmful: harmful.reduced[0].__name__,
)
def test_no_protocol_of_pickles_runs_what_they_name(tmp_path, monkeypatch, harmful, protocol):
    monkeypatch.chdir(tmp_path)
    folder = save_pickles(tmp_path / "2g")
    held = np.empty((), dtype=object)
    held[()] = {0: harmful}
    with (folder / "task_duration_1.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(held))
        pickle.dump(held, file, protocol=protocol)
    with pytest.raises(InputError, match=r"task_duration_1\.npy: is not a dictionary"):
        tpch_profiles.tables_of(tmp_path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("spark", [7, "x", {"a": 0}, {0: 0, 1: 5}, {0: 0}, {0: None, 1: 1}, []])
def test_a_broken_map_of_stages_is_named(tmp_path, spark):
    save_pickles(tmp_path / "2g")
    held = np.empty((), dtype=object)
    held[()] = spark
    np.save(tmp_path / "2g" / "stage_id_to_node_idx_map_1.npy", held, allow_pickle=True)
    with pytest.raises(
        InputError, match=r"stage_id_to_node_idx_map_1\.npy: is (not a dictionary|of the stages)"
    ):
        tpch_profiles.tables_of(tmp_path)


NOT_A_PART = [None, "x", -1, [], {}, [None], {2: None}, {2: ["x"]}, {2: [[1]]}, {"x": [1]}]
"""What neither a profile's stages nor their waves may be."""


def test_broken_files_of_decima_are_refused_in_one_line_that_names_the_file(tmp_path):
    rng = random.Random(0)
    whole = save_pickles(tmp_path / "whole")
    for i in range(90):
        name = ("task_duration_1.npy", "adj_mat_1.npy")[i % 3 == 1]
        folder = save_pickles(tmp_path / str(i), profile={0: PROFILE[0], 1: rng.choice(NOT_A_PART)})
        if i % 3 < 2:
            data = (whole / name).read_bytes()
            save_pickles(folder)
            (folder / name).write_bytes(data[: rng.randrange(len(data))])
        with pytest.raises(InputError) as caught:
            tpch_profiles.tables_of(folder)
        text = str(caught.value)
        assert text.startswith(f"{folder / name}: "), text
        assert text.isprintable(), text


def test_a_model_of_demands_goes_with_demands(tmp_path):
    with pytest.raises(InputError, match="demand_model: goes with demands=true"):
        read_tpch(tmp_path, demand_model="by-place")
