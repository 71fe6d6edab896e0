"""Exact Shapley values, interaction values, Sobol indices and Friedman's H of quadratic scores.

With d = x - mean of the background, a score is f = c + g'd + d'Qd. If the inputs outside a set S of
inputs are drawn from the background, which has the covariance C, the mean of f is

    v(S) = c + sum_S g_A'd_A + sum of M_AB over A, B in S + sum of K_AB over A, B not in S

with M_AB = d_A'Q_AB d_B and K_AB = tr(Q_AB C_BA), because the mean of d is zero. An input A may
have several coordinates, such as those of a one-hot encoding. In this game, the pair A, B
contributes M_AB - K_AB to the Shapley value of A and as much to that of B, so that

    phi_A = g_A'd_A + sum over B of (M_AB - K_AB)

and the Shapley interaction value of A and B, which is divided equally between (A, B) and (B, A), is
2 (M_AB + K_AB).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.checks import Array, check_integer
from quadric.explain._dependence_and_permutation import InputData, written
from quadric.explain._explained_layer import ExplainedLayer, points_of
from quadric.explain._scores import map_to_layer, named_scores, one_layer_of
from quadric.utils import check_limit, counted, rounded, visible

MOST_LISTED = 15  # inputs in the text
INSTEAD = (
    "Its Shapley values have no closed form; estimate them with "
    "shap.Explainer(model.predict_proba, background), or with model.predict for numbers."
)


@dataclass(frozen=True)
class Score:
    """A score c + g'd + d'Qd, and its mean, which is that over the background."""

    c: float
    g: Array
    Q: Array
    mean: float


@dataclass(frozen=True)
class Game:
    """The scores, and the rows as deviations from the mean of the background.

    `members`, of shape (n_coordinates, n_inputs), is 1 where a coordinate belongs to an input.
    """

    functions: tuple[Score, ...]
    members: Array
    rows: Array
    background: Array

    @property
    def covariance(self) -> Array:
        return self.background.T @ self.background / len(self.background)

    def own_effects(self, function: Score, D: Array) -> Array:
        """g_A'd_A + M_AA for each row of D and each input A."""
        S = self.members
        inside = function.Q * (S @ S.T)
        return np.asarray((D * (function.g + D @ inside)) @ S)

    def products(self, function: Score, D: Array) -> Array:
        """M_AB for each row of D and all inputs."""
        if self.members.shape[0] == self.members.shape[1]:
            return np.asarray(D[:, :, None] * function.Q * D[:, None, :])
        parts = D[:, :, None] * self.members
        return np.asarray(parts.transpose(0, 2, 1) @ function.Q @ parts)

    def mean_products(self, function: Score) -> Array:
        """K_AB of all inputs."""
        return np.asarray(self.members.T @ (function.Q * self.covariance) @ self.members)


@dataclass(frozen=True)
class Sobol:
    """Sobol indices of a score: the shares of its variance if the inputs are independent.

    Parameters
    ----------
    names : list of str
        The inputs.
    first : array of shape (n,)
        The share of the variance from each input alone.
    total : array of shape (n,)
        The share from each input alone and together with others. The sum may exceed 1.
    pairs : array of shape (n, n)
        The share from each pair of inputs beyond their own shares; zero on the diagonal. A score
        of degree two has no interactions of more than two inputs, so `first` and half of the sum
        of `pairs` add up to 1.
    variance : float
        The variance of the score for independent inputs.
    """

    names: list[str]
    first: Array
    total: Array
    pairs: Array
    variance: float


@dataclass(frozen=True)
class FriedmanH:
    """Friedman's H of a score: how much of its variation comes from interactions.

    Parameters
    ----------
    names : list of str
        The inputs.
    pairs : array of shape (n, n)
        H of each pair of inputs: the root of the share of the variance of their joint partial
        dependence that is not the sum of two functions; zero on the diagonal.
    total : array of shape (n,)
        H of each input with all others together.
    """

    names: list[str]
    pairs: Array
    total: Array


