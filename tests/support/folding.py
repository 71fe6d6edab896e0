"""Networks that can be folded: random stacks without activations between their layers."""

import numpy as np
from hypothesis import strategies as st

from quadric import Network

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.integers(1, 5)
LINEAR = st.lists(st.tuples(st.just("linear"), WIDTHS), max_size=3)
CURVED = st.tuples(st.sampled_from(["quadratic", "reduced"]), st.integers(1, 6))
LAST = st.sampled_from(["softmax", "logistic", "identity"])


def largest_error(found, wanted):
    """The largest difference, relative to the largest logit."""
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def create(n, stack, last, seed):
    """A network without activations before the last layer, with weights and biases of size 0.7."""
    activations = ["identity"] * (len(stack) - 1) + [last]
    layers = [(*layer, name) for layer, name in zip(stack, activations, strict=True)]
    return Network.create(n, layers, init="normal", scale=0.7, rng=seed)
