"""Results of runs: tables and their columns, figures, and what runs are compared by."""
