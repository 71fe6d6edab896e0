"""The paper's page: its algorithms in plain NumPy, line for line, with the errors corrected.

Slow and plain on purpose. It shares no code with the rest of the package, so that the fast
versions have something to be checked against, and it works on object arrays, so that a number
that counts its multiplications can run through it (see `counting`).

- `algorithm1`: training a QNN, with the block matrix A, the stacked Q and the cached V.
- `algorithm2`: training an RPQNN, with the cached v1 and v2.
- `logistic`: quadratic logistic regression, section II.
- `as_printed`: each of the paper's printed errors, kept once.
- `counts`: how many multiplications each step takes, printed and counted.
"""

from quadric.reference._algorithm1 import gradients_qnn, train_qnn
from quadric.reference._algorithm2 import gradients_rpqnn, train_rpqnn
from quadric.reference._logistic import train_logistic

__all__ = ["gradients_qnn", "gradients_rpqnn", "train_logistic", "train_qnn", "train_rpqnn"]
