"""Inner libraries: linked into who calls them, and turned into machine code there alone."""

import llvmlite.binding as ll
from numba.core import compiler, utils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NativeLowering


class _NoEnvironments:
    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, env):
        pass


class InnerLibrary(JITCodeLibrary):
    @property
    def codegen(self):
        return _NoEnvironments(self._codegen)

    def finalize(self):
        self._raise_if_finalized()
        self._finalized = True

    def closure(self, seen):
        """This library and all that it calls, each once."""
        if self in seen:
            return
        seen[self] = None
        for library in self._linking_libraries:
            closure_of(library, seen)

    def _get_module_for_linking(self):
        self._ensure_finalized()
        if self._shared_module is None:
            for fn in self._final_module.functions:
                if not fn.is_declaration and fn.linkage == ll.Linkage.external:
                    fn.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


def closure_of(library, seen):
    if isinstance(library, InnerLibrary):
        library.closure(seen)
    else:
        seen[library] = None


class EntryLibrary(JITCodeLibrary):
    def finalize(self):
        seen = {}
        for library in self._linking_libraries:
            closure_of(library, seen)
        self._linking_libraries = list(seen)
        super().finalize()


def _with(kind, name):
    @register_pass(mutates_CFG=True, analysis_only=False)
    class Pass(FunctionPass):
        _name = name

        def __init__(self):
            FunctionPass.__init__(self)

        def run_pass(self, state):
            codegen = state.targetctx.codegen()
            state.library = kind(codegen, state.func_id.func_qualname)
            state.library.enable_object_caching()
            return True

    class Compiler(CompilerBase):
        def define_pipelines(self):
            pm = DefaultPassBuilder.define_nopython_pipeline(self.state)
            pm.add_pass_after(Pass, pm.passes[0][0])
            pm.finalize()
            return [pm]

    return Compiler


InnerCompiler = _with(InnerLibrary, "inner_library")
EntryCompiler = _with(EntryLibrary, "entry_library")
