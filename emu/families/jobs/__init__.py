"""Schedulers that place jobs on nodes."""
