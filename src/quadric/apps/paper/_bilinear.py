"""Reproduce published bilinear MLPs: train the variants, measure and compare them.

The networks fold to one quadratic layer. The architecture and the training are those of M. Pearce
et al., "Bilinear MLPs enable weight-based mechanistic interpretability" (arXiv 2410.08417): its
Table 1, and its public code where the table is not specific. The accuracies and effective ranks
come from a public reproduction of its section 4, as means of five seeds. docs/reproduce.md explains
how the strengths were chosen.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import Linear, Network, Reduced, load, save
from quadric.apps.paper._bilinear_report import (
    NAMES,
    VARIANTS,
    cells_of,
    certified_figure,
    comparison_table,
    eigenvector_figure,
    findings,
    names,
    radii_table,
    truncation_figure,
    truncation_table,
)
from quadric.apps.paper._comparison import Compared, Part, Results, seeds_of
from quadric.apps.paper._experiment import Context, Table
from quadric.apps.paper.sweep import Measured, Store, Study, StudyTask
from quadric.certify import radius
from quadric.checks import Array
from quadric.convert import fold, fold_bilinear, truncation_scores
from quadric.datasets import ImageData
from quadric.explain import spectrum

CITATION = (
    "M. T. Pearce, T. Dooms, A. Rigg, J. M. Oramas, L. Sharkey: Bilinear MLPs enable weight-based "
    "mechanistic interpretability. ICLR 2025, arXiv 2410.08417. The compared figures are those of "
    "a public reproduction of its section 4, means of five seeds."
)
WIDTH = 256
SEEDS = (1, 5)  # quick, full
SHOWN = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the distances, in the table
SETTINGS: dict[str, Any] = {
    "rate": 1e-3,
    "batch": 2048,
    "epochs": 100,
    "noise": 0.5,  # standard deviation of the noise that is added to pixels from 0 to 1
    "decay": 1.0,  # AdamW's weight decay
    "ranks": [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100],
    "distances": [round(0.1 * step, 1) for step in range(41)],
    "certified": 2000,
}
SECONDS_PER_IMAGE = 3.2e-5  # of training, on one core
SECONDS_TO_MEASURE = 40


def measure(
    network: Network,
    data: ImageData,
    ranks: Sequence[int],
    distances: Sequence[float],
    n_certified: int,
) -> tuple[float, ...]:
    """Measure accuracy, effective ranks, truncated accuracies and certified radii.

    Radii are computed for `n_certified` test images, evenly spread over the test set, because the
    first half of MNIST's test set is easier than the second.
    """
    X, y = data.X_test / data.largest, data.y_test
    folded = fold(network)
    accuracy = float((folded.logits(X).argmax(axis=1) == y).mean())
    width = network.layers[0].n_outputs
    # a rank above the number of pixels keeps all eigenvectors
    kept = [min(rank, X.shape[1]) for rank in ranks]
    # the publication truncates the matrices as they are
    scores = truncation_scores(folded, X, y, kept, centered=False)
    by_rank = dict(zip(*scores, strict=True))
    rows = np.linspace(0, len(X) - 1, min(n_certified, len(X))).astype(int)
    radii = radius(folded, X[rows])
    right = radii.predicted == y[rows]
    hidden, pixels = spectrum(_without_embedding(network)), spectrum(folded, centered=False)
    return (
        accuracy,
        float(hidden.effective_rank.mean()) / width,
        float(pixels.effective_rank.mean()) / width,
        *(float(by_rank[rank]) for rank in kept),
        median_radius(radii.radius[right], X.shape[1]),
        *(float((right & (radii.radius > distance)).mean()) for distance in distances),
    )


def median_radius(radii: Array, n_pixels: int) -> float:
    """Return the median radius as a share of the distance between a black and a white image."""
    longest = np.sqrt(n_pixels)
    return float(min(np.median(radii), longest) / longest) if len(radii) else 0.0


def _without_embedding(network: Network) -> object:
    """Return the quadratic layer in the coordinates of the hidden layer, as in the publication."""
    _, product, head = network.layers
    assert isinstance(product, Reduced)
    assert isinstance(head, Linear)
    return fold_bilinear(product.W, product.U, head.W)


def path_of(store: Store, study: Study, data: ImageData, task: StudyTask) -> Path:
    """Return the file of a run, whose name depends on the settings and the data.

    It ends with the first eight digits of a SHA-256 digest of both.
    """
    key = hashlib.sha256(f"{study.key()} {data.checksum} {task.size} {task.hidden}".encode())
    name = f"{data.name}-{task.kind}-seed-{task.seed}-{key.hexdigest()[:8]}.quadric"
    return store.path.parent / "bilinear" / name


def saver(store: Store, study: Study, data: ImageData) -> Callable[[StudyTask, Network], None]:
    """Return a function that writes the network of a run to its file."""

    def save_network(task: StudyTask, network: Network) -> None:
        path = path_of(store, study, data, task)
        path.parent.mkdir(exist_ok=True)
        save(network, path)

    return save_network


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train a network, measure it and return it."""
    from quadric.apps.paper._torch_networks import train_bilinear

    assert data is not None
    with_noise, with_decay = VARIANTS[task.kind]
    network, visited = train_bilinear(
        task,
        settings,
        data,
        noise=settings["noise"] if with_noise else 0.0,
        decay=settings["decay"] if with_decay else 0.0,
    )
    measured = measure(
        network, data, settings["ranks"], settings["distances"], settings["certified"]
    )
    return measured, visited, network


