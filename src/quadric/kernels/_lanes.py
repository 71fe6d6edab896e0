"""Lanes: blocks of numbers held in SIMD registers, and the operations on them.

On its own, the compiler vectorizes short loops poorly, because it must assume that all arrays
overlap. The kernels therefore use registers explicitly. Inside them, memory is accessed by address
and offset, because arrays would be reference-counted at every call.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

UNIT_BYTES = 64  # size of an AVX-512 register; "register" means this size on every processor

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


class Lanes(types.Type):
    """`count` numbers of one float type, held in registers."""

    def __init__(self, dtype: types.Float, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")

    @property
    def vector(self):
        """The LLVM type of the block."""
        single = self.dtype == types.float32
        return ir.VectorType(ir.FloatType() if single else ir.DoubleType(), self.count)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.vector)


def _emit(instructions):
    """Turn instructions(builder, *arguments) into the code generator of an intrinsic."""
    return lambda context, builder, sig, args: instructions(builder, *args)


# ---- addresses -----------------------------------------------------------------------------


@intrinsic
def pointer(typingctx, array):
    """The address of a contiguous array's first element."""

    def codegen(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def addresses(typingctx, group):
    """The same named tuple, with the address of the first element in place of each array."""
    fields = [types.CPointer(f.dtype) if isinstance(f, types.Array) else f for f in group.types]

    def codegen(context, builder, sig, args):
        values = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(group.types, cgutils.unpack_tuple(builder, args[0]), strict=True)
        ]
        return context.make_tuple(builder, sig.return_type, values)

    return types.BaseTuple.from_types(fields, group.instance_class)(group), codegen


@intrinsic
def address(typingctx, number, like):
    """The address `number` as a pointer to the dtype that `like` points to."""
    return like(types.int64, like), _emit(lambda build, at, to: build.inttoptr(at, to.type))


@intrinsic
def integers(typingctx, address):
    """The same address as a pointer to int64."""
    return types.CPointer(types.int64)(address), _emit(
        lambda build, at: build.bitcast(at, I64.as_pointer())
    )


@intrinsic
def advance(typingctx, address, count):
    """The address `count` elements after `address`."""
    return address(address, types.intp), _emit(lambda build, at, n: build.gep(at, [n]))


@intrinsic
def take_ticket(typingctx, counter):
    """counter[0], which is incremented atomically, so that no two threads get the same ticket."""
    return types.int64(counter), _emit(
        lambda build, at: build.atomic_rmw("add", at, I64(1), "monotonic")
    )


# ---- blocks from and to memory -------------------------------------------------------------


@intrinsic(prefer_literal=True)
def zeros(typingctx, address, units):
    """A block of zeros that spans `units` registers, of the dtype that `address` points to."""
    count = units.literal_value * UNIT_BYTES * 8 // address.dtype.bitwidth
    lanes = Lanes(address.dtype, count)
    return lanes(address, units), _emit(lambda *_: lanes.vector(None))


@intrinsic
def lane_count(typingctx, block):
    """The number of lanes in the block, known at compile time."""
    return types.intp(block), _emit(lambda *_: I64(block.count))


@intrinsic
def is_double(typingctx, block):
    """Whether the lanes are float64, known at compile time."""
    return types.boolean(block), _emit(lambda *_: I1(int(block.dtype == types.float64)))


def _block_at(build, address, at, vector):
    return build.bitcast(build.gep(address, [at]), vector.as_pointer())


@intrinsic
def load(typingctx, address, at, like):
    """The numbers address[at], address[at + 1], ... as one block of the type of `like`."""
    return like(address, types.intp, like), _emit(
        lambda build, start, i, _: build.load(
            _block_at(build, start, i, like.vector), align=like.dtype.bitwidth // 8
        )
    )


