"""A process that stands in for an agent of Ray: `python -S -E idle_agent.py --node-id=… --session-dir=… …`.

Ray starts two agents on each machine, for its dashboard and for runtime environments, which take a third of what a
small run on Ray takes. Nothing here uses them, but Ray's raylet waits for the files in which they state their ports,
and ends when one of them does. This one states ports at which nothing listens, and ends with the raylet. It imports
nothing but what starts at once.
"""

import os
import sys
import time

NOTHING_LISTENS = "9"  # the port of the protocol that discards what it gets
POLL_S = 0.5


def main() -> None:
    """Write the files, and wait until the raylet has ended."""
    raylet = os.getppid()
    given = dict(text.removeprefix("--").partition("=")[::2] for text in sys.argv[1:])
    if "runtime-env-agent-port" in given:
        names = ["runtime_env_agent_port"]
    else:
        names = ["metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port"]
    for name in names:
        path = os.path.join(given["session-dir"], f"{name}_{given['node-id']}")
        with open(f"{path}.new", "w") as file:
            file.write(NOTHING_LISTENS)
        os.rename(f"{path}.new", path)
    while os.getppid() == raylet:
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
