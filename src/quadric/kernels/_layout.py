"""The memory layout of per-sample SGD: codes, the record of a layer, and groups of arguments.

Every inner loop runs over whole SIMD registers of neurons. Parameters are therefore stored
input-major, in rows of ``pad`` numbers: one for each of the m neurons, then zeros up to a multiple
of one register. Every array starts at such a multiple. This example has a reduced layer with a
folded input offset (layer 0), followed by a quadratic layer (layer 1)::

    theta   | W   U   | W   Q   | u r u r   || b   c   | b       |
            | layer 0 | layer 1 | of layer 0|| layer 0 | layer 1 |
            |<---- n_penalized numbers ---->|
                 stored divided by scale

    W and U   neuron  0    1  .. m-1  padding    Q    neuron  0      1    .. padding
    input 0         w_00 w_10         0 .. 0     pair 0,0   q_0,00 q_1,00    0 .. 0
    input 1         w_01 w_11         0 .. 0     pair 0,1   q_0,01 q_1,01    0 .. 0
    ..                                           ..
    input n-1                         0 .. 0     pair 1,1   q_0,11 q_1,11    0 .. 0

    work    | x      | z a delta v1 v2 | z a delta V monomials |
            | sample | layer 0         | layer 1               |

    where   | 0 1 2 .. | 2 5 7 ..                            |
            | hidden   | features of the sample's non-zeros  |

- A sparse sample touches only the rows of its non-zero features.
- Q is stored as its upper triangle, with one row for each pair i <= j. The triangle takes half the
  memory of the full matrix and is symmetric by construction.
- The inputs of a layer are a list of (index, value) pairs (see `Inputs`): the non-zero features of
  the sample for the first layer, and all activations of the layer below for the others.
- With an L2 penalty, the weights are ``scale`` times the stored values. A step multiplies
  this one number instead of every weight, so that rows of zero inputs are not touched.
- With an input offset o, the weights of a linear or reduced first layer are ``W = W~ + u o'``, and
  ``r = W~ o`` is kept. A dense ``x = s + o`` then costs no more than the sparse ``s``.
"""

from collections import namedtuple

import numpy as np

from quadric.kernels._compiling import inline
from quadric.kernels._lanes import advance

# Compiled code uses integer codes in place of names.
LINEAR, QUADRATIC, REDUCED = range(3)
IDENTITY, LOGISTIC, TANH, RELU, SOFTMAX, EXPONENTIAL = range(6)
BINARY_CROSS_ENTROPY, CROSS_ENTROPY, SQUARED_ERROR, POISSON = range(4)
KIND_CODES = {"linear": LINEAR, "quadratic": QUADRATIC, "reduced": REDUCED}
ACTIVATION_CODES = {
    "identity": IDENTITY,
    "logistic": LOGISTIC,
    "tanh": TANH,
    "relu": RELU,
    "softmax": SOFTMAX,
    "exponential": EXPONENTIAL,
}
LOSS_CODES = {
    "binary_cross_entropy": BINARY_CROSS_ENTROPY,
    "cross_entropy": CROSS_ENTROPY,
    "squared_error": SQUARED_ERROR,
    "poisson": POISSON,
}
DENSE, CSR = range(2)
NO_OFFSET, ADDED_TO_INPUTS, FOLDED_INTO_WEIGHTS = range(3)

# Each layer is a row of the table. Positions are counted in numbers, not bytes. A position of -1
# means that the layer does not have this array.
LAYER = np.dtype(
    [
        ("kind", np.int64),  # LINEAR, QUADRATIC or REDUCED
        ("activation", np.int64),  # one of the codes above
        ("n_in", np.int64),  # n, the number of inputs
        ("n_out", np.int64),  # m, the number of neurons
        ("pad", np.int64),  # length of a stored row: m, rounded up to whole registers
        # positions in `theta`
        ("W", np.int64),  # n rows
        ("b", np.int64),  # 1 row
        ("packed", np.int64),  # Q, quadratic: n (n + 1) / 2 rows
        ("U", np.int64),  # reduced: n rows
        ("c", np.int64),  # reduced: 1 row
        ("W_u", np.int64),  # folded offset, 1 row: W = W~ + u o'
        ("W_r", np.int64),  # folded offset, 1 row: r = W~ o
        ("U_u", np.int64),  # the same for U
        ("U_r", np.int64),
        # positions in `work`
        ("x", np.int64),  # inputs: the sample's, or the activations of the layer below
        ("z", np.int64),  # pad numbers
        ("a", np.int64),  # pad numbers: a = g(z)
        ("delta", np.int64),  # pad numbers: dL/dz
        ("v1", np.int64),  # reduced, pad numbers: W x + b; after the backward pass, delta v1
        ("v2", np.int64),  # reduced, pad numbers: U x + c; after the backward pass, delta v2
        ("V", np.int64),  # quadratic and not first, n rows: V_i = sum_j q_ij x_j
        ("monomials", np.int64),  # quadratic and not first, n (n + 1) / 2 numbers: M(x)
        # position in `where`
        ("where", np.int64),  # indices of the inputs
    ],
    align=True,
)


# The buffers of a stack of layers, as arrays or as addresses; updated in place.
#
#     theta        parameters
#     scale        one number: the first n_penalized parameters are scale[0] times theta
#     n_penalized  number of parameters that the L2 penalty includes
#     work         values of the current sample
#     where        indices of inputs
Memory = namedtuple("Memory", "theta scale n_penalized work where")

# The training data, as arrays or as addresses.
#
#     form         DENSE or CSR
#     indptr       CSR: where each row starts
#     indices      CSR: columns
#     data         CSR: values; DENSE: rows, one after the other
#     Y            targets, a row for each sample
#     weights      sample weights, which multiply the learning rate
#     offset_use   NO_OFFSET, ADDED_TO_INPUTS or FOLDED_INTO_WEIGHTS
#     offset       o, added to every input
#     offset_dots  FOLDED_INTO_WEIGHTS: o's for each sample s
SampleArrays = namedtuple(
    "SampleArrays", "form indptr indices data Y weights offset_use offset offset_dots"
)

# The loss that a step minimizes (one of the codes above), the learning rate, the L2 penalty, and
# the maximum norm of a gradient, which is infinite for no clipping.
Step = namedtuple("Step", "loss rate l2 clip")

# The inputs of one layer as a list: input where[p] is x[p] for p < size; all others are 0. If the
# offset o is folded into the weights, offset_dot is o's and offset_square is o'o, else both are 0.
Inputs = namedtuple("Inputs", "where x size offset_dot offset_square")

# Factors by which a gradient is multiplied before it is added to the stored parameters:
# -rate / scale for weights, -rate for biases.
Rates = namedtuple("Rates", "weights biases")


@inline
def pair_row(i, n):
    """p such that row p + j of a triangle holds q_ij, for j >= i."""
    return i * n - (i * (i + 1)) // 2


@inline
def inputs_of(memory, layer, is_first, sample):
    """Return the inputs of a layer: the listed `sample`, or all activations of the layer below."""
    if is_first:
        return sample
    x = advance(memory.work, layer.x)
    return Inputs(advance(memory.where, layer.where), x, layer.n_in, 0.0, 0.0)
