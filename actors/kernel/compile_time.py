"""Methods of numba's compiler in forms that take less time, with the same results: the compiled code has equal bytes.

A loop is some hundred functions, for each of which numba works out the same things again. Without these forms, to
compile takes a fifth more CPU time (`python -m benchmarks.compiling`; docs/results.md, Compilation). They hold for
all that this process compiles. `actors/kernel/linking.py` imports this module before anything is compiled.

numba does not document these methods: pyproject.toml bounds its version by those that the tests have run with.
"""

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import analysis, ir, postproc, transforms, types
from numba.core.targetconfig import TargetConfig

_ir: Any = ir
_list_variables = _ir.Inst._rec_list_vars
_process: Any = postproc.PostProcessor.run
_type_call = types.Function.get_call_type
_WITHOUT_VARIABLES = frozenset((str, int, bool, type(None), ir.Loc))

_of_operators: dict[Any, Any] = {}


def type_call(function: Any, context: Any, arguments: tuple[Any, ...], keywords: Any) -> Any:
    """Return the signature of a call, and look it up if an operator was called with arguments of these types before.

    numba tries some forty forms of an operator for each place where it stands.
    """
    if keywords or getattr(function.typing_key, "__module__", None) != "_operator":
        return _type_call(function, context, arguments, keywords)
    key = (function, context, arguments)
    signature = _of_operators.get(key)
    if signature is None:
        signature = _of_operators[key] = _type_call(function, context, arguments, keywords)
    return signature


def list_variables(instruction: Any, value: Any) -> list[Any]:
    """Return the variables within a part of an instruction; most parts are one, or have none."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind in _WITHOUT_VARIABLES:
        return []
    variables: list[Any] = _list_variables(instruction, value)
    return variables


def values_of_options(options: Any) -> dict[str, Any]:
    """Return the values of compiler options, in the order of their declaration; numba asks each by a property."""
    kind: Any = type(options)
    return {**_defaults(kind), **options._values}


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def process(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Simplify the flow of control of a function, as seven passes do; numba also finds all live variables each time."""
    function = processor.func_ir
    if function.is_generator:
        _process(processor, emit_dels, extend_lifetimes)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        processor._insert_var_dels(extend_lifetimes=extend_lifetimes)


def variables_at_entry(function: Any, block: Any) -> Any:
    """Return the live variables at the entry of a block: `process` leaves them out, and object mode asks for them."""
    known = function.block_entry_vars
    if block not in known:
        lifetime = postproc.VariableLifetime(function.blocks)
        of_blocks = analysis.compute_live_variables(
            lifetime.cfg, function.blocks, lifetime.usedefs.defmap, lifetime.deadmaps.combined
        )
        known.update((each, of_blocks[offset]) for offset, each in function.blocks.items())
    return known[block]


REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (types.Function, "get_call_type", type_call),
    (ir.Inst, "_rec_list_vars", list_variables),
    (TargetConfig, "values", values_of_options),
    (postproc.PostProcessor, "run", process),
    (ir.FunctionIR, "get_block_entry_vars", variables_at_entry),
)
"""Owner, name, and the form that stands there in place of numba's."""
for _owner, _name, _form in REPLACED:
    setattr(_owner, _name, _form)

# numba measures how long LLVM works: it makes two events at each of the tens of thousands of calls, and tells
# every function that is being compiled, and so waits for others, of both.
_lock: Any = llvm.ffi.lib._lock
_lock._cblist[:] = [each for each in _lock._cblist if each[0].__module__ != "numba.core.base"]
