"""Counters of a run of coflows, by name; those of tasks, which come first, count flows, which are all of one class."""

from actors.kernel.counters import Counters

COUNTERS = Counters()
N_UPDATES = COUNTERS.add("updates", "messages of agents that the coordinator has received")
N_DECISIONS = COUNTERS.add("decisions", "schedules that the coordinator has made")
N_SCHEDULES = COUNTERS.add(
    "schedules", "agents to which the coordinator has sent anything, counted at each decision"
)
N_RATES = COUNTERS.add("rates", "rates of flows that the coordinator has sent to agents")
N_STALE = COUNTERS.add("stale_rates", "rates that arrived for flows that had ended meanwhile")
N_DEMOTIONS = COUNTERS.add("demotions", "coflows that went to another queue")
N_PILOTS = COUNTERS.add("pilots", "flows that were sent ahead of their coflow's others")
N_INTERVALS = COUNTERS.add("intervals", "scheduling intervals from the first arrival on")
N_MISSED = COUNTERS.add(
    "intervals_missed", "scheduling intervals in which the coordinator had more to do than it had time"
)
N_WITHOUT = COUNTERS.add("intervals_without_rates", "scheduling intervals in which it sent no schedule")
N_HEARD = COUNTERS.add(
    "agents_heard", "agents whose messages it received in an interval, summed over intervals"
)
N_COFLOW_UPDATES = COUNTERS.add(
    "coflow_updates", "changes of coflows under way of which the coordinator has received a message"
)
N_WITHOUT_EFFECT = COUNTERS.add("updates_without_effect", "of these, those of coflows that had ended")
N_DEREGISTERED = COUNTERS.add("deregistered", "coflows that left before they were done")
N_LOST = COUNTERS.add("bytes_lost", "bytes sent that had to be sent again")
N_REFILLS = COUNTERS.add(
    "refills", "times freed rates went to the next flows in the order, without a decision"
)
N_ADMISSIONS = COUNTERS.add("admissions", "times a coflow was admitted")
N_REJECTIONS = COUNTERS.add("rejections", "times a coflow was rejected that was not so before")
N_DROPPED = COUNTERS.add("dropped", "coflows that were rejected for good")
N_VERDICTS = COUNTERS.add("verdicts", "messages to agents about admissions and rejections")
