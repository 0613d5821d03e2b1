"""Defaults of workloads that keys of the configuration read. So this module imports nothing that takes time."""

from __future__ import annotations

DEFAULT_SEED = 1
PRICE = 1.5
"""Price of a soft constraint where none is given: no source has one."""
