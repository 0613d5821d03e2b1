"""Many emulations: grids of them, and the search for the fewest nodes that meet a target."""
