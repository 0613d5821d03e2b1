"""Where partitions run, and how time advances: the only place besides emu/sweep that imports ray."""
