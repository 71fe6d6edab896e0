"""Run a compiled function with denormal numbers flushed to zero.

Denormal numbers are smaller than the smallest normal number, 1.2e-38 in float32. Some processors
take about a hundred times as long for arithmetic with them, and threads may differ in whether they
flush them to zero. The loops therefore always flush: operands and results that are denormal count
as zero. The mode is part of a thread's control register, which has its previous value again when
the loop returns.
"""

from llvmlite import binding, ir
from numba.core import cgutils
from numba.extending import intrinsic

from quadric.kernels._lanes import I32, I64, call_intrinsic

FLUSH_X86 = 0x8040  # MXCSR: flush results to zero, denormal operands are zero
FLUSH_ARM = 1 << 24  # FPCR: both
ARCHITECTURE = binding.get_process_triple().partition("-")[0]


def _on_x86(builder):
    """Set the mode; return a function that restores it."""
    register = cgutils.alloca_once(builder, I32)
    address = builder.bitcast(register, ir.IntType(8).as_pointer())
    call_intrinsic(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), address)
    before = builder.load(register)

    def write(value):
        builder.store(value, register)
        call_intrinsic(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), address)

    write(builder.or_(before, I32(FLUSH_X86)))
    return lambda: write(before)


def _on_arm(builder):
    """Set the mode; return a function that restores it."""
    before = call_intrinsic(builder, "llvm.aarch64.get.fpcr", I64)

    def write(value):
        call_intrinsic(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), value)

    write(builder.or_(before, I64(FLUSH_ARM)))
    return lambda: write(before)


MODES = {"x86_64": _on_x86, "aarch64": _on_arm, "arm64": _on_arm}


def set_mode(builder, architecture=ARCHITECTURE):
    """Emit code that sets the mode; return a function that emits code to restore it."""
    return MODES.get(architecture, lambda builder: lambda: None)(builder)


@intrinsic
def call_flushed(typingctx, function, arguments):
    """function(*arguments), with denormal numbers flushed to zero.

    The compiler may move arithmetic past a change of the mode, but not out of a function. The
    function must therefore not be inlined.
    """
    inner = function.get_call_type(typingctx, arguments.types, {})

    def codegen(context, builder, sig, args):
        compiled = function.dispatcher.get_compile_result(inner)
        context.active_code_library.add_linking_library(compiled.library)
        callee = context.declare_function(builder.module, compiled.fndesc)
        values = cgutils.unpack_tuple(builder, args[1])
        restore = set_mode(builder)
        status, result = context.call_conv.call_function(
            builder, callee, inner.return_type, inner.args, values, attrs=("noinline",)
        )
        restore()  # also if the function has raised an exception
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return inner.return_type(function, arguments), codegen
