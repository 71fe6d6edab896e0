"""Reproduce the published bilinear MLPs: train the variants, measure and compare them."""

from collections.abc import Mapping
from typing import Any

from quadric.apps.paper.bilinear._cells import cells_of
from quadric.apps.paper.bilinear._figures import (
    certified_figure,
    eigenvector_figure,
    truncation_figure,
)
from quadric.apps.paper.bilinear._findings import findings
from quadric.apps.paper.bilinear._measures import measure, names
from quadric.apps.paper.bilinear._models import saved_network, saver
from quadric.apps.paper.bilinear._published import (
    CITATION,
    DECAY,
    NAMES,
    NOISE,
    TRAINING,
    VARIANTS,
    WIDTH,
)
from quadric.apps.paper.bilinear._tables import comparison_table, radii_table, truncation_table
from quadric.apps.paper.experiments._experiment import Context, Outcome
from quadric.apps.paper.studies._runs import (
    Part,
    estimated_seconds,
    facts_of,
    run_parts,
    seeds_of,
)
from quadric.apps.paper.sweep import Study, StudyTask
from quadric.apps.paper.sweep._study import Measured
from quadric.datasets import ImageData
from quadric.network import Network
from quadric.utils import require

SEEDS = (1, 5)  # quick, full
RANKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
DISTANCES = tuple(round(0.1 * step, 1) for step in range(41))
SHOWN = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the distances, in the table
SETTINGS: dict[str, Any] = {
    **TRAINING,
    "noise": NOISE,
    "decay": DECAY,
    "ranks": list(RANKS),
    "distances": list(DISTANCES),
    "certified": 2000,
}
SECONDS_PER_IMAGE = 3.2e-5  # of training, on one core
SECONDS_TO_MEASURE = 40


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train a network, measure it and return it."""
    from quadric.apps.paper.bilinear._training import train_network

    assert data is not None
    with_noise, with_decay = VARIANTS[task.kind]
    network, visited = train_network(
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


def parts_for(context: Context) -> list[Part]:
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


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    return estimated_seconds(context, parts_for(context))


def run(context: Context) -> Outcome:
    """Train and measure the networks that are not in the store, and compare the variants."""
    require("torch", extra="torch", by="The experiment bilinear")
    parts = parts_for(context)
    runs = run_parts(context, parts)
    cells = cells_of(parts, runs)
    shown = [distance for distance in SHOWN if distance in SETTINGS["distances"]]
    figures = {
        "bilinear_truncation": truncation_figure(cells, SETTINGS["ranks"]),
        "bilinear_certified": certified_figure(cells, SETTINGS["distances"]),
    }
    captions = {
        "bilinear_truncation": "Test accuracy if each class keeps only the eigenvectors whose "
        "eigenvalues are largest in magnitude.",
        "bilinear_certified": "Share of test images that are classified correctly and whose class "
        "provably cannot change within the radius.",
    }
    for part in parts:
        assert part.data is not None
        networks = _networks(context, part)
        if networks:
            name = f"bilinear_eigenvectors_{part.data.name}"
            figures[name] = eigenvector_figure(networks, part.data)
            captions[name] = (
                f"{NAMES.get(part.data.name, part.data.name)}, seed {context.first_seed}: the "
                "eigenvector with the largest eigenvalue of each class. An image that resembles "
                "it, or its negative, raises the score of the class."
            )
    return Outcome(
        "bilinear",
        "Bilinear MLPs",
        _summary(context),
        [
            comparison_table(cells),
            truncation_table(cells, SETTINGS["ranks"]),
            radii_table(cells, shown, SETTINGS["certified"]),
        ],
        figures=figures,
        captions=captions,
        facts=facts_of(runs) | {"data": ", ".join(part.group[0] for part in parts)},
        findings=findings(cells, SETTINGS["ranks"]),
        citation=CITATION,
    )


def _networks(context: Context, part: Part) -> dict[str, Network]:
    """Return the networks of the first seed whose files exist, by variant."""
    assert context.store is not None
    assert part.data is not None
    networks = {
        task.kind: saved_network(context.store, part.study, part.data, task)
        for task in part.tasks
        if task.seed == context.first_seed
    }
    return {variant: network for variant, network in networks.items() if network is not None}


def _summary(context: Context) -> str:
    assert context.images is not None
    pixels = context.images.X_train.shape[1]
    substitute = (
        "" if context.images.name == "mnist" else "This is not MNIST, so nothing is compared. "
    )
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
