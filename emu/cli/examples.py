"""The examples that ``emu COMMAND --help`` ends with."""

EXAMPLES = {
    "": """\
  emu                                                   the comparison above
  emu run --scheduler eagle --workload yahoo --nodes 15000
  emu compare --schedulers sparrow,hawk,eagle --workload trace.tr --nodes 15000 --seeds 5
  emu schedulers eagle                                  what eagle does, its parameters, its paper
""",
    "run": """\
  emu run --scheduler eagle --workload yahoo --nodes 15000
  emu run --scheduler sparrow --set probe_ratio=3 --workload trace.tr.gz --nodes 4000 --seeds 5
  emu run --scheduler mine.py:LeastLoaded --workload yahoo --nodes 15000 --in-process
  emu run --config experiment.toml --set network.delay='1 ms' --json
""",
    "compare": """\
  emu compare --schedulers sparrow,hawk,eagle --workload yahoo --nodes 15000
  emu compare --schedulers hawk,eagle --workload t.tr --nodes 15000 --set probe_ratio=3 --set eagle.slack=4
  emu compare --schedulers philae,aalo --workload FB2010-1Hr-150-0.txt
  emu compare --schedulers hawk,eagle --workload yahoo --nodes 15000 --columns mean,p99.9,wait.p99 --reasons
""",
    "sweep": """\
  emu sweep grid.toml --dry-run
  emu sweep grid.toml --parallel 8
  emu sweep grid.toml --set workload_options.jobs=1000 --in-process --out runs/small
""",
    "size": """\
  emu size --target 'short.p99 < 300s' --scheduler eagle --workload yahoo
  emu size --target 'p50 <= 60s' --target 'long.p90 < 2h' --scheduler hawk --workload t.tr --seeds 3 --tolerance 2%
  emu size --target 'priority:9.wait.p99 < 60s' --scheduler central-lwl --workload t --cluster google-2011 --without 5%
  emu size --target 'wait.p99 < 60s' --scheduler easy --workload t.swf --cluster c.toml --mix --price 'fast=3, plain=1'
""",
    "validate": "  emu validate experiment.toml\n",
    "workload": """\
  emu workload list
  emu workload info yahoo --nodes 10000 --nodes 15000
  emu workload synth yahoo small --set jobs=1000 --seed 7
  emu workload convert trace.tr.gz trace
  emu workload convert google-2011 google --from google-2011 --set unfinished=ran
  emu workload scale google google-80 --load 80% --nodes 15000
  emu workload fetch coflow-benchmark
""",
    "cluster": "  emu cluster list\n  emu cluster info homogeneous --nodes 15000\n",
    "schedulers": "  emu schedulers\n  emu schedulers eagle\n",
    "plot": """\
  emu plot runs/both --kind cdf --of short --width column --out short.pdf
  emu plot runs/hawk-yahoo-15000-1 runs/eagle-yahoo-15000-1 --kind bars --metric wait --statistics p50,p99
  emu plot runs/sweep-grid --kind sweep --along load --statistics p99 --of short
""",
    "new": """\
  emu new scheduler my-policy --kind probing
  emu new scheduler my-policy --out policies
""",
    "report": "  emu report runs/eagle-yahoo-15000-1\n  emu report runs/one runs/two --out both.html\n",
}
"""By command; those of none stand under the empty name."""
