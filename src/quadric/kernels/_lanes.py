"""Lanes: a block of numbers held in SIMD registers, and what can be done with it.

Left to itself the compiler vectorises short loops badly (it must assume that all arrays overlap),
so the kernels write their registers out. Inside them memory is addresses and offsets: arrays would
be reference-counted at every call.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

UNIT_BYTES = 64  # of one register, the unit in which blocks and paddings are counted


class Lanes(types.Type):
    """`count` numbers of one float type, held in registers."""

    def __init__(self, dtype: types.Float, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        element = ir.FloatType() if fe_type.dtype == types.float32 else ir.DoubleType()
        super().__init__(dmm, fe_type, ir.VectorType(element, fe_type.count))


@intrinsic
def pointer(typingctx, array):
    """The address of a contiguous array's first element.

    Inside the loop only addresses are passed on: arrays would be reference-counted each time.
    """

    def codegen(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def addresses(typingctx, group):
    """The same named tuple, with the address of the first element in place of each array."""
    fields = [types.CPointer(f.dtype) if isinstance(f, types.Array) else f for f in group.types]

    def codegen(context, builder, sig, args):
        values = []
        for i, field in enumerate(sig.args[0].types):
            value = builder.extract_value(args[0], i)
            if isinstance(field, types.Array):
                value = context.make_array(field)(context, builder, value).data
            values.append(value)
        return context.make_tuple(builder, sig.return_type, values)

    return types.BaseTuple.from_types(fields, group.instance_class)(group), codegen


@intrinsic
def address(typingctx, number, like):
    """The address `number`, of numbers of the dtype that `like` points at."""

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[0], args[1].type)

    return like(types.int64, like), codegen


@intrinsic
def integers(typingctx, address):
    """The same address, of int64."""

    def codegen(context, builder, sig, args):
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(address), codegen


@intrinsic
def take_ticket(typingctx, counter):
    """counter[0], and one more for whoever comes next: no two threads get the same."""

    def codegen(context, builder, sig, args):
        return builder.atomic_rmw("add", args[0], ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), codegen


@intrinsic
def advance(typingctx, address, count):
    """The address `count` elements further on."""

    def codegen(context, builder, sig, args):
        return builder.gep(args[0], [args[1]])

    return address(address, types.intp), codegen


@intrinsic(prefer_literal=True)
def zeros(typingctx, address, units):
    """A block of `units` padding units, all zero, of the dtype that `address` points at."""
    count = units.literal_value * UNIT_BYTES * 8 // address.dtype.bitwidth
    lanes = Lanes(address.dtype, count)

    def codegen(context, builder, sig, args):
        return ir.Constant(context.get_value_type(lanes), None)

    return lanes(address, units), codegen


@intrinsic
def lane_count(typingctx, block):
    """How many lanes the block has (known when compiling)."""

    def codegen(context, builder, sig, args):
        return context.get_constant(types.intp, block.count)

    return types.intp(block), codegen


@intrinsic
def is_double(typingctx, block):
    """Whether the lanes are float64 (known when compiling)."""

    def codegen(context, builder, sig, args):
        return context.get_constant(types.boolean, block.dtype == types.float64)

    return types.boolean(block), codegen


@intrinsic
def load(typingctx, address, at, like):
    """The numbers address[at], address[at + 1], ... as one block of the type of `like`."""

    def codegen(context, builder, sig, args):
        vector = context.get_value_type(like)
        start = builder.gep(args[0], [args[1]])
        return builder.load(
            builder.bitcast(start, vector.as_pointer()), align=like.dtype.bitwidth // 8
        )

    return like(address, types.intp, like), codegen


@intrinsic
def store(typingctx, address, at, block):
    """address[at], address[at + 1], ... = block."""

    def codegen(context, builder, sig, args):
        start = builder.gep(args[0], [args[1]])
        builder.store(
            args[2],
            builder.bitcast(start, args[2].type.as_pointer()),
            align=block.dtype.bitwidth // 8,
        )
        return context.get_dummy_value()

    return types.void(address, types.intp, block), codegen


def _splat(builder, value, vector):
    undefined = ir.Constant(vector, ir.Undefined)
    zero = ir.Constant(ir.IntType(32), 0)
    first = builder.insert_element(undefined, value, zero)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(first, undefined, mask)


@intrinsic
def splat(typingctx, value, like):
    """A block whose lanes all hold `value`."""

    def codegen(context, builder, sig, args):
        return _splat(builder, args[0], context.get_value_type(like))

    return like(like.dtype, like), codegen


def _call_llvm(builder, name, result, arguments):
    """Call the LLVM intrinsic `name`; it is overloaded on the type of its first argument."""
    vector = arguments[-1].type
    suffix = f"v{vector.count}f{32 if isinstance(vector.element, ir.FloatType) else 64}"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(result, [argument.type for argument in arguments]),
        f"llvm.{name}.{suffix}",
    )
    return builder.call(function, arguments)


def _elementwise(name):
    @intrinsic
    def one(typingctx, block):
        def codegen(context, builder, sig, args):
            return _call_llvm(builder, name, args[0].type, args)

        return block(block), codegen

    return one


def _elementwise2(name):
    @intrinsic
    def two(typingctx, left, right):
        def codegen(context, builder, sig, args):
            return _call_llvm(builder, name, args[0].type, args)

        return left(left, right), codegen

    return two


nearest_integer = _elementwise("rint")
larger = _elementwise2("maxnum")
smaller = _elementwise2("minnum")


def _reduction(name, start):
    @intrinsic
    def reduce(typingctx, block):
        def codegen(context, builder, sig, args):
            element = args[0].type.element
            arguments = [ir.Constant(element, start), *args]
            return _call_llvm(builder, f"vector.reduce.{name}", element, arguments)

        return block.dtype(block), codegen

    return reduce


total = _reduction("fadd", 0.0)
product = _reduction("fmul", 1.0)


@intrinsic
def four_totals(typingctx, a, b, c, d):
    """The totals of four blocks, as one block of four: fewer steps than one after the other."""

    def codegen(context, builder, sig, args):
        def pick(left, right, lanes):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
            return builder.shuffle_vector(left, right, mask)

        def fold(block):
            while block.type.count > 4:
                half = block.type.count // 2
                low, high = range(half), range(half, 2 * half)
                block = builder.fadd(pick(block, block, low), pick(block, block, high))
            return block

        def sum_neighbours(left, right):
            return builder.fadd(pick(left, right, (0, 2, 4, 6)), pick(left, right, (1, 3, 5, 7)))

        a, b, c, d = map(fold, args)
        return sum_neighbours(sum_neighbours(a, b), sum_neighbours(c, d))

    return Lanes(a.dtype, 4)(a, a, a, a), codegen


@intrinsic
def multiply_add(typingctx, x, y, z):
    """x * y + z, in one instruction where the machine has it."""

    def codegen(context, builder, sig, args):
        return _call_llvm(builder, "fmuladd", args[0].type, args)

    return x(x, x, x), codegen


@intrinsic
def power_of_two(typingctx, k):
    """2**k for lanes that hold whole numbers, by writing the exponent's bits."""
    bits, mantissa, bias = (32, 23, 127) if k.dtype == types.float32 else (64, 52, 1023)

    def codegen(context, builder, sig, args):
        integers = ir.VectorType(ir.IntType(bits), k.count)
        exponent = builder.fptosi(args[0], integers)
        exponent = builder.add(exponent, ir.Constant(integers, [bias] * k.count))
        exponent = builder.shl(exponent, ir.Constant(integers, [mantissa] * k.count))
        return builder.bitcast(exponent, args[0].type)

    return k(k), codegen


