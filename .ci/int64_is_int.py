"""A plugin of mypy: a call of `np.int64` makes an int, as hints of compiled code have it.

NumPy's own hints tell int64 and int apart. In compiled code they are one type, and what plain Python makes of them is
the same number.
"""

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Type


class Int64IsInt(Plugin):
    """Replace the type of one constructor."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return what gives the type of a call, for `np.int64` alone."""
        return _int if fullname in ("numpy.int64", "numpy.signedinteger") else None


def _int(context: FunctionContext) -> Type:
    return context.api.named_generic_type("builtins.int", [])


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, whatever the version of mypy."""
    return Int64IsInt
