"""Schedulers of coflows: a coflow is a set of flows across the switch, and is done when its last flow is."""
