"""Inner libraries: linked into who calls them, and turned into machine code there alone."""

import importlib

import llvmlite.binding as ll
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass


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

    def _needs(self):
        """What it calls, each once, in a form that can be kept."""
        return tuple(
            library.source if isinstance(library, InnerLibrary) else (library.name, _bitcode_of(library))
            for library in dict.fromkeys(self._linking_libraries)
        )

    def save(self):
        return self.name, self._get_module_for_linking().as_bitcode(), self._needs(), self.source

    @classmethod
    def load(cls, codegen, saved):
        name, bitcode, needs, source = saved
        made = cls(codegen, name)
        made.enable_object_caching()
        made.source = source
        made._final_module = made._shared_module = ll.parse_bitcode(bitcode)
        for need in needs:
            made._linking_libraries.append(_function(*need) if len(need) == 3 else _foreign(codegen, *need))
        made._finalized = True
        return made


def _bitcode_of(library):
    return library._get_module_for_linking().as_bitcode()


def _function(module, qualname, arguments):
    """The library of a compiled function, which is loaded or compiled."""
    function = importlib.import_module(module)
    for name in qualname.split("."):
        function = getattr(function, name)
    function.compile(arguments)
    return function.overloads[arguments].library


def _foreign(codegen, name, bitcode):
    """A library of numba's own."""
    made = InnerLibrary(codegen, name)
    made._final_module = made._shared_module = ll.parse_bitcode(bitcode)
    made._finalized = True
    made.source = None
    return made


class InnerImpl(CompileResultCacheImpl):
    """Inner functions on the disk: their own code, and the names of what they call."""

    def reduce(self, cres):
        cres.fndesc.typemap = cres.fndesc.calltypes = None
        return cres.library.save(), cres.fndesc, cres.environment, cres.signature, tuple(cres.reload_init)

    def rebuild(self, target_context, payload):
        saved, fndesc, environment, signature, reload_init = payload
        for function in reload_init:
            function()
        library = InnerLibrary.load(target_context.codegen(), saved)
        return CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, fndesc, environment),
            fndesc=fndesc,
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

    def _optimize_final_module(self):
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


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
            state.library.source = (state.func_id.modname, state.func_id.func_qualname, tuple(state.args))
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
