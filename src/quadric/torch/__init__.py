"""Quadratic neurons as PyTorch modules.

Start with `_layers` (`Quadratic`, `Reduced`, `Linear`); `functional` has their equations and
`_quadratic_form` computes x'Q x. `_low_rank`, `_convolution`, `_recurrent`, `_optimization` and
`_conversion` build on the layers; `_tracing` records what other modules compute. The package may
import `quadric.network`, `quadric.core`, `quadric.kernels` and the utilities below them.
Besides this package, only two studies in `quadric.apps.paper` import torch.

>>> import torch
>>> from quadric.torch import Quadratic
>>> layer = Quadratic(64, 10)
>>> layer(torch.randn(32, 64)).shape
torch.Size([32, 10])
"""

from quadric.utils import require

require("torch", extra="torch", by="quadric.torch")

from quadric.torch import _operators as _operators, functional
from quadric.torch._conversion import from_network, replace_head, to_network
from quadric.torch._convolution import QuadraticConv2d
from quadric.torch._layers import Linear, Quadratic, Reduced
from quadric.torch._low_rank import LowRankQuadratic, ProductPlusLinear
from quadric.torch._optimization import parameter_groups, spectral_penalty
from quadric.torch._recurrent import QuadraticRNN, QuadraticRNNCell
from quadric.torch._tracing import (
    Step as Step,
    recorded_steps as recorded_steps,
    values_of as values_of,
)

__all__ = [
    "Linear",
    "LowRankQuadratic",
    "ProductPlusLinear",
    "Quadratic",
    "QuadraticConv2d",
    "QuadraticRNN",
    "QuadraticRNNCell",
    "Reduced",
    "from_network",
    "functional",
    "parameter_groups",
    "replace_head",
    "spectral_penalty",
    "to_network",
]
