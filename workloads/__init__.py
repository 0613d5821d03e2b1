"""Workloads of Emu: jobs with arrival times and task durations, as Arrow tables.

===========================  ==========================================================
`workloads.jobs`             the schema, `JobWorkload`, `make_workload`
`workloads.catalogue`        `load_workload` by name or path, `save_workload`, `generators`
`workloads.readers`          ``.tr`` traces and Parquet folders
`workloads.generators`       `yahoo` and `poisson`
`workloads.info`             what a workload is like
`workloads.known`            cut-offs and partitions of the published traces
===========================  ==========================================================

As the lowest package it also holds what all others share: `workloads.errors` (`InputError`),
`workloads.units` (quantities as users write them), `workloads.hints` (nearest names), `workloads.apportion`
(largest remainder) and `workloads.arrow` (NumPy to Arrow and back).
"""
