"""Programs that show what Emu claims: speed, fidelity, scale. Each says how to run it and what to expect."""
