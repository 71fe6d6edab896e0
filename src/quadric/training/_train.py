"""The one way to train: picks stepper, optimiser or L-BFGS, and runs it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from quadric._utils.blas_threads import one_blas_thread
from quadric.core._layers import Layer
from quadric.core._losses import LOSSES
from quadric.training._divergence import Watch
from quadric.training._epochs import Stepper, run_epochs
from quadric.training._mini_batch import MiniBatch
from quadric.training._objective import Samples
from quadric.training._optimizers import SGD, Adam, Optimizer
from quadric.training._options import Options
from quadric.training._state import Epoch, History, TrainingState

WORTH_SEVERAL = 1e8  # multiplications in one pass over a batch, from which on threads help


def train(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: str,
    samples: Samples,
    options: Options,
    state: TrainingState,
    *,
    rng: np.random.Generator | np.random.RandomState | None = None,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> History:
    """Train the layers in place.

    Parameters
    ----------
    layers, activations, loss
        The network, and the name of its loss.
    samples : Samples
        Checked data.
    options : Options
    state : TrainingState
        Updated in place. A new one starts from nothing; with ``options.resume`` the optimiser
        continues from where an earlier call stopped.
    rng : Generator or RandomState
        For the order of the samples.
    validate : callable, optional
        Returns the validation score; called after every epoch.
    callback : callable(Epoch), optional
        Called after every epoch; training stops if it returns something true.

    Returns
    -------
    History
        ``state.history``.
    """
    state.begin(len(samples), options)
    if options.epochs == 0:
        return state.history
    network = layers, activations, LOSSES[loss]
    if options.solver == "lbfgs":
        from quadric.training._lbfgs import run_lbfgs  # scipy.optimize: only when needed

        with _suitable_threads(layers, len(samples)):
            run_lbfgs(*network, samples, options, state, validate=validate, callback=callback)
        return state.history

    def make_stepper() -> Stepper:
        if options.per_sample:
            return _per_sample(layers, activations, loss, samples, options, state)
        optimizer: Optimizer = (SGD if options.solver == "sgd" else Adam)(options, state)
        return MiniBatch(*network, samples, options, optimizer)

    assert rng is not None
    batch = 0 if options.per_sample else min(options.batch_size, len(samples))
    with _suitable_threads(layers, batch):
        stepper = make_stepper()
        watch = Watch(*network, samples, options, state, stepper.l2)
        run_epochs(stepper, make_stepper, watch, rng=rng, validate=validate, callback=callback)
    return state.history


def _per_sample(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: str,
    samples: Samples,
    options: Options,
    state: TrainingState,
) -> Stepper:
    """The compiled loop; with `resume` it continues on its own buffer, to the last bit."""
    from quadric.training._packing import PackedLayers  # numba: only when needed
    from quadric.training._per_sample import PerSample

    packed = state.packed
    if packed is None and "theta" in state.memory:
        packed = PackedLayers(layers, activations, samples.offset)
        packed.theta[...], packed.scale[...] = state.memory["theta"], state.memory["scale"]
    if packed is not None and not packed.holds(layers):
        packed = None  # the network was changed since
    stepper = PerSample(
        layers,
        activations,
        loss,
        samples.X,
        samples.Y,
        l2=options.l2,
        clip=options.clip,
        sample_weight=samples.weight,
        offset=samples.offset,
        packed=packed,
    )
    if options.resume:
        state.packed = stepper.packed
        state.memory = {"theta": stepper.packed.theta, "scale": stepper.packed.scale}
    return stepper


@contextmanager
def _suitable_threads(layers: Sequence[Layer], batch: int) -> Iterator[None]:
    """Limit BLAS to one thread, unless one pass over a batch is much work.

    NumPy and SciPy bring a BLAS each. In a loop that calls both for a few milliseconds at a time,
    their threads compete for the processor: six times slower on two cores.
    """
    numbers = sum(layer.n_parameters for layer in layers)
    if batch == 0 or batch * numbers > WORTH_SEVERAL:
        yield
        return
    with one_blas_thread():
        yield
