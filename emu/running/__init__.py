"""Running what is planned: one emulation, several side by side, and what was interrupted."""
