"""Type hints of compiled functions. numba ignores them; mypy checks them."""

from typing import TypeAlias

import numpy as np

# A whole number. Compiled code has `int64` alone; in plain Python constants are NumPy's, and sums may be Python's.
Int: TypeAlias = int | np.int64
# A truth value: of NumPy's constants it is NumPy's.
Bool: TypeAlias = bool | np.bool
