"""Families of schedulers: the code of each family."""
