"""Explanations of a model: equations, ranked terms, importances, boundaries; as text and HTML."""

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quadric.checks import Array, check_integer, subtract
from quadric.explain._dependence_and_permutation import (
    Dependence,
    InputData,
    PermutationImportance,
    dependence,
    mean_effects,
    permutation_importances,
    scored_rows,
    strongest_pairs,
)
from quadric.explain._explained_layer import (
    ExplainedLayer,
    meaning,
    points_of,
    select_layer,
    tie,
)
from quadric.explain._terms_and_importances import (
    Expansion,
    Importance,
    Moments,
    Term,
    importances,
    importances_of_effects,
)
from quadric.explain._text_and_html import (
    NEED_DATA,
    boundary_lines,
    dependence_lines,
    equation_lines,
    equation_parts,
    equation_table,
    hidden_parts,
    importance_lines,
    importance_table,
    percent,
    permutation_lines,
    selected,
)
from quadric.geometry import Quadric
from quadric.models import input_names_of
from quadric.utils import check_limit, notebook, visible

MAX_PAIRS = 45
# what importances are shares of: with a hidden layer, with data, and without
EFFECTS = (
    "Importances: shares of the mean absolute change of the prediction if an input has its value "
    "in another row."
)
MEAN_EFFECTS = "Importances: shares of the mean absolute effects of the inputs."
VARIANCES = "Importances: shares of the variance."
TERM_BYTES = 700  # of a Term
JSON_BYTES = 2700  # of a term as a dict and as JSON text


