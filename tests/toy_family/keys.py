"""The keys that runs of tickets have: those of all families are enough."""

from __future__ import annotations

from emu.configuration.key import Key

KEYS: tuple[Key, ...] = ()
