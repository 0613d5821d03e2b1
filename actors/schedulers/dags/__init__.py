"""Schedulers of DAG jobs on machines with several resources: a job is a graph of stages, a stage a set of tasks."""
