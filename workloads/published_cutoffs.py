"""Published values of traces: the cut-off of short jobs, and the share of nodes that long jobs may use."""

from __future__ import annotations

# Name prefixes (lower case), cut-off (s), share of the nodes open to long jobs: Hawk (ATC 2015) and Eagle
# (SoCC 2016) as their simulator's settings have them.
GOOGLE_2011 = (1129.532, 0.83)
"""Of Google's trace of 2011 as Hawk and Eagle have it."""
_KNOWN = (
    (("yh", "yahoo"), 90.5811, 0.98),
    (("goog",), *GOOGLE_2011),
    (("fb", "facebook"), 76.5951, 0.98),
    (("cc", "cloudera"), 272.7830, 0.91),
)


def known_trace(stem: str) -> tuple[float, float] | None:
    """Return ``(short_cutoff_s, long_partition)`` of the published trace a file name starts with, or None.

    Examples
    --------
    >>> known_trace("YH1_sub")
    (90.5811, 0.98)
    """
    for prefixes, short_cutoff_s, long_partition in _KNOWN:
        if stem.lower().startswith(prefixes):
            return short_cutoff_s, long_partition
    return None