@dataclass(frozen=True)
class Attributions:
    """The result of `attribute`: for each row, what each input contributes to the score.

    Parameters
    ----------
    values : array of shape (n_samples, n_inputs) or (n_samples, n_inputs, n_scores)
        The Shapley values. Those of a row add up to its score minus the base value.
    base_values : float or array of shape (n_scores,)
        The mean score of the background.
    data : array of shape (n_samples, n_inputs)
        The values of the inputs.
    names : list of str
        The names of the inputs. The columns of a one-hot encoding are one input.
    scores : list of str
        The name of each score.
    note : str
        What the scores are.
    game : Game
        What the methods compute from.
    """

    values: Array
    base_values: Any
    data: Array
    names: list[str]
    scores: list[str]
    note: str
    game: Game

    def __len__(self) -> int:
        return len(self.values)

    def of(self, score: int = 0) -> tuple[Array, float]:
        """Return the values of one score and its base value.

        Parameters
        ----------
        score : int
            The index of the score.

        Returns
        -------
        values : array of shape (n_samples, n_inputs)
            The Shapley values.
        base_value : float
            The mean score of the background.
        """
        k = self._index(score)
        if self.values.ndim == 2:
            return self.values, float(self.base_values)
        return self.values[:, :, k], float(self.base_values[k])

    def _index(self, score: int) -> int:
        count = len(self.scores)
        if check_integer("score", score, at_least=0) >= count:
            raise ValueError(f"score must be below {count}, the number of scores. Got {score}.")
        return score

    def interactions(self, score: int = 0) -> Array:
        """Compute the Shapley interaction values.

        Parameters
        ----------
        score : int
            The index of the score.

        Returns
        -------
        array of shape (n_samples, n_inputs, n_inputs)
            The interaction value of two inputs is divided equally between the two entries (A, B)
            and (B, A), as in `shap`. The diagonal contains the rest of the Shapley values, so that
            each row of a matrix adds up to one of them.
        """
        k, p = self._index(score), len(self.names)
        what = f"{len(self):,} matrices of {p:,} inputs"
        check_limit(16 * len(self) * p * p, what, "Pass fewer rows.")
        function = self.game.functions[k]
        found = self.game.products(function, self.game.rows) + self.game.mean_products(function)
        diagonal = np.arange(p)
        found[:, diagonal, diagonal] = 0.0
        found[:, diagonal, diagonal] = self.of(k)[0] - found.sum(axis=2)
        return found

    def sobol(self, score: int = 0) -> Sobol:
        """Compute Sobol indices from the moments of the background, up to the fourth ones.

        Parameters
        ----------
        score : int
            The index of the score.

        Returns
        -------
        Sobol
            First-order and total indices, and those of pairs. They assume that the inputs are
            independent and each distributed as in the background; correlations are ignored.
        """
        function, S = self.game.functions[self._index(score)], self.game.members
        own = self.game.own_effects(function, self.game.background).var(axis=0)
        C, p = self.game.covariance, len(self.names)
        pairs = np.zeros((p, p))
        groups = [np.flatnonzero(column) for column in S.T]
        for a, A in enumerate(groups):
            for b, B in enumerate(groups[:a]):
                Q = function.Q[np.ix_(A, B)]
                pairs[a, b] = 4 * np.sum((C[np.ix_(A, A)] @ Q) * (Q @ C[np.ix_(B, B)]))
        pairs += pairs.T
        variance = float(own.sum() + pairs.sum() / 2)
        unit = variance if variance > 0 else 1.0
        total = (own + pairs.sum(axis=1)) / unit
        return Sobol(self.names, own / unit, total, pairs / unit, variance)

    def friedman_h(self, score: int = 0) -> FriedmanH:
        """Compute Friedman's H statistic of every pair of inputs over the background.

        Parameters
        ----------
        score : int
            The index of the score.

        Returns
        -------
        FriedmanH
            H of the pairs, and of each input with all others. The partial dependences are those
            over the background, with its correlations, for all of its rows.
        """
        function, D = self.game.functions[self._index(score)], self.game.background
        own = self.game.own_effects(function, D)
        own -= own.mean(axis=0)
        p, K = len(self.names), self.game.mean_products(function)
        across, joint, total = np.zeros((p, p)), np.zeros((p, p)), np.zeros(p)
        whole = 0.0
        for rows in _blocks(len(D), p * p):
            pairs = 2 * (self.game.products(function, D[rows]) - K)
            diagonal = np.arange(p)
            pairs[:, diagonal, diagonal] = 0.0
            across += (pairs**2).sum(axis=0)
            joint += ((own[rows, :, None] + own[rows, None, :] + pairs) ** 2).sum(axis=0)
            total += (pairs.sum(axis=2) ** 2).sum(axis=0)
            whole += float(((own[rows].sum(axis=1) + pairs.sum(axis=(1, 2)) / 2) ** 2).sum())
        H = np.sqrt(np.divide(across, joint, out=np.zeros_like(across), where=joint > 0))
        np.fill_diagonal(H, 0.0)
        return FriedmanH(self.names, H, np.sqrt(total / whole) if whole > 0 else total)

    def to_shap(self) -> Any:
        """Convert to a `shap.Explanation`, which the functions of `shap.plots` draw.

        Returns
        -------
        shap.Explanation
            The same values. With several scores, select one: ``found.to_shap()[:, :, 0]``.
        """
        try:
            import shap  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_shap needs shap: pip install shap") from None
        base = np.broadcast_to(self.base_values, (len(self), *self.values.shape[2:]))
        return shap.Explanation(
            values=self.values,
            base_values=np.array(base),
            data=self.data,
            feature_names=self.names,
            output_names=self.scores if self.values.ndim == 3 else None,
        )

    def table(self, row: int, score: int = 0) -> list[list[str]]:
        """Write the contributions of one row, the largest first.

        Parameters
        ----------
        row, score : int
            The indices of the row and of the score.

        Returns
        -------
        list of list of str
            The input, its value and its contribution. The first line is the mean score, and the
            last one is the score of the row.
        """
        values, base = self.of(score)
        one = values[row]
        lines = [
            [self.names[i], written(_plain(self.data[row][i])), _signed(one[i])]
            for i in np.argsort(-np.abs(one), kind="stable")
        ]
        total = [self.scores[score], "", rounded(base + float(one.sum()))]
        return [["mean of the background", "", rounded(base)], *lines, total]

    def text(self) -> str:
        """Describe the mean absolute contribution of each input, the largest first.

        Returns
        -------
        str
            A table with a column for each score.
        """
        sizes = np.stack([np.abs(self.of(k)[0]).mean(axis=0) for k in range(len(self.scores))])
        order = np.argsort(-sizes.sum(axis=0), kind="stable")
        width = max(len("input"), *(len(visible(self.names[i])) for i in order[:MOST_LISTED]))
        columns = [visible(label) for label in self.scores]
        header = "  ".join(f"{label:>10}" for label in columns)
        lines = [
            f"Exact Shapley values of {counted(len(self), 'row')}; {self.note}",
            f"{'input':<{width}}  {header}  (mean absolute contributions)",
        ]
        for i in order[:MOST_LISTED]:
            cells = "  ".join(
                f"{rounded(size):>{max(10, len(label))}}"
                for size, label in zip(sizes[:, i], columns, strict=True)
            )
            lines.append(f"{visible(self.names[i]):<{width}}  {cells}")
        if len(order) > MOST_LISTED:
            lines.append(f"({counted(len(order) - MOST_LISTED, 'smaller input')})")
        return "\n".join(lines)

    __str__ = __repr__ = text


