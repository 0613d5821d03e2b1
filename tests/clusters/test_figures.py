"""Figures of clusters, and their text for a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from clusters import cluster_figures, describe_cluster
from clusters.cluster import build_cluster
from tests.clusters.cluster_files import EVERYTHING, load_text


def test_figures_say_how_attributes_are_distributed(tmp_path: Path) -> None:
    cluster = load_text(tmp_path, EVERYTHING)
    figures = json.loads(json.dumps(cluster_figures(cluster)))
    assert (figures["nodes"], figures["slots"], figures["racks"], figures["rack_nodes"]) == (5, 11, 1, [5, 5])
    assert figures["attributes"]["clock"] == {
        "unit": "Hz",
        "distinct": 2,
        "values": [
            {"value": 2.6e9, "text": "2.6 GHz", "nodes": 2, "share": 0.4},
            {"value": 3e9, "text": "3 GHz", "nodes": 3, "share": 0.6},
        ],
    }
    tags = figures["attributes"]["tags"]["values"]
    assert [(t["value"], t["nodes"]) for t in tags] == [("ssd", 5), ("public-ip", 2)]
    text = describe_cluster(cluster)
    assert max(map(len, text.splitlines())) <= 120
    rows = [line.split() for line in text.splitlines()]
    for row in (
        ["kernel", "3.10.2", "2", "40.00", "%"],
        ["5.15", "3", "60.00", "%"],
        ["memory", "4", "GiB", "3", "60.00", "%"],
        ["port", "1", "Gbps", "3", "60.00", "%"],
    ):
        assert row in rows
    assert "nodes a rack 5" in text


def test_capacities_are_those_of_all_nodes() -> None:
    cluster = build_cluster(
        "own",
        [1, 4, 4],
        cpu_cores=[2.5, 8, 8],
        memory_bytes=np.array([4, 16, 17]) * 2**30,
        **{
            "attr:gpus": ["", "8", "2"],
            "attr:os": ["a", "1", ""],
            "attr:none": [""] * 3,
            "attr:x": ["nan"] * 3,
        },
    )
    found = json.loads(json.dumps(cluster_figures(cluster)))["capacities"]
    assert found == {
        "cpu_cores": {"unit": "cores", "total": 18.5, "least": 2.5, "most": 8.0},
        "memory_gib": {"unit": "GiB", "total": 37.0, "least": 4.0, "most": 17.0},
        "attr:gpus": {"unit": "", "total": 10.0, "least": 0.0, "most": 8.0},
    }
    text = describe_cluster(cluster)
    assert "  all nodes together: 18.5 cores, 37 GiB of memory, 10 of attr:gpus\n" in text
    many = build_cluster("many", [1], **{f"attr:{n}": ["1"] for n in range(20)})
    assert "of attr:5, 14 other attributes in" in describe_cluster(many).replace("\n    ", " ")


def test_a_description_stays_narrow_and_short() -> None:
    count = 5000
    cluster = build_cluster(
        "wide", [1] * count, cpu_cores=np.arange(count), machine_type="m" * 300, isa="i" * 300
    )
    text = describe_cluster(cluster)
    assert max(map(len, text.splitlines())) <= 120
    assert len(text.splitlines()) < 50
    assert "and 4,976 other values" in text
    values = cluster_figures(cluster)["attributes"]["cores"]
    assert (values["distinct"], len(values["values"])) == (count, 24)
