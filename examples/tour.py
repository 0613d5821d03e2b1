"""A tour of the Python interface, in cells for a notebook or an editor that knows ``# %%``.

Covers: one run and its frames, a comparison over several seeds, a scheduler written by the user.

Scenario: a small Yahoo-like workload on 200 nodes; who serves short jobs best beside long ones?

How to run: ``python examples/tour.py``; what it prints is in ``tour.out``.
"""

# %% One run. Without in_process=True it is hosted by Ray.
import pandas as pd
from least_loaded import LeastLoaded

import emu

pd.set_option("display.width", 110, "display.float_format", "{:.2f}".format)
same = {"workload": "yahoo", "nodes": 200, "workload_options": {"jobs": 400, "nodes": 200, "load": 0.5}}
result = emu.run("eagle", **same, in_process=True)
print(result.summary["scheduler"], "ran", result.summary["engine"]["tasks"], "tasks")

# %% Jobs as a frame: one row a job, times in seconds.
jobs = result.jobs.to_pandas()
print(jobs.groupby("job_class")[["jct_s", "wait_s", "slowdown"]].quantile([0.5, 0.9]))

# %% The timeline: how busy the nodes were, and how many tasks waited.
timeline = result.timeline.to_pandas()
print("mean utilisation", round(timeline.utilisation.mean(), 3), "most queued", timeline.queued_short.max())

# %% Several schedulers, among them one written by the user, on the same workload and seeds.
comparison = emu.compare(["sparrow", "eagle", LeastLoaded], **same, seeds=3, in_process=True)
print(comparison.to_text())

# %% The same as a frame, to plot or to go on with.
print(comparison.to_pandas().query("job_class == 'short'")[["scheduler", "p50_s", "p90_ratio", "better"]])