def attribute(
    model: Any, X: Any, background: Any = None, *, between: Any = None, target: str = "y"
) -> Attributions:
    """Compute the exact Shapley values of the scores of a model, in closed form.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    X : array or table of shape (n_samples, n_features)
        The rows to explain, in the form that the model accepts.
    background : array or table of shape (n_background, n_features), optional
        The data from which absent inputs are drawn, by default X. All of its rows are used.
    between : pair of class labels, optional
        Explain the score of the first class minus that of the second one.
    target : str
        The name of the number that a regressor predicts.

    Returns
    -------
    Attributions
        The values, with methods for interactions, tables, Sobol indices, Friedman's H and `shap`.

    Notes
    -----
    The values are interventional: an absent input takes the values of the background, whatever the
    other inputs are. The score is the log-odds of the second of two classes, the number that a
    regressor predicts (its logarithm for counts) or, with more classes, the score of each class
    minus the mean score, because the scores of a softmax are defined up to a common term. The
    columns of a one-hot encoding count as one input. If a step computes a feature from several
    columns and is not affine, the inputs are its features.

    Only the mean and the covariance of the background enter, so the time does not depend on its
    number of rows, once they are computed.

    Examples
    --------
    >>> from quadric.core import Quadratic
    >>> product = Quadratic(W=[[0.0, 0.0]], b=[0.0], Q=[[[0.0, 0.5], [0.5, 0.0]]])  # x1 x2
    >>> found = attribute(product, [[2.0, 3.0]], background=[[0.0, 0.0], [2.0, 2.0]])
    >>> found.values.tolist(), found.base_values, found.interactions()[0].tolist()
    ([[1.5, 2.5]], 2.0, [[0.0, 1.5], [1.5, 1.0]])
    """
    selected = one_layer_of(model, INSTEAD)
    named = named_scores(selected, between, target)
    points = points_of(selected, X)
    others = points if background is None else points_of(selected, background, "background")
    mean = others.mean(axis=0)
    rows, background_rows = points - mean, others - mean
    covariance = background_rows.T @ background_rows / len(others)
    functions = tuple(_centered_scores(selected, named.weights, mean, covariance))
    inputs = list(dict.fromkeys(selected.space.groups))
    members = np.array([[group == name for name in inputs] for group in selected.space.groups])
    S = members.astype(float)
    check_limit(
        24 * len(rows) * (S.shape[0] + len(inputs) * len(functions)),
        f"the attributions of {len(rows):,} rows to {len(inputs):,} inputs",
        "Pass fewer rows.",
    )
    values = np.stack(
        [
            (rows * (one.g + rows @ one.Q) - (one.Q * covariance).sum(axis=1)) @ S
            for one in functions
        ],
        axis=2,
    )
    bases = np.array([one.mean for one in functions])
    single = len(functions) == 1
    return Attributions(
        values[:, :, 0] if single else values,
        float(bases[0]) if single else bases,
        _data_of(selected, X, points, inputs),
        inputs,
        named.labels,
        named.meaning[0].lower() + named.meaning[1:],
        Game(functions, S, rows, background_rows),
    )


