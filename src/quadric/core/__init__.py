"""The mathematics of layers: activations, losses, layers, initial values and packed triangles.

Start with `_layers`. The package may import `quadric.kernels` and `quadric.utils`.
"""

from quadric.core._activations_and_losses import (
    ACTIVATIONS,
    LOSSES,
    accuracy,
    check_loss,
    log_softmax as log_softmax,
)
from quadric.core._initial_values import INITIAL_VALUES, draw_layers, glorot_variances
from quadric.core._layers import (
    LAYERS,
    Layer,
    Linear,
    Quadratic,
    Reduced,
    Stack,
    block_rows,
    checked_array as checked_array,
    columns_needed,
    parameters,
)
from quadric.core._quadratic_form import (
    monomial_coefficients as monomial_coefficients,
    n_inputs as n_inputs,
    term_variances as term_variances,
    weighted_products as weighted_products,
)

__all__ = [
    "ACTIVATIONS",
    "INITIAL_VALUES",
    "LAYERS",
    "LOSSES",
    "Layer",
    "Linear",
    "Quadratic",
    "Reduced",
    "Stack",
    "accuracy",
    "block_rows",
    "check_loss",
    "columns_needed",
    "draw_layers",
    "glorot_variances",
    "parameters",
]
