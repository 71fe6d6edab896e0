"""`QuadraticConv2d`: quadratic neurons on patches of an image."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold

from quadric.checks import check_integer
from quadric.torch import functional
from quadric.torch._layers import Quadratic

Size = int | tuple[int, int]


class QuadraticConv2d(Quadratic):
    """z_k = p'Q_k p + w_k'p + b_k for every patch p of an image, as `torch.nn.Conv2d` slides.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input, and number m of neurons.
    kernel_size, stride, padding, dilation : int or tuple of two ints
        As in `torch.nn.Conv2d`; the padding consists of zeros.
    bias, linear : bool, default=True
        Whether the layer has b and W.
    device, dtype : as in `torch.nn.Conv2d`
        The device and dtype of the parameters.

    Attributes
    ----------
    packed, Q, W, b : as in `Quadratic`
        With n = in_channels · height · width of the kernel; the inputs of a patch are ordered by
        channel, row and column. ``W.view(m, in_channels, *kernel_size)`` is the weight of a Conv2d.

    Notes
    -----
    The patches are copied (`torch.nn.functional.unfold`), which takes n numbers for each pixel of
    the output. Q has n(n+1)/2 entries per neuron: a kernel of 3 x 3 with 16 channels has 10440.

    Examples
    --------
    >>> layer = QuadraticConv2d(1, 8, kernel_size=3, padding=1)
    >>> layer(torch.randn(2, 1, 28, 28)).shape
    torch.Size([2, 8, 28, 28])
    """

    kind = "quadratic"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        bias: bool = True,
        linear: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.in_channels = check_integer("in_channels", in_channels, at_least=1)
        self.out_channels = check_integer("out_channels", out_channels, at_least=1)
        self.kernel_size = _pair("kernel_size", kernel_size, at_least=1)
        self.stride = _pair("stride", stride, at_least=1)
        self.padding = _pair("padding", padding, at_least=0)
        self.dilation = _pair("dilation", dilation, at_least=1)
        n = in_channels * self.kernel_size[0] * self.kernel_size[1]
        absent = (() if bias else ("b",)) + (() if linear else ("W",))
        self._build(n, out_channels, absent, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return z for images.

        Parameters
        ----------
        input : Tensor of shape (B, channels, height, width) or (channels, height, width)
            The images.

        Returns
        -------
        Tensor of shape (B, m, height, width) or (m, height, width)
            The values z.
        """
        if input.ndim not in (3, 4) or input.shape[-3] != self.in_channels:
            raise RuntimeError(
                f"expected an input of shape (B, {self.in_channels}, height, width). "
                f"Got {tuple(input.shape)} instead."
            )
        images = input if input.ndim == 4 else input[None]
        options: Any = (self.kernel_size, self.dilation, self.padding, self.stride)
        patches = unfold(images, *options).transpose(1, 2)  # (B, pixels, n)
        z = functional.quadratic(patches, *self._current_parameters())
        sizes = [self._steps(images.shape[2 + axis], axis) for axis in (0, 1)]
        z = z.transpose(1, 2).reshape(len(images), self.out_channels, *sizes)
        return z if input.ndim == 4 else z[0]

    def _steps(self, length: int, axis: int) -> int:
        reach = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
        return (length + 2 * self.padding[axis] - reach) // self.stride[axis] + 1

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"bias={self.b is not None}, linear={self.W is not None}"
        )


def _pair(name: str, value: Any, *, at_least: int) -> tuple[int, int]:
    both = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2:
        raise ValueError(f"{name} must be an integer or two integers. Got {value!r}.")
    one, two = (check_integer(name, part, at_least=at_least) for part in both)
    return one, two