def _centered_scores(
    selected: ExplainedLayer, weights: Array, mean: Array, covariance: Array
) -> Iterator[Score]:
    """The scores as functions of the deviation from the mean."""
    change, (Q, W, b) = map_to_layer(selected), selected.functions
    u = change.apply(mean)
    for row in weights:
        Q_k, w, constant = np.tensordot(row, Q, 1), row @ W, float(row @ b)
        inside = change.pull_back(change.pull_back(Q_k).T)
        inside = (inside + inside.T) / 2
        c = float(u @ Q_k @ u + w @ u + constant)
        slope = change.pull_back(2 * (Q_k @ u) + w)
        yield Score(c, slope, inside, c + float((inside * covariance).sum()))


def _data_of(selected: ExplainedLayer, X: Any, points: Array, inputs: list[str]) -> Array:
    """The values of the inputs in the user's data, or in the coordinates."""
    groups, view = selected.space.groups, selected.view
    coordinates = {name: k for k, name in enumerate(groups) if groups.count(name) == 1}
    if selected.space.kind == "inputs":
        return points[:, [coordinates[name] for name in inputs]]
    columns = InputData.of(view.model, X)
    found = np.empty((len(points), len(inputs)), dtype=object)
    for place, name in enumerate(inputs):
        if name in columns.names:
            found[:, place] = columns.values(columns.names.index(name))
        else:
            found[:, place] = points[:, coordinates[name]]
    return found


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Blocks of rows with about a million numbers."""
    step = max(1, 10**6 // size)
    return (slice(start, start + step) for start in range(0, count, step))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{rounded(abs(value))}"
