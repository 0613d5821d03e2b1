"""Machines with several resources: node managers, and what the resource manager knows of them."""
