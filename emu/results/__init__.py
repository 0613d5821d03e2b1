"""Results of runs: tables and their columns, figures, and comparisons."""