@intrinsic
def all_finite(typingctx, block):
    """Whether no lane is infinite or NaN."""

    def codegen(context, builder, sig, args):
        magnitude = _call_llvm(builder, "fabs", args[0].type, args)
        infinity = ir.Constant(args[0].type, [float("inf")] * block.count)
        finite = builder.fcmp_ordered("<", magnitude, infinity)
        whole = builder.bitcast(finite, ir.IntType(block.count))
        return builder.icmp_unsigned("==", whole, ir.Constant(whole.type, -1))

    return types.boolean(block), codegen


@intrinsic
def nonzero_mask(typingctx, block):
    """Bit p is set where lane p differs from zero."""

    def codegen(context, builder, sig, args):
        nonzero = builder.fcmp_unordered("!=", args[0], ir.Constant(args[0].type, None))
        mask = builder.bitcast(nonzero, ir.IntType(block.count))
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(block), codegen


@intrinsic
def count_bits(typingctx, mask):
    """How many bits are set."""

    def codegen(context, builder, sig, args):
        return builder.ctpop(args[0])

    return types.intp(types.uint64), codegen


@intrinsic
def lowest_bit(typingctx, mask):
    """The position of the lowest set bit."""

    def codegen(context, builder, sig, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), codegen


@intrinsic
def unless_nan(typingctx, x, block):
    """block, but x where x is NaN: comparisons such as `larger` lose it."""

    def codegen(context, builder, sig, args):
        nan = builder.fcmp_unordered("uno", args[0], args[0])
        return builder.select(nan, args[0], args[1])

    return block(x, block), codegen


@intrinsic
def where_positive(typingctx, condition, block):
    """block where condition > 0, else 0."""

    def codegen(context, builder, sig, args):
        zero = ir.Constant(args[0].type, None)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], zero)

    return block(condition, block), codegen


for _operator, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):

    @infer_global(_operator)
    class _LanesOperator(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    def _lower(context, builder, sig, args, instruction=_instruction):
        return getattr(builder, instruction)(*args)

    lower_builtin(_operator, Lanes, Lanes)(_lower)
