"""Functions shared by checks of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SLACK_S = 1e-6
"""Times in tables are rounded: two equal ones may differ by less than this."""


def hold(holds: bool, case: str, what: str) -> None:
    """Raise AssertionError, which names the case, where something does not hold."""
    if not holds:
        raise AssertionError(f"{case}: {what}")


def head(table: pd.DataFrame, rows: pd.Index) -> Any:
    """Return whose the first of some rows of tasks, or of flows, is."""
    return table.iloc[:, 0][rows[0]] if len(rows) else None
