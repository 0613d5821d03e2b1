"""Linking of compiled functions: all that a loop calls is linked into it once, and optimised once.

numba links, optimises and turns into machine code every function with all that it calls, those that only compiled code
calls too: an inner function is processed again for each of its callers. Here such an inner function keeps its own LLVM
code, on the disk as well, with the names of the functions that it calls; a loop (an entry) links each function once.

This relies on parts of numba that are not documented: libraries of code, and the implementation of the disk cache.
"""

import hashlib
import importlib
from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm
from numba.core import compiler as _compiler_module
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass

from actors.compiling.fingerprint import fingerprint
from actors.compiling.kernel_cache import OnDisk

_result: Any = _compiler_module.CompileResult  # whose hints lack its arguments
Source = tuple[str, str, tuple[Any, ...]]  # of a function: module, qualified name, types of the arguments


class InnerLibrary(JITCodeLibrary):
    """The LLVM code of a function that only compiled code calls. It has no machine code of its own."""

    source: Source

    @property
    def codegen(self) -> Any:
        """Return a code generator that sets no environment, which only machine code would read."""
        return _WithoutEnvironments(self._codegen)

    def finalize(self) -> None:
        """End the library, without the steps that make machine code.

        Functions of numba's own that it calls become part of it, under names that no other library has: numba numbers
        them differently in each process, and the disk cache holds code of several. So do entries that it calls. Where a
        local function and one of another library have one name, the loader takes the first for both, and LLVM may have
        left arguments out of the local one.
        """
        self._raise_if_finalized()
        for called in dict.fromkeys(self._linking_libraries):
            if not isinstance(called, InnerLibrary):
                code = called._get_module_for_linking()
                names = {each.name for each in code.functions if not each.is_declaration}
                self._final_module.link_in(code, preserve=True)
                for function in self._final_module.functions:
                    if function.name in names:
                        function.linkage = "internal"
                        function.name = f"{function.name}.of.{self.name}"
        self._linking_libraries = [each for each in self._linking_libraries if isinstance(each, InnerLibrary)]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0

    def _get_module_for_linking(self) -> Any:
        self._ensure_finalized()
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = (
                        "linkonce_odr"  # it may be there twice, and goes when it is inlined everywhere
                    )
            self._shared_module = self._final_module
        return self._shared_module

    def save(self) -> tuple[Any, ...]:
        """Return what `load` needs: the code, and which functions it calls."""
        calls = tuple(library.source for library in dict.fromkeys(self._linking_libraries))
        return self.name, self._get_module_for_linking().as_bitcode(), calls, self.source

    @classmethod
    def load(
        cls, codegen: Any, name: str, code: bytes, calls: Iterable[Source], source: Source
    ) -> "InnerLibrary":
        """Return the library that `save` wrote; load, or compile, what it calls."""
        made: InnerLibrary = cls(codegen, name)
        made.enable_object_caching()
        made.source = source
        made._final_module = made._shared_module = llvm.parse_bitcode(code)
        made._linking_libraries += [_library_of(*called) for called in calls]
        made._finalized = True
        return made


class _WithoutEnvironments:
    def __init__(self, codegen: Any):
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: inner functions have no environment."""


def _library_of(module: str, name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the code of a compiled function for arguments of these types."""
    function: Any = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    function.compile(arguments)
    return function.overloads[arguments].library


class EntryLibrary(JITCodeLibrary):
    """The code of a function that Python calls, and of all that it calls."""

    source: Source

    def finalize(self) -> None:
        """Link each library once, even if several call it.

        Raises:
            RuntimeError: a function that is called has no code here; the call would go to address 0.
        """
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()
        for function in self._final_module.functions:
            if function.is_declaration and function.name.startswith("_ZN"):
                raise RuntimeError(f"{self.name}: {function.name} is called and was not linked")


def _callers_first(libraries: Iterable[Any]) -> list[Any]:
    """Return libraries, and all that these call, each once and after all that call it.

    LLVM leaves out of an inner function's library what nothing calls so far, and a library is linked once: the code of
    a function would be lacking if a caller came after it. A library may list one that it does not call, as in a branch
    that a constant argument rules out.
    """
    seen: set[Any] = set()
    callees_first: list[Any] = []

    def visit(library: Any) -> None:
        if library not in seen:
            seen.add(library)
            for called in library._linking_libraries if isinstance(library, InnerLibrary) else ():
                visit(called)
            callees_first.append(library)

    for library in libraries:
        visit(library)
    return callees_first[::-1]


def _name_by_fingerprint(function: Any) -> None:
    """Name the machine code of a function by what the function is, so that all processes name it alike.

    numba numbers functions in the order in which a process compiles them. The disk cache holds code of several
    processes, in which a caller must find its callees by their names, whichever process has written them.
    """
    if function.func.__closure__ is None:  # else values of cells, whatever they are, are part of it
        name = f"{function.modname}.{function.func_qualname}:{fingerprint(function.func)}"
        function.unique_id = int(hashlib.sha256(name.encode()).hexdigest()[:15], 16)
        function.unique_name = f"{function.func_qualname}${function.unique_id}"


def _compiler(kind: type[InnerLibrary] | type[EntryLibrary]) -> type[CompilerBase]:
    """Return numba's compiler, with libraries of another class."""

    @register_pass(mutates_CFG=False, analysis_only=False)
    class MakeLibrary(FunctionPass):
        _name = f"make_{kind.__name__}"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            _name_by_fingerprint(state.func_id)
            state.library = library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
            library.enable_object_caching()
            library.source = (state.func_id.modname, state.func_id.func_qualname, tuple(state.args))
            return True

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.add_pass_after(MakeLibrary, passes.passes[0][0])
            passes.finalize()
            return [passes]

    return Compiler


InnerCompiler = _compiler(InnerLibrary)
EntryCompiler = _compiler(EntryLibrary)


class InnerOnDisk(OnDisk):
    """The form of an inner function in the disk cache."""

    def reduce(self, result: Any) -> tuple[Any, ...]:
        """Return what can be pickled of a compiled function."""
        result.fndesc.typemap = result.fndesc.calltypes = None
        return (
            result.library.save(),
            result.fndesc,
            result.environment,
            result.signature,
            tuple(result.reload_init),
        )

    def rebuild(self, target_context: Any, kept: tuple[Any, ...]) -> Any:
        """Return the compiled function that `reduce` saved."""
        saved, description, environment, signature, reload_init = kept
        for function in reload_init:
            function()
        library = InnerLibrary.load(target_context.codegen(), *saved)
        return _result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, description, environment),
            fndesc=description,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=reload_init,
            referenced_envs=(),
        )
