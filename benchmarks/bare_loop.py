"""The yardstick: Sparrow as a bare event loop in plain Python, as one would write it over heapq.

Batch sampling, late binding, one slot a node; no parameters, no results but job times. Probes cost the network delay,
and a node takes a task or is refused one a round trip after it asks; merged into one event, as the authors of Eagle
do. About 130,000 to 200,000 tasks/s.
"""

import heapq
import random
from collections import deque


def bare_sparrow(
    submit_s: list[float], durations_s: list[list[float]], nodes: int, delay_s: float = 0.0005, seed: int = 1
) -> list[float]:
    """Job times, s, of jobs with these submit times and task durations."""
    rng = random.Random(seed)
    queues: list[deque[int]] = [deque() for _ in range(nodes)]
    busy = [False] * nodes
    next_task = [0] * len(submit_s)
    finish_s = [0.0] * len(submit_s)
    events: list[
        tuple[float, int, int, int]
    ] = []  # time, sequence, node (-1: an arrival), job (-1: a free slot)
    sequence = 0

    def serve(now: float, node: int) -> None:
        nonlocal sequence
        if not queues[node]:
            busy[node] = False
            return
        busy[node] = True
        job = queues[node].popleft()
        at = now + 2 * delay_s
        if next_task[job] < len(durations_s[job]):
            at += durations_s[job][next_task[job]]
            next_task[job] += 1
            finish_s[job] = max(finish_s[job], at)
        sequence += 1
        heapq.heappush(events, (at, sequence, node, -1))

    heapq.heappush(events, (submit_s[0], 0, -1, 0))
    while events:
        now, _, node, job = heapq.heappop(events)
        if node < 0:
            for chosen in rng.sample(range(nodes), min(2 * len(durations_s[job]), nodes)):
                sequence += 1
                heapq.heappush(events, (now + delay_s, sequence, chosen, job))
            if job + 1 < len(submit_s):
                sequence += 1
                heapq.heappush(events, (submit_s[job + 1], sequence, -1, job + 1))
        elif job < 0:
            serve(now, node)
        else:
            queues[node].append(job)
            if not busy[node]:
                serve(now, node)
    return [finish - submit for finish, submit in zip(finish_s, submit_s, strict=True)]
