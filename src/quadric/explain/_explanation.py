"""A model explained: for each class its equation, its kind, and its strongest terms."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, unmasked
from quadric._utils.text import visible
from quadric.explain._boundaries import difference, less, n_classes
from quadric.explain._model import SelectedLayer, select_layer
from quadric.explain._terms import Moments, Term, rank_terms
from quadric.geometry import Quadric

SHOWN_TERMS = 12  # of an equation in the text
MOST_PAIRS = 45


@dataclass(frozen=True)
class ClassExplanation:
    """One class (or one output) of a model.

    Attributes
    ----------
    label
        The class, or the number of the output.
    surface : Quadric
        Its score as a function; the surface is where the score is zero.
    kind, equation : str
    terms : list of Term
        The strongest squared terms and interactions, then the strongest linear ones.
    """

    label: Any
    surface: Quadric
    kind: str
    equation: str
    terms: list[Term]

    def eigenvectors(self, count: int) -> tuple[Array, Array]:
        """The `count` eigenvalues of Q of largest size, and their eigenvectors, one a row.

        Along an eigenvector with a positive eigenvalue the score rises either way.
        """
        eigenvalues, P = np.linalg.eigh(self.surface.Q)
        order = np.argsort(-np.abs(eigenvalues), kind="stable")[:count]
        return eigenvalues[order], P.T[order]


@dataclass(frozen=True)
class Explanation:
    """What `explain` found; print it, or read its parts.

    Attributes
    ----------
    title, note, score : str
        What the model is, which coordinates the equations are in, and what the score is.
    space : {'inputs', 'features', 'hidden'}
    names : list of str
        Of the coordinates.
    ranked_by : str
        What data the terms were ranked on.
    classes : list of ClassExplanation
    boundaries : dict
        The kind of the surface where two classes tie, for each pair of classes.
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
        for item in self.classes:
            if item.label == label:
                return item
        raise KeyError(label)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, for JSON."""
        return {
            "title": self.title,
            "note": self.note,
            "score": self.score,
            "space": self.space,
            "ranked_by": self.ranked_by,
            "classes": [
                {
                    "label": _plain(item.label),
                    "kind": item.kind,
                    "equation": item.equation,
                    "terms": [
                        {
                            "term": str(term), "kind": term.kind, "features": list(term.names),
                            "coefficient": term.coefficient, "effect": term.effect,
                        }
                        for term in item.terms
                    ],
                }
                for item in self.classes
            ],
            "boundaries": [
                {"classes": [_plain(i), _plain(j)], "kind": kind}
                for (i, j), kind in self.boundaries.items()
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [self.title, self.note, self.score]
        lines.append(
            "Effect: the standard deviation of a term about the mean, on " + self.ranked_by + "."
        )
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
    """What a model has learned, in equations and ranked terms.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
    X : array of shape (n_samples, n_features), optional
        Data to rank the terms on, as the model takes it. Without it the features are taken as
        independent, with the means and scales that the pipeline's scaler has learned.
    names : sequence of str, optional
        The features' names; the default is what the model was fitted with.
    layer : int, optional
        Which layer; the default is the last that is quadratic or reduced.
    top : int
        How many terms of each sort to keep.
    precision : int
        Significant digits in the equations.

    Notes
    -----
    With softmax only differences between classes matter: the score of a class is its z less the
    mean of all classes' z. Otherwise it is the neuron's own z.
    """
    top = checks.check_integer("top", top, at_least=1)
    parts = select_layer(model, layer, names)
    last = parts.layer == len(parts.network.layers) - 1
    softmax = last and parts.network.activations[-1] == "softmax"
    Q, W, b = parts.functions()
    score = "The score is the neuron's z; the surface is where it is zero."
    if softmax:
        Q, W, b = (less(part, part.mean(axis=0)) for part in (Q, W, b))
        score = (
            "The score of a class is its z less the mean of all classes' z (softmax sees only "
            "differences); the surface is where it is zero."
        )
    surfaces = [parts.space.restate(Quadric(*neuron)) for neuron in zip(Q, W, b, strict=True)]
    moments, names = _moments(parts, X), parts.space.names
    items = [
        ClassExplanation(
            label, surface, surface.kind,
            surface.equation(names, precision, max_terms=SHOWN_TERMS, sizes=moments.std),
            rank_terms(surface, moments, names, top),
        )
        for label, surface in zip(_labels(parts, len(surfaces), last), surfaces, strict=True)
    ]  # fmt: skip
    return Explanation(
        _title(parts), parts.space.note, score, parts.space.kind, names, moments.origin,
        items, _boundaries(parts) if last else {},
    )  # fmt: skip


def _title(parts: SelectedLayer) -> str:
    layer = parts.network.layers[parts.layer]
    count = "1 neuron" if layer.n_outputs == 1 else f"{layer.n_outputs} neurons"
    over = f"{len(parts.space.names)} " + (
        "hidden features" if parts.space.kind == "hidden" else parts.space.kind
    )
    return f"{parts.name}: {count} of kind {layer.kind} over {over}."


def _moments(parts: SelectedLayer, X: Any) -> Moments:
    if X is not None:
        X = unmasked("X", X)
        try:
            Z = parts.space.reach(X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be data as the model takes it: {error}") from error
        if Z.ndim != 2 or Z.shape[1] != len(parts.space.names) or not len(Z):
            raise ValueError(
                f"X must have shape (n_samples, {len(parts.space.names)}). Got {Z.shape} instead."
            )
        if not np.isfinite(Z).all():
            raise ValueError("X must be finite. Got an infinite or missing entry; drop such rows.")
        return Moments.of(Z)
    if parts.space.typical is not None:
        mean, std = parts.space.typical
        return Moments.assumed(
            np.asarray(mean, dtype=float), np.asarray(std, dtype=float),
            "independent features as the scaler has learned them (pass X to rank on data)",
        )  # fmt: skip
    n = len(parts.space.names)
    return Moments.assumed(
        np.zeros(n), np.ones(n), "features of mean 0 and variance 1 (pass X to rank on data)"
    )


def _labels(parts: SelectedLayer, count: int, last: bool) -> list[Any]:
    classes = None if parts.classes is None else parts.classes.tolist()
    if not last or classes is None:
        return [f"neuron {k}" for k in range(count)]
    return classes if len(classes) == count else classes[1:]


def _boundaries(parts: SelectedLayer) -> dict[tuple[Any, Any], str]:
    exclusive = parts.network.activations[-1] in ("softmax", "logistic") and not parts.multilabel
    if not exclusive or parts.network.n_outputs < 2:
        return {}
    count = n_classes(parts)
    labels = list(range(count)) if parts.classes is None else parts.classes.tolist()
    pairs = itertools.islice(itertools.combinations(range(count), 2), MOST_PAIRS)
    return {
        (labels[i], labels[j]): parts.space.restate(difference(parts, i, j)).kind for i, j in pairs
    }


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
