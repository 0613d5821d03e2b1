"""Tasks that need resources: no node is ever over its capacity, under every scheduler, and everything is given back."""

from __future__ import annotations
