"""Statistical workload generators.

====================================  =============================================================
`yahoo`, `cloudera_c`, `facebook`,    jobs of the published traces, in `published`; `clustered` has the
`google`                              recipe
`synthetic`                           jobs of named distributions
`poisson`                             the same, as queueing theory has them
`closeness`                           what was drawn, beside the published figures
====================================  =============================================================
"""
