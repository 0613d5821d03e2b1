"""Running plans: one emulation, comparisons of several, and resuming."""
