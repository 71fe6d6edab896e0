"""The published figures, and the settings that lead to them.

The architecture and the training are those of M. Pearce et al., "Bilinear MLPs enable weight-based
mechanistic interpretability" (arXiv 2410.08417): its Table 1, and its public code where the table
is not specific. The accuracies and effective ranks come from a public reproduction of its section
4, as means of five seeds. docs/reproduce.md explains how the strengths were chosen.
"""

from dataclasses import dataclass

CITATION = (
    "M. T. Pearce, T. Dooms, A. Rigg, J. M. Oramas, L. Sharkey: Bilinear MLPs enable weight-based "
    "mechanistic interpretability. ICLR 2025, arXiv 2410.08417. The compared figures are those of "
    "a public reproduction of its section 4, means of five seeds."
)
WIDTH = 256
NOISE = 0.5  # standard deviation of the noise that is added to pixels from 0 to 1
DECAY = 1.0  # AdamW's weight decay
TRAINING = {"rate": 1e-3, "batch": 2048, "epochs": 100}
# Whether noise is added, and whether weights decay.
VARIANTS = {
    "none": (False, False),
    "noise": (True, False),
    "decay": (False, True),
    "both": (True, True),
}
TITLES = {
    "none": "neither",
    "noise": "input noise",
    "decay": "weight decay",
    "both": "noise and decay",
}

NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}


@dataclass(frozen=True)
class Published:
    """The published mean accuracy in percent, its standard deviation and the effective rank."""

    accuracy: float
    std: float | None = None
    rank: float | None = None


PUBLISHED = {
    ("mnist", "none"): Published(97.49, 0.06, 38.5),
    ("mnist", "noise"): Published(98.34, 0.04, 82.2),
    ("mnist", "decay"): Published(97.49, 0.05, 15.5),
    ("mnist", "both"): Published(98.01, 0.04, 26.0),
    ("fashion_mnist", "none"): Published(88.50),
    ("fashion_mnist", "noise"): Published(86.80),
    ("fashion_mnist", "decay"): Published(87.31),
    ("fashion_mnist", "both"): Published(86.04),
}
