"""Functions shared by checks of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SLACK_S = 1e-6
"""Times in tables are rounded: equal times may differ by less than this."""


def hold(holds: bool, case: str, what: str) -> None:
    """Raise an AssertionError that names the case, unless something holds."""
    if not holds:
        raise AssertionError(f"{case}: {what}")


def head(table: pd.DataFrame, rows: pd.Index) -> Any:
    """Return the id of the job, or coflow, of the first of some rows."""
    return table.iloc[:, 0][rows[0]] if len(rows) else None
