"""Starting points for schedulers of one's own: `emu new scheduler` copies one, with a test."""
