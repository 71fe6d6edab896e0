"""The paper's algorithms in plain NumPy, line for line, with the printed errors corrected.

The code is simple and slow on purpose. It does not import any other part of quadric, so that the
fast versions can be tested against it. It works on object arrays, so that it can be run with
numbers that count their own multiplications. Start with `_algorithms.py`.

- `train_logistic`, `train_qnn`, `train_rpqnn`: section II, Algorithm 1 and Algorithm 2.
- `gradients_qnn`, `gradients_rpqnn`: the loss of one sample and its gradients.
- `sigma`, `A`, `M`, `kronecker`: the logistic sigmoid, and the matrices of Algorithm 1: the block
  matrix A of the inputs, the derivative M(a) of a'Qa by Q, and the Kronecker product of delta and
  M(a).
- `Parameters`: the type of a layer, a dict of arrays.
- `update_qnn`, `update_rpqnn`, `PRINTED_UPDATES`: the updates of a layer, corrected and with each
  of the printed errors; `OTHER_UPDATES` has a form of ours, which the paper does not print.
- `COUNTS`, `PRINTED_COUNTS`: the multiplications of a model ('ann', 'qnn', 'rpqnn') and a step
  (`STEPS`) for m neurons with n inputs, corrected and as printed; `step_count` and `count_layer`
  add them up and count them.
- `PARAMETERS`, `EXTRA_MEMORY`: the parameters of a layer of m neurons with n inputs, and the
  numbers that it stores beyond those of an ANN, by model.
- `compare_counts`: the paper's Tables I and II for any m and n, as printed and as counted, as a
  list of `CountComparison`; `printed_count` is the printed total of a step, and
  `WHY_COUNTS_DIFFER` explains the differences.
- `QNN_FORWARD_COUNTS`: the multiplications of two other ways to compute z of a quadratic layer,
  'dense blocks' and 'triangle'.
"""

from quadric.reference._algorithms import (
    gradients_qnn,
    gradients_rpqnn,
    train_logistic,
    train_qnn,
    train_rpqnn,
    update_qnn,
    update_rpqnn,
)
from quadric.reference._as_printed import (
    OTHER_UPDATES,
    PRINTED_COUNTS,
    PRINTED_UPDATES,
    WHY_COUNTS_DIFFER,
    CountComparison,
    compare_counts,
    printed_count,
)
from quadric.reference._counts import (
    COUNTS,
    EXTRA_MEMORY,
    PARAMETERS,
    QNN_FORWARD_COUNTS,
    STEPS,
    count_layer,
    step_count,
)
from quadric.reference._pieces import A, M, Parameters, kronecker, sigma

__all__ = [
    "COUNTS",
    "EXTRA_MEMORY",
    "OTHER_UPDATES",
    "PARAMETERS",
    "PRINTED_COUNTS",
    "PRINTED_UPDATES",
    "QNN_FORWARD_COUNTS",
    "STEPS",
    "WHY_COUNTS_DIFFER",
    "A",
    "CountComparison",
    "M",
    "Parameters",
    "compare_counts",
    "count_layer",
    "gradients_qnn",
    "gradients_rpqnn",
    "kronecker",
    "printed_count",
    "sigma",
    "step_count",
    "train_logistic",
    "train_qnn",
    "train_rpqnn",
    "update_qnn",
    "update_rpqnn",
]
