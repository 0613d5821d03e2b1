"""Schedulers of jobs: a job is a bag of tasks, and each task takes one slot of one node."""
