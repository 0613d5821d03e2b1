"""Run directories: their content, which process may write them, and when they are finished."""
