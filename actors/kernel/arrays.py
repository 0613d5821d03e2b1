"""What compiled code does to whole arrays."""

from actors.kernel.compiled import compiled


@compiled
def fill(values, value):
    """Set every element."""
    for i in range(values.size):
        values[i] = value


@compiled
def largest(values):
    """The place of the largest element, the first of several."""
    place = 0
    for i in range(1, values.size):
        if values[i] > values[place]:
            place = i
    return place


@compiled
def total(values):
    """The sum of all elements."""
    found = values[0] - values[0]
    for i in range(values.size):
        found += values[i]
    return found
