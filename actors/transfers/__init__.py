"""The transfers of input between machines: a network beside resource managers, or schedulers of jobs."""
