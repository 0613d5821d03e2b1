"""Schedulers that share the ports of a switch among coflows."""