@intrinsic
def store(typingctx, address, at, block):
    """address[at], address[at + 1], ... = block."""

    def codegen(context, builder, sig, args):
        to = _block_at(builder, args[0], args[1], block.vector)
        builder.store(args[2], to, align=block.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(address, types.intp, block), codegen


def _first_lanes(build, count, vector):
    """A mask of the first `count` lanes."""
    numbers = ir.VectorType(I32, vector.count)
    each = numbers([I32(lane) for lane in range(vector.count)])
    undefined = numbers(ir.Undefined)
    first = build.insert_element(undefined, build.trunc(count, I32), I32(0))
    return build.icmp_signed("<", each, build.shuffle_vector(first, undefined, numbers(None)))


@intrinsic
def load_some(typingctx, address, at, count, like):
    """The first `count` of the numbers that `load` returns, and zeros; no other memory is read."""

    def instructions(build, start, i, count, _):
        vector, align = like.vector, I32(like.dtype.bitwidth // 8)
        where = _block_at(build, start, i, vector)
        mask = _first_lanes(build, count, vector)
        name = f"llvm.masked.load.{_suffix(vector)}.p0"
        return call_intrinsic(build, name, vector, where, align, mask, vector(None))

    return like(address, types.intp, types.intp, like), _emit(instructions)


@intrinsic
def store_some(typingctx, address, at, count, block):
    """Store the first `count` lanes of a block at address[at], address[at + 1], ..."""

    def codegen(context, builder, sig, args):
        vector, align = block.vector, I32(block.dtype.bitwidth // 8)
        where = _block_at(builder, args[0], args[1], vector)
        mask = _first_lanes(builder, args[2], vector)
        name = f"llvm.masked.store.{_suffix(vector)}.p0"
        call_intrinsic(builder, name, ir.VoidType(), args[3], where, align, mask)
        return context.get_dummy_value()

    return types.void(address, types.intp, types.intp, block), codegen


@intrinsic
def prefetch(typingctx, address, at):
    """Ask for the memory at address[at], which need not exist, so that a later load is faster."""

    def codegen(context, builder, sig, args):
        where = builder.gep(args[0], [args[1]])
        call_intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), where, I32(0), I32(3), I32(1))
        return context.get_dummy_value()

    return types.void(address, types.intp), codegen


@intrinsic
def splat(typingctx, value, like):
    """A block whose lanes all hold `value`."""

    def instructions(build, number, _):
        undefined = like.vector(ir.Undefined)
        first = build.insert_element(undefined, number, I32(0))
        return build.shuffle_vector(first, undefined, ir.VectorType(I32, like.count)(None))

    return like(like.dtype, like), _emit(instructions)


# ---- arithmetic ----------------------------------------------------------------------------


def call_intrinsic(builder, name, result, *arguments):
    """Call an LLVM intrinsic by its full name."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _call_llvm(builder, name, result, arguments):
    """Call the LLVM intrinsic `name`, which is overloaded on the type of its last argument."""
    return call_intrinsic(builder, f"llvm.{name}.{_suffix(arguments[-1].type)}", result, *arguments)


def _suffix(vector):
    """The name of a vector's type in the names of LLVM's intrinsics."""
    return f"v{vector.count}f{32 if isinstance(vector.element, ir.FloatType) else 64}"


def _elementwise(name):
    """The code generator of an LLVM intrinsic that acts lane by lane."""
    return _emit(lambda build, *blocks: _call_llvm(build, name, blocks[0].type, blocks))


def _reduction(name, start):
    """The code generator of an LLVM intrinsic that reduces a block to one number."""
    return _emit(
        lambda build, block: _call_llvm(
            build,
            f"vector.reduce.{name}",
            block.type.element,
            [block.type.element(start), block],
        )
    )


@intrinsic
def nearest_integer(typingctx, block):
    """The whole number nearest to each lane."""
    return block(block), _elementwise("rint")


@intrinsic
def larger(typingctx, left, right):
    """The larger of each pair of lanes."""
    return left(left, right), _elementwise("maxnum")


@intrinsic
def smaller(typingctx, left, right):
    """The smaller of each pair of lanes."""
    return left(left, right), _elementwise("minnum")


@intrinsic
def multiply_add(typingctx, x, y, z):
    """x * y + z, in one instruction where the machine supports it."""
    return x(x, x, x), _elementwise("fmuladd")


@intrinsic
def total(typingctx, block):
    """The sum of the lanes."""
    return block.dtype(block), _reduction("fadd", 0.0)


@intrinsic
def product(typingctx, block):
    """The product of the lanes."""
    return block.dtype(block), _reduction("fmul", 1.0)


@intrinsic
def power_of_two(typingctx, k):
    """2**k for lanes that hold whole numbers, computed by writing the exponent's bits."""
    bits, mantissa, bias = (32, 23, 127) if k.dtype == types.float32 else (64, 52, 1023)
    whole = ir.VectorType(ir.IntType(bits), k.count)

    def instructions(build, exponent):
        biased = build.add(build.fptosi(exponent, whole), whole([bias] * k.count))
        return build.bitcast(build.shl(biased, whole([mantissa] * k.count)), k.vector)

    return k(k), _emit(instructions)


@intrinsic
def unless_nan(typingctx, x, block):
    """`block`, or x where x is NaN, because functions such as `larger` drop NaN."""
    return block(x, block), _emit(
        lambda build, x, other: build.select(build.fcmp_unordered("uno", x, x), x, other)
    )


@intrinsic
def where_positive(typingctx, condition, block):
    """block where condition > 0, else 0."""
    zero = block.vector(None)
    return block(condition, block), _emit(
        lambda build, x, other: build.select(build.fcmp_ordered(">", x, zero), other, zero)
    )


# ---- bit masks -----------------------------------------------------------------------------


@intrinsic
def all_finite(typingctx, block):
    """Whether all lanes are finite."""

    def instructions(build, x):
        magnitude = _call_llvm(build, "fabs", x.type, [x])
        finite = build.fcmp_ordered("<", magnitude, x.type([float("inf")] * block.count))
        mask = build.bitcast(finite, ir.IntType(block.count))
        return build.icmp_unsigned("==", mask, mask.type(-1))

    return types.boolean(block), _emit(instructions)


@intrinsic
def nonzero_mask(typingctx, block):
    """A number whose bit p is set where lane p differs from zero."""

    def instructions(build, x):
        mask = build.bitcast(build.fcmp_unordered("!=", x, x.type(None)), ir.IntType(block.count))
        return build.zext(mask, I64)

    return types.uint64(block), _emit(instructions)


@intrinsic
def count_bits(typingctx, mask):
    """The number of bits that are set."""
    return types.intp(types.uint64), _emit(lambda build, mask: build.ctpop(mask))


@intrinsic
def lowest_bit(typingctx, mask):
    """The position of the lowest set bit."""
    return types.intp(types.uint64), _emit(lambda build, mask: build.cttz(mask, I1(1)))


# ---- operators -----------------------------------------------------------------------------


class _LanesOperator(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
            return signature(args[0], *args)
        return None


for _operator, _instruction in (
    (operator.add, ir.IRBuilder.fadd),
    (operator.sub, ir.IRBuilder.fsub),
    (operator.mul, ir.IRBuilder.fmul),
    (operator.truediv, ir.IRBuilder.fdiv),
):
    infer_global(_operator)(type("_LanesOperator", (_LanesOperator,), {}))
    lower_builtin(_operator, Lanes, Lanes)(_emit(_instruction))
