"""Hosts of partitions, and the clocks that drive them: the only package that imports ray."""