def study() -> Study:
    """Return the study with the present settings."""
    measures = names(SETTINGS["ranks"], SETTINGS["distances"])
    return Study("bilinear", measures, train, dict(SETTINGS))


def parts(context: Context) -> list[Part]:
    """Return the runs of each data set; Fashion-MNIST is left out if it is not available."""
    parts = []
    for data in (context.images, context.fashion):
        if data is None:
            continue
        size = len(data.X_train)
        seconds = size * SETTINGS["epochs"] * SECONDS_PER_IMAGE + SECONDS_TO_MEASURE
        tasks = [
            StudyTask(size, WIDTH, variant, seed, seconds)
            for seed in seeds_of(context, SEEDS[context.full])
            for variant in VARIANTS
        ]
        keep = None if context.store is None else saver(context.store, study(), data)
        parts.append(Part(study(), tasks, data, (data.name,), keep))
    return parts


def summary(context: Context) -> str:
    """Return the method and the data."""
    pixels = context.data.X_train.shape[1]
    other_data = context.data.name != "mnist"
    substitute = "This is not MNIST, so nothing is compared. " if other_data else ""
    missing = "" if context.fashion else " Fashion-MNIST is left out."
    return (
        f"{substitute}Networks with {pixels} inputs, {WIDTH} linear neurons, {WIDTH} products of "
        "two linear neurons and 10 outputs, without biases, which fold to one quadratic layer. "
        f"They are trained by AdamW for {SETTINGS['epochs']} epochs (learning rate "
        f"{SETTINGS['rate']:g} with a cosine schedule, {SETTINGS['batch']} images per step). "
        f"Input noise: Gaussian with standard deviation {SETTINGS['noise']:g}, added to pixels "
        f"from 0 to 1 in every step. Weight decay: {SETTINGS['decay']:g}. The compared figures are "
        f"published without these strengths, which are those of the original's Table 1.{missing}"
    )


def tables(results: Results) -> list[Table]:
    """Return the comparison with the published figures, truncated accuracies and radii."""
    shown = [distance for distance in SHOWN if distance in SETTINGS["distances"]]
    return [
        comparison_table(results.cells),
        truncation_table(results.cells, SETTINGS["ranks"]),
        radii_table(results.cells, shown, SETTINGS["certified"]),
    ]


def figures(results: Results) -> dict[str, tuple[Figure, str]]:
    """Draw accuracies by rank and radius, and the eigenvectors of the networks of the first seed.

    Networks whose files do not exist are left out.
    """
    cells, seed = results.cells, results.context.first_seed
    drawn = {
        "bilinear_truncation": (
            truncation_figure(cells, SETTINGS["ranks"]),
            "Test accuracy if each class keeps only the eigenvectors whose eigenvalues are largest "
            "in magnitude.",
        ),
        "bilinear_certified": (
            certified_figure(cells, SETTINGS["distances"]),
            "Share of test images that are classified correctly and whose class provably cannot "
            "change within the radius.",
        ),
    }
    for part in results.parts:
        assert part.data is not None
        assert results.context.store is not None
        networks = {}
        for task in part.tasks:
            path = path_of(results.context.store, part.study, part.data, task)
            if task.seed == seed and path.exists():
                networks[task.kind] = load(path)
        if networks:
            drawn[f"bilinear_eigenvectors_{part.data.name}"] = (
                eigenvector_figure(networks, part.data),
                f"{NAMES.get(part.data.name, part.data.name)}, seed {seed}: the eigenvector with "
                "the largest eigenvalue of each class. An image that resembles it, or its "
                "negative, raises the score of the class.",
            )
    return drawn


STUDY = Compared(
    "bilinear",
    "Bilinear MLPs",
    summary,
    parts,
    tables,
    figures,
    cells=cells_of,
    findings=lambda cells: findings(cells, SETTINGS["ranks"]),
    facts=lambda parts: {"data": ", ".join(part.group[0] for part in parts)},
    citation=CITATION,
    needs_torch="The experiment bilinear",
)
