"""Failures of nodes and preemption under schedulers of gangs in partitions."""

from __future__ import annotations

GANG_SCHEDULERS = ("central-fcfs-gang", "easy", "conservative")
