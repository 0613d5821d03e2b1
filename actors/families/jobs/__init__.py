"""Worlds of jobs: machines with slots and queues, and the schedulers of jobs."""