@dataclass(frozen=True)
class ClassExplanation:
    """Explanation of one class, or of one output, of a model.

    Parameters
    ----------
    label : object
        The class, the name of the predicted number, or the name of the neuron.
    surface : Quadric
        The score z as a function of the coordinates.
    kind : str
        Kind of the surface z = 0.
    symbol : str
        Left-hand side of the equation.
    constant : float
        Value of z where every coordinate is at its center.
    terms : list of Term
        The strongest terms, in order of decreasing share.
    n_terms : int
        Number of all terms.
    precision : int
        Number of significant digits in the equation.
    """

    label: Any
    surface: Quadric
    kind: str
    symbol: str
    constant: float
    terms: list[Term]
    n_terms: int
    precision: int = 3

    @property
    def equation(self) -> str:
        """The constant and the terms on one line; omitted terms are counted."""
        return f"{self.symbol} = {' '.join(text for text, _ in equation_parts(self, ''))}"

    def table(self) -> list[list[str]]:
        """Write the equation as a list of terms with their shares.

        Returns
        -------
        list of list of str
            The constant and the header of the shares, and a line for each term; omitted terms are
            counted. If selection frequencies are known, they are a third column.
        """
        (constant, _), *terms = equation_parts(self)
        lines = [[f"{self.symbol} = {constant}", "share"]]
        lines += [[text, percent(share).strip()] for text, share in terms]
        if any(term.frequency is not None for term in self.terms):
            often = [
                selected(term.frequency).removeprefix("  selected").strip() for term in self.terms
            ]
            for line, cell in zip(lines, ["selected", *often, ""], strict=False):
                line.append(cell)
        return lines

    @property
    def omitted_share(self) -> float:
        """Share of the terms that are not in `terms`."""
        return 1 - sum(term.share for term in self.terms) if self.n_terms else 0.0

    def eigenvectors(self, count: int) -> tuple[Array, Array]:
        """Compute the eigenvalues of Q with the largest magnitude, and their eigenvectors.

        The score grows in both directions along an eigenvector with a positive eigenvalue.

        Parameters
        ----------
        count : int
            Number of eigenvalues.

        Returns
        -------
        eigenvalues : array of shape (count,)
            The eigenvalues, in order of decreasing magnitude.
        eigenvectors : array of shape (count, n)
            Their eigenvectors, one per row.
        """
        eigenvalues, P = np.linalg.eigh(self.surface.Q)
        order = np.argsort(-np.abs(eigenvalues), kind="stable")[:count]
        return eigenvalues[order], P.T[order]

    def rows(self) -> list[dict[str, Any]]:
        """List the terms as dictionaries of plain numbers and strings; see `Explanation.rows`.

        Returns
        -------
        list of dict
            One dictionary per term.
        """
        found = []
        for term in self.terms:
            i, j = (
                (*term.names, *term.names)[:2] if term.kind != "linear" else (term.names[0], None)
            )
            second = None if j is None else term.centers[-1]
            found.append(
                {
                    "output": _plain(self.label),
                    "kind": term.kind,
                    "input": i,
                    "other_input": j,
                    "center": term.centers[0],
                    "other_center": second,
                    "coefficient": term.coefficient,
                    "unit": f"{self.symbol} per {term}",
                    "effect": term.effect,
                    "share": term.share,
                    "frequency": term.frequency,
                }
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain numbers, strings and lists, ready for JSON.

        Returns
        -------
        dict
            The attributes, except the surface.
        """
        return {
            "label": _plain(self.label),
            "kind": self.kind,
            "equation": self.equation,
            "constant": self.constant,
            "n_terms": self.n_terms,
            "terms": [term.to_dict() for term in self.terms],
        }


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`, which can be printed or used through its attributes.

    Parameters
    ----------
    title, note, score : str
        Descriptions of the model, of the coordinates, and of z and the meaning of its sign.
    space : {'inputs', 'features', 'hidden'}
        The coordinates in which the equations are expressed.
    names : list of str
        Names of the coordinates.
    ranked_by : str
        The data over which variances were computed.
    classes : list of ClassExplanation
        One explanation per class or output.
    boundaries : dict
        The kind of the boundary for each pair of classes.
    n_pairs : int
        Number of pairs of classes, including those omitted from `boundaries`.
    importances : list of Importance
        The importance of each input, the most important first; empty for a hidden layer without
        data.
    importance_note : str
        What the importances are shares of.
    dependences : list of Dependence
        The partial dependence on the `top` most important inputs, for a model with a hidden layer
        if data are given.
    pairs : list of Dependence
        The partial dependence on pairs of the first four of them that interact, the strongest
        first.
    permutation : list of PermutationImportance
        How much the score drops if an input is shuffled, for a model with a hidden layer if data
        and targets are given.
    metric : {'accuracy', 'R²'}
        This score.
    n_rows : int
        The number of rows that were shuffled, at most 10 000.
    shows_kinds : bool
        Whether the surface z = 0 of an output is a boundary of the model.
    """

    title: str
    note: str
    score: str
    space: str
    names: list[str]
    ranked_by: str
    classes: list[ClassExplanation]
    boundaries: dict[tuple[Any, Any], str]
    n_pairs: int = 0
    importances: list[Importance] = field(default_factory=list)
    importance_note: str = ""
    dependences: list[Dependence] = field(default_factory=list)
    pairs: list[Dependence] = field(default_factory=list)
    permutation: list[PermutationImportance] = field(default_factory=list)
    metric: str = ""
    n_rows: int = 0
    shows_kinds: bool = False

    def __getitem__(self, label: Any) -> ClassExplanation:
        return {item.label: item for item in self.classes}[label]

    def rows(self) -> list[dict[str, Any]]:
        """List the terms of all equations, with the same keys in every row, for any data frame.

        A term is coefficient * (input - center), times (other_input - other_center) unless the term
        is linear.

        Returns
        -------
        list of dict
            One dictionary per term with the keys output, kind, input, other_input, center,
            other_center, coefficient, unit, effect, share and frequency; see `Term`. What does not
            apply, or is unknown, is None. `explain(model, top=None)` has all terms.

        Examples
        --------
        >>> from quadric import SparseQuadraticRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = SparseQuadraticRegressor(alpha=0.1).fit(X, 2 * X[:, 0] * X[:, 2])
        >>> [(row["input"], row["other_input"], row["unit"]) for row in explain(model).rows()]
        [('x1', 'x3', 'y per x1·x3')]
        """
        if self.space == "hidden":
            raise ValueError(
                "the model has a hidden layer, so it is not an equation. Train with "
                'hidden_layer_sizes="single", or use `to_dict`.'
            )
        return [row for item in self.classes for row in item.rows()]

    def to_dict(self) -> dict[str, Any]:
        """Convert the explanation to plain numbers, strings, lists and dicts, ready for JSON.

        Returns
        -------
        dict
            The attributes, except the surfaces and the names of the coordinates.
        """
        count = sum(len(item.terms) for item in self.classes)
        check_limit(JSON_BYTES * count, f"JSON of {count:,} terms", "Give a smaller `top`.")
        return {
            "title": self.title,
            "note": self.note,
            "score": self.score,
            "space": self.space,
            "ranked_by": self.ranked_by,
            "importances": [one.to_dict() for one in self.importances],
            "importance_note": self.importance_note,
            "classes": [item.to_dict() for item in self.classes],
            "boundaries": [
                {"classes": [_plain(i), _plain(j)], "kind": kind}
                for (i, j), kind in self.boundaries.items()
            ],
            "omitted_boundaries": self.n_pairs - len(self.boundaries),
            "dependences": [one.to_dict() for one in self.dependences],
            "pairs": [one.to_dict() for one in self.pairs],
            "permutation": [one.to_dict() for one in self.permutation],
            "permutation_metric": self.metric if self.permutation else None,
            "permutation_rows": self.n_rows,
        }

    def __str__(self) -> str:
        lines = [self.title, self.note]
        if self.space == "hidden":
            if not self.importances:
                return "\n".join(map(visible, [*lines, NEED_DATA]))
            lines += [self.importance_note, "", *importance_lines(self)]
            lines += ["", *permutation_lines(self)] if self.permutation else []
            lines += dependence_lines(self)
            return "\n".join(map(visible, lines))
        lines += [
            self.score,
            f"Percentages: shares of the variance, for {self.ranked_by}. All shares add up to "
            "100 %; a negative share means that the term offsets others.",
            self.importance_note,
            "",
            *importance_lines(self),
        ]
        for item in self.classes:
            lines += ["", *equation_lines(item, shows_kind=self.shows_kinds)]
        if self.boundaries:
            lines += ["", *boundary_lines(self)]
        if self.permutation:
            lines += ["", *permutation_lines(self)]
        return "\n".join(map(visible, lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [notebook.paragraph(self.title, strong=True), notebook.paragraph(self.note)]
        if self.space == "hidden":
            return "".join([*parts, *hidden_parts(self)])
        shares = f"Shares of the variance, for {self.ranked_by}. A negative share offsets others."
        parts += [notebook.paragraph(self.score, shares, self.importance_note)]
        parts.append(importance_table(self))
        parts += [equation_table(item, shows_kind=self.shows_kinds) for item in self.classes]
        if self.boundaries:
            parts.append(notebook.paragraph(*boundary_lines(self)))
        return "".join(parts)


def explain(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    target: str = "y",
    layer: int | None = None,
    top: int | None = 10,
    precision: int = 3,
) -> Explanation:
    """Explain what a model has learned: equations, ranked terms and importances.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
        The model.
    X : array of shape (n_samples, n_features), optional
        Data on which to rank the terms, in the form that the model accepts. Without X, the features
        are assumed to be independent and normal, with the means and scales learned by the
        pipeline's scaler.
    y : array of shape (n_samples,), optional
        The targets of X. With a hidden layer, `permutation` is then the drop of the score if an
        input is shuffled; see `permutation_importances`.
    names : sequence of str, optional
        Names of the features. The default is the names that the model was fitted with.
    target : str
        Name of the number that a regressor predicts.
    layer : int, optional
        Index of the layer. The default is the last quadratic or reduced one, or the last one if all
        layers are linear.
    top : int or None
        Number of terms per equation, and of inputs whose partial dependence is computed. None means
        all terms, inputs and pairs of classes.
    precision : int
        Number of significant digits in the equations.

    Returns
    -------
    Explanation
        The explanation, which can be printed.

    Notes
    -----
    Equations are written in d = x - center, where the center is the mean of the data (rounded):
    z = constant + sum s_i d_i + sum q_ii d_i² + sum 2 q_ij d_i d_j. A slope s_i is therefore the
    effect of an input near typical rows, unlike the coefficient of x_i itself. The share of a term
    T is cov(T, z) / var(z). Shares add up to 1, even if inputs are correlated, and the share of a
    term that offsets others is negative. The importance of an input is not: it is the mean absolute
    effect of the input, as a share of those of all inputs; see `Importance`. Within a one-hot
    encoding, x_i² = x_i and x_i x_j = 0, so that it has linear terms only, and its columns count as
    one input.

    With softmax, only differences between classes matter, so the score of a class is its z minus
    the mean z of all classes. Otherwise, the score is the neuron's own z.
    """
    top = None if top is None else check_integer("top", top, at_least=1)
    precision = check_integer("precision", precision, at_least=1)
    selected = select_layer(model, layer, names, or_last=True)
    space, moments = selected.space, _moments(selected, X)
    surfaces, expansions = _expand(selected, moments)
    if top is None:  # `to_dict` may follow, and must not fail after minutes
        count = sum(expansion.n_terms for expansion in expansions)
        check_limit(
            (TERM_BYTES + JSON_BYTES) * count,
            f"a list of {count:,} terms and its JSON",
            "Give a number as `top`.",
        )
    items = [
        ClassExplanation(
            label=label,
            surface=surface,
            kind=surface.kind,
            symbol=symbol,
            constant=float(expansion.constant),
            terms=expansion.terms(space.names, top, space.frequencies),
            n_terms=expansion.n_terms,
            precision=precision,
        )
        for (label, symbol), surface, expansion in zip(
            selected.outputs(target), surfaces, expansions, strict=True
        )
    ]
    hidden = space.kind == "hidden"
    by_predictions = hidden and X is not None and hasattr(model, "predict")
    found = _by_predictions(model, X, y, target, top) if by_predictions else {}
    if not hidden:
        found["importances"] = importances(expansions, space.groups)
        found["importance_note"] = VARIANCES if moments.deviations is None else MEAN_EFFECTS
    boundaries, n_pairs = _boundaries(selected, None if top is None else MAX_PAIRS)
    return Explanation(
        title=_title(selected),
        note=space.note(),
        score=meaning(selected, target),
        space=space.kind,
        names=space.names,
        ranked_by=moments.origin,
        classes=items,
        boundaries=boundaries,
        n_pairs=n_pairs,
        shows_kinds=selected.activation == "logistic" and not space.encodings.any(),
        metric="accuracy" if selected.view.chooses_a_class else "R²",
        **found,
    )


def _expand(selected: ExplainedLayer, moments: Moments) -> tuple[list[Quadric], list[Expansion]]:
    """The score of each output as a surface and as an expansion about the mean of the data."""
    Q, W, b = selected.functions
    if selected.activation == "softmax":
        Q, W, b = (subtract(part, part.mean(axis=0)) for part in (Q, W, b))
    surfaces, encodings = selected.surfaces(Q, W, b), selected.space.encodings
    with np.errstate(all="ignore"):
        # the binary exponent of the largest coefficient of an input
        exponent = int(np.frexp(max(np.abs([one.w, *one.Q]).max() for one in surfaces))[1])
        return surfaces, [Expansion.of(one, moments, encodings, exponent) for one in surfaces]


def rank_inputs(model: Any, X: Any) -> list[Importance]:
    """The importances of the columns of X for any model, without the rest of an explanation."""
    with suppress(TypeError, ValueError):  # not a model of quadric, or rows with missing values
        selected = select_layer(model, or_last=True)
        if selected.space.kind != "hidden":
            _, expansions = _expand(selected, _moments(selected, X))
            found = importances(expansions, selected.space.groups)
            if {one.name for one in found} == set(InputData(X, input_names_of(model)).names):
                return found
    return importances_of_effects(mean_effects(model, X))


def _by_predictions(model: Any, X: Any, y: Any, target: str, top: int | None) -> dict[str, Any]:
    """How the predictions depend on the inputs, which needs no equation."""
    ranked = importances_of_effects(mean_effects(model, X))
    names = [one.name for one in ranked]
    pairs = [pair.inputs for pair in strongest_pairs(model, X, names, target=target)]
    found: dict[str, Any] = {
        "importances": ranked,
        "importance_note": EFFECTS,
        "dependences": [
            dependence(model, X, [name], size=5, target=target) for name in names[:top]
        ],
        "pairs": [dependence(model, X, pair, size=5, target=target) for pair in pairs],
    }
    if y is not None:
        some = scored_rows(model, X, y)
        found |= {"permutation": permutation_importances(model, *some), "n_rows": len(some[1])}
    return found


def _title(selected: ExplainedLayer) -> str:
    count, kind, space = selected.layer.n_outputs, selected.layer.kind, selected.space
    neurons = "neuron" if count == 1 else "neurons"
    over = "hidden features" if space.kind == "hidden" else space.kind
    return f"{selected.view.name}: {count} {kind} {neurons} over {len(space.names)} {over}."


def _moments(selected: ExplainedLayer, X: Any) -> Moments:
    space, n = selected.space, len(selected.space.names)
    if X is None:
        mean, std = space.typical or (np.zeros(n), np.ones(n))
        categories = " and equally frequent categories" if space.encodings.any() else ""
        learned = f"the means and scales learned in training{categories}"
        scales = learned if space.typical else "mean 0 and variance 1"
        return Moments.assumed(
            mean,
            std,
            f"independent normal features with {scales} (give data to rank on data)",
            space.center,
        )
    return Moments.of(points_of(selected, X), space.center)


def _boundaries(
    selected: ExplainedLayer, most: int | None
) -> tuple[dict[tuple[Any, Any], str], int]:
    """The kinds of the boundaries of at most `most` pairs of classes, and the number of pairs."""
    if not (selected.is_last and selected.view.chooses_a_class) or selected.layer.n_outputs < 2:
        return {}, 0
    labels = selected.labels
    pairs = itertools.islice(itertools.combinations(range(len(labels)), 2), most)
    found = {(labels[i], labels[j]): tie(selected, i, j).kind for i, j in pairs}
    return found, math.comb(len(labels), 2)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
