"""The names of what is counted over a run, each with its place in the array of counts."""

_OF_TASKS = (
    "arrived_short",
    "arrived_long",
    "started_short",
    "started_long",
    "finished_short",
    "finished_long",
)
N_ARRIVED, N_STARTED, N_FINISHED = 0, 2, 4
"""Tasks by report class, short and long: they come first in every family."""
_OF_NETWORK = {
    "flows": "flows that carry input of tasks between machines",
    "local_reads": "tasks whose part of the job's input lay on their machine",
    "remote_reads": "tasks that read their part from another machine",
}
N_FLOWS, N_LOCAL_READS, N_REMOTE_READS = 6, 7, 8
"""What a network between machines does: they come next in families whose tasks may have one."""


class Counters:
    """The counters of one family of schedulers, in the order in which they were added."""

    def __init__(self, network: bool = False) -> None:
        """`network`: tasks of the family may fetch their input over one."""
        self.about = dict(_OF_NETWORK) if network else {}
        self._names = [*_OF_TASKS, *self.about]

    def add(self, name: str, about: str) -> int:
        """Return the place of a new counter; `about` is its meaning, for people who read results."""
        assert name not in self._names, name
        self._names.append(name)
        self.about[name] = about
        return len(self._names) - 1

    @property
    def names(self) -> tuple[str, ...]:
        """All names, by place."""
        return tuple(self._names)

    @property
    def reported(self) -> tuple[str, ...]:
        """The names that results have: all but those of tasks, which the timeline shows."""
        return tuple(self._names[len(_OF_TASKS) :])

    def __len__(self) -> int:
        return len(self._names)
