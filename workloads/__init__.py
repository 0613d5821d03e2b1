"""Workloads of Emu: jobs, DAGs and coflows with their arrival times, as Arrow tables.

===========================  =====================================================================
`workloads.jobs`             jobs: the schema, `JobWorkload`, `make_workload`
`workloads.dags`             DAGs: jobs whose stages wait for one another
`workloads.coflows`          coflows: flows between ports that belong together
`workloads.catalogue`        `load_workload` by name or path, `convert_workload`, `save_workload`
`workloads.formats`          what can be read and written; `workloads.readers` has a file a format
`workloads.generators`       `yahoo`, `cloudera_c`, `facebook`, `google`, `synthetic`, `poisson`
`workloads.constraints`      constraints of jobs: their text, their tables
`workloads.transform`        workloads made from workloads: load, slice, sample, copies, several as one
`workloads.info`             what a workload is like
`workloads.public`           public traces, downloaded or placed by hand
`workloads.published_cutoffs`            cut-offs and partitions of the published traces
===========================  =====================================================================

As the lowest package it also holds what all others share: `workloads.errors` (`InputError`), `workloads.units`
(quantities as users write them), `workloads.hints` (nearest names), `workloads.groups` (rows in groups, largest
remainder), `workloads.arrow` (NumPy to Arrow and back) and `workloads.doing` (what is being done now).
"""
