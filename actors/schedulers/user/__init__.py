"""Schedulers that users write in Python: their objects, the loops that ask them, and their errors."""
