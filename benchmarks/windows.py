"""The clock `windows` beside the barrier it stands on: a compiled graph that carries equal-sized bytes.

How to run: `python -m benchmarks.windows [--workload PATH] [--nodes 15000] [--partitions 4] [--scheduler sparrow]`
For debugging: `--workload yahoo`, which takes a minute
Runs the workload exactly, in Ray actors; then, in the same run and before and after it, a graph of as many actors that
return bytes as requested, with the mean sizes of requests and answers. What counts is the ratio of the rates.
"""

import statistics
import time
from typing import Any

import ray
from ray.dag import InputNode, MultiOutputNode

from actors.hosting.outcome import Observe
from actors.hosting.ray_session import close, connect
from actors.hosting.ray_windows import WindowSession
from actors.hosting.virtual import emulate
from benchmarks.measuring import SHARED, parser_of, setting_of
from workloads.catalogue import load_workload

TARGET = 0.7  # of the barrier rate
TARGET_S = 300.0
BARRIERS = 5000


class Echo:
    """An actor that answers with as many bytes as it is to."""

    def __init__(self, size: int):
        self._answer = bytes(size)

    def window(self, request: bytes) -> bytes:
        """The same for every barrier."""
        return self._answer


def barrier_s(partitions: int, request: int, answered: int) -> float:
    """Median seconds of a barrier that carries so many bytes, of five rounds."""
    actors = [ray.remote(num_cpus=0)(Echo).remote(answered) for _ in range(partitions)]
    with InputNode() as entry:
        output = MultiOutputNode([actor.window.bind(entry) for actor in actors])
    graph = output.experimental_compile(_buffer_size_bytes=4 << 20)
    rounds, data = [], bytes(request)
    for _ in range(6):
        begin = time.perf_counter()
        for _ in range(BARRIERS // 5):
            ray.get(graph.execute(data))
        rounds.append((time.perf_counter() - begin) / (BARRIERS // 5))
    graph.teardown()
    for actor in actors:
        ray.kill(actor)
    return statistics.median(rounds[1:])


def main() -> None:
    """Run the benchmark."""
    parser = parser_of(__doc__)
    parser.add_argument("--workload", default=str(SHARED / "traces" / "YH1_sub.tr"))
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--scheduler", default="sparrow")
    options = parser.parse_args()
    workload = load_workload(options.workload)
    setting = setting_of(options.scheduler, workload, options.nodes)
    connect()
    whole = emulate(setting, Observe(), in_process=True)
    session = WindowSession(setting, Observe(), options.partitions, None, "graph")
    sizes = [0, 0, 0]
    try:
        session.start()
        session.compile_graph()
        print(session.plan())
        through = session.windows.barrier

        def barrier(request: bytes) -> Any:
            frames = through(request)
            sizes[0] += 1
            sizes[1] += len(request)
            sizes[2] += sum(map(len, frames))
            return frames

        session.windows.barrier = barrier
        assert session.run(3600.0).done, "no end within an hour"
        outcome = session.outcome()
        windows, wall_s = outcome.windows, outcome.wall_s
    finally:
        session.close()
    same = (outcome.finish_ns == whole.finish_ns).all()
    request, answered = sizes[1] // sizes[0], sizes[2] // sizes[0] // options.partitions
    bare = barrier_s(options.partitions, request, answered)
    each = wall_s / windows
    print(f"{workload.name}, {options.nodes:,} nodes, {options.scheduler}, {options.partitions} partitions")
    print(f"  {windows:,} windows in {wall_s:.1f} s (target {TARGET_S:.0f}), {1e3 * each:.3f} ms each")
    print(
        f"  requests of {request} bytes, answers of {answered} each; same finish times as one partition: {same}"
    )
    print(f"  a graph with equal bytes: {1e3 * bare:.3f} ms a barrier")
    print(f"  rate of windows over rate of barriers: {bare / each:.2f} (target {TARGET})")
    close()


if __name__ == "__main__":
    main()
