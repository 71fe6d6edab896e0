"""Explanations of a model: the equation, kind and strongest terms of each class."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, unmasked
from quadric._utils.text import visible
from quadric.explain._model import SelectedLayer, select_layer, subtract, tie
from quadric.explain._terms import Moments, Term, rank_terms
from quadric.geometry import Quadric

MAX_TERMS = 12  # maximum number of terms in a printed equation
MAX_PAIRS = 45


@dataclass(frozen=True)
class ClassExplanation:
    """Explanation of one class, or of one output, of a model.

    Parameters
    ----------
    label : object
        The class, or the name of the neuron.
    surface : Quadric
        The score as a function; the surface is where the score is zero.
    kind, equation : str
        Kind and equation of the surface.
    terms : list of Term
        The strongest squared terms and interactions, then the strongest linear terms.
    """

    label: Any
    surface: Quadric
    kind: str
    equation: str
    terms: list[Term]

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


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`, which can be printed or used through its attributes.

    Parameters
    ----------
    title, note, score : str
        Descriptions of the model, of the coordinates, and of the score.
    space : {'inputs', 'features', 'hidden'}
        The coordinates in which the equations are expressed.
    names : list of str
        Names of the coordinates.
    ranked_by : str
        The data on which the terms were ranked.
    classes : list of ClassExplanation
        One explanation per class or output.
    boundaries : dict
        The kind of the boundary for each pair of classes.
    """

    title: str
    note: str
    score: str
    space: str
    names: list[str]
    ranked_by: str
    classes: list[ClassExplanation]
    boundaries: dict[tuple[Any, Any], str]

    def __getitem__(self, label: Any) -> ClassExplanation:
        return {item.label: item for item in self.classes}[label]

    def to_dict(self) -> dict[str, Any]:
        """Convert the explanation to plain numbers, strings, lists and dicts, ready for JSON.

        Returns
        -------
        dict
            The attributes, except the surfaces and the names of the coordinates.
        """
        texts = {
            key: getattr(self, key) for key in ("title", "note", "score", "space", "ranked_by")
        }
        classes = [
            {
                "label": _plain(item.label),
                "kind": item.kind,
                "equation": item.equation,
                "terms": [term.to_dict() for term in item.terms],
            }
            for item in self.classes
        ]
        boundaries = [
            {"classes": [_plain(i), _plain(j)], "kind": kind}
            for (i, j), kind in self.boundaries.items()
        ]
        return {**texts, "classes": classes, "boundaries": boundaries}

    def __str__(self) -> str:
        effect = "Effect: the standard deviation of a term after centering its features, for "
        lines = [self.title, self.note, self.score, f"{effect}{self.ranked_by}."]
        for item in self.classes:
            lines += ["", f"{item.label}: {item.kind}", f"  {item.equation}"]
            for heading, wanted in (
                ("squared terms and interactions", ("squared", "interaction")),
                ("linear terms", ("linear",)),
            ):
                terms = [term for term in item.terms if term.kind in wanted]
                lines.append(f"  strongest {heading}:")
                width = max((len(str(term)) for term in terms), default=0)
                for term in terms:
                    sign = "-" if term.coefficient < 0 else "+"
                    lines.append(f"    {sign} {term!s:<{width}}  effect {term.effect:.3g}")
        if self.boundaries:
            lines += ["", "Where two classes tie:"]
            lines += [f"  {i} and {j}: {kind}" for (i, j), kind in self.boundaries.items()]
        return "\n".join(map(visible, lines))

    __repr__ = __str__


def explain(
    model: Any,
    X: Any = None,
    *,
    names: Sequence[str] | None = None,
    layer: int | None = None,
    top: int = 5,
    precision: int = 3,
) -> Explanation:
    """Explain what a model has learned with equations and ranked terms.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
        The model.
    X : array of shape (n_samples, n_features), optional
        Data on which to rank the terms, in the form that the model accepts. Without X, the features
        are assumed to be independent, with the means and scales learned by the pipeline's scaler.
    names : sequence of str, optional
        Names of the features. The default is the names that the model was fitted with.
    layer : int, optional
        Index of the layer. The default is the last quadratic or reduced one.
    top : int
        Number of terms of each type to keep.
    precision : int
        Number of significant digits in the equations.

    Returns
    -------
    Explanation
        The explanation, which can be printed.

    Notes
    -----
    With softmax, only differences between classes matter, so the score of a class is its z minus
    the mean z of all classes. Otherwise, the score is the neuron's own z.
    """
    top = checks.check_integer("top", top, at_least=1)
    selected = select_layer(model, layer, names)
    Q, W, b = selected.functions()
    score = "The score is the neuron's z; the surface is where it is zero."
    if selected.is_last and selected.network.activations[-1] == "softmax":
        Q, W, b = (subtract(part, part.mean(axis=0)) for part in (Q, W, b))
        score = (
            "The score of a class is its z minus the mean z of all classes (softmax depends only "
            "on differences); the surface is where it is zero."
        )
    space, moments = selected.space, _moments(selected, X)
    items = [
        ClassExplanation(
            label=label,
            surface=surface,
            kind=surface.kind,
            equation=surface.equation(
                space.names, precision, max_terms=MAX_TERMS, sizes=moments.std
            ),
            terms=rank_terms(surface, moments, space.names, top),
        )
        for label, surface in zip(
            _output_labels(selected, len(b)), selected.surfaces(Q, W, b), strict=True
        )
    ]
    return Explanation(
        title=_title(selected),
        note=space.note,
        score=score,
        space=space.kind,
        names=space.names,
        ranked_by=moments.origin,
        classes=items,
        boundaries=_boundaries(selected),
    )


def _title(selected: SelectedLayer) -> str:
    layer, space = selected.network.layers[selected.layer], selected.space
    neurons = "neuron" if layer.n_outputs == 1 else "neurons"
    over = "hidden features" if space.kind == "hidden" else space.kind
    return (
        f"{selected.name}: {layer.n_outputs} {layer.kind} {neurons} over {len(space.names)} {over}."
    )


def _moments(selected: SelectedLayer, X: Any) -> Moments:
    space, n = selected.space, len(selected.space.names)
    if X is None:
        mean, std = space.typical or (np.zeros(n), np.ones(n))
        learned = "independent features with the means and scales learned by the scaler"
        origin = learned if space.typical else "features with mean 0 and variance 1"
        return Moments.assumed(mean, std, f"{origin} (pass X to rank on data)")
    X = unmasked("X", X)
    try:
        Z = space.reach(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be data that the model accepts: {error}") from error
    if Z.ndim != 2 or Z.shape[1] != n or not len(Z):
        raise ValueError(f"X must have shape (n_samples, {n}). Got {Z.shape} instead.")
    if not np.isfinite(Z).all():
        raise ValueError(
            "X must be finite. Got an infinite or missing entry; drop the rows that contain one."
        )
    return Moments.of(Z)


def _output_labels(selected: SelectedLayer, count: int) -> list[Any]:
    are_classes = selected.is_last and selected.classes is not None
    # a single output is the score of the second class
    return selected.labels[-count:] if are_classes else [f"neuron {k}" for k in range(count)]


def _boundaries(selected: SelectedLayer) -> dict[tuple[Any, Any], str]:
    if not selected.is_last or not selected.chooses_a_class or selected.network.n_outputs < 2:
        return {}
    pairs = itertools.islice(itertools.combinations(range(len(selected.labels)), 2), MAX_PAIRS)
    return {(selected.labels[i], selected.labels[j]): tie(selected, i, j).kind for i, j in pairs}


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
