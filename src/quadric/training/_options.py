"""The options of one training run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Training options. The public functions validate the values; this class does not.

    Attributes
    ----------
    solver : {'sgd', 'adam', 'lbfgs'}
    epochs : int
        Passes over the samples; iterations of 'lbfgs'.
    learning_rate : float
        The rate before `schedule` and damping are applied.
    schedule : {'constant', 'invscaling', 'adaptive'}
        'invscaling' is learning_rate / (samples seen + 1)**power_t. 'adaptive' divides the rate by
        5 when the other schedules stop.
    batch_size : int
        Samples per batch. 'sgd' with one sample per batch and no momentum runs in the compiled
        loop.
    l2 : float
        The objective is mean loss + l2/2 times the sum of squares of the penalised values.
    penalty : {'entries', 'monomials'}
        Whether q_ij or the coefficient of x_i x_j (q_ii and 2 q_ij) is penalised; 'monomials' is
        for 'lbfgs' only.
    by_weight : bool
        Divide loss and penalty by the batch's sum of sample weights, as scikit-learn's networks
        do. Otherwise a sample's weight scales its step.
    momentum, nesterov, beta_1, beta_2, epsilon
        Parameters of 'sgd' and 'adam'.
    clip : float or None
        The maximum norm of the gradient of a step, without the penalty.
    shuffle : bool
        Draw a new order for every epoch.
    tol : float
        'lbfgs' stops when no entry of the gradient is larger than `tol`. The others count the
        consecutive epochs that do not improve the loss or the score by at least `tol`.
    n_iter_no_change : float or None
        Training stops after more than this number of such epochs. None disables this rule.
        If it is set and there is a validation score, the weights of the best epoch are kept.
    max_evaluations : int or None
        Maximum number of evaluations of the objective ('lbfgs').
    pairs : int
        Number of correction pairs of 'lbfgs'.
    fixed : tuple of str
        Parameters that 'lbfgs' does not change, such as ('b',).
    resume : bool
        Continue with the state's optimiser memory and damping (`partial_fit`).
    recover : bool
        Undo a diverged epoch and lower the rate, instead of raising DivergenceError.
    growth : float or None
        An epoch has diverged if its loss exceeds `growth` times the loss of the same samples at
        the start. With None, only values that are not finite count as divergence.
    """

    solver: str = "sgd"
    epochs: int = 5
    learning_rate: float = 0.01
    schedule: str = "constant"
    power_t: float = 0.5
    batch_size: int = 1
    l2: float = 0.0
    penalty: str = "entries"
    by_weight: bool = False
    momentum: float = 0.0
    nesterov: bool = False
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    clip: float | None = None
    shuffle: bool = True
    tol: float = 1e-8
    n_iter_no_change: float | None = None
    max_evaluations: int | None = None
    pairs: int = 10
    fixed: tuple[str, ...] = ()
    resume: bool = False
    recover: bool = False
    growth: float | None = None

    @property
    def per_sample(self) -> bool:
        """Whether training runs in the compiled loop."""
        return self.solver == "sgd" and self.batch_size == 1 and self.momentum == 0
