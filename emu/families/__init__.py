"""Families of schedulers: what each has of its own."""
