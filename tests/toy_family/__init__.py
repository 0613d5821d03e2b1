"""A family of schedulers in one folder: tickets, which one desk serves one at a time."""
