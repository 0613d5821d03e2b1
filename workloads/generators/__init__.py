"""Statistical workload generators.

====================================  =============================================================
`yahoo`, `cloudera_c`, `facebook`,    jobs of the published traces, each in its module (`cloudera_c` in
`google`                              `cloudera`); `clustered` has the recipe
`synthetic`                           jobs of named distributions
`poisson`                             the same, as queueing theory has them
`closeness`                           what was drawn, beside the published figures
====================================  =============================================================
"""
