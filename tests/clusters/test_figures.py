"""Figures of clusters, and their text for a terminal."""

from __future__ import annotations

import numpy as np

from clusters import cluster_figures, describe_cluster
from clusters.cluster import build_cluster


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
