"""Run directories: what is in one, who may write it, and when it is finished."""
