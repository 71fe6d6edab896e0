"""The paper's algorithms in plain NumPy, line for line, with the printed errors corrected.

The code is simple and slow on purpose. It does not import any other part of quadric, so that the
fast versions can be tested against it. It works on object arrays, so that it can be run with
numbers that count their own multiplications. Start with `_algorithm1.py`.

- `_algorithm1`: training a QNN, with the block matrix A, the stacked Q and the cached V.
- `_algorithm2`: training an RPQNN, with the cached v1 and v2.
- `_logistic`: quadratic logistic regression, section II.
- `_pieces`: activations, losses and matrices that the algorithms share.
- `_as_printed`: the printed errors, each implemented once.
- `_counts`: the multiplications of each step, as formulas and by counting.
"""

from quadric.reference._algorithm1 import gradients_qnn, train_qnn
from quadric.reference._algorithm2 import gradients_rpqnn, train_rpqnn
from quadric.reference._counts import PARAMETERS as PARAMETERS
from quadric.reference._logistic import train_logistic
from quadric.reference._pieces import A as A, Parameters as Parameters, sigma as sigma

__all__ = ["gradients_qnn", "gradients_rpqnn", "train_logistic", "train_qnn", "train_rpqnn"]
