"""Worlds of coflows: agents at the ports of a switch, and their coordinator."""
