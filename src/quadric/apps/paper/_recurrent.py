"""Study: whether quadratic neurons help in recurrent networks.

`QuadraticRNN` is compared with `torch.nn.RNN` and `torch.nn.GRU` with as many parameters on three
tasks: the sum of two marked numbers, digits read row by row, and the parity of a sequence.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from quadric.apps.paper._claims import Claim, Verdict
from quadric.apps.paper._comparison import (
    RULE,
    Compared,
    Part,
    Results,
    Samples,
    Tests,
    are_enough,
    comparisons_table,
    differences,
    samples,
    samples_table,
    seeds_of,
    sign_text,
)
from quadric.apps.paper._experiment import Context, Table, legend_below, new_figure
from quadric.apps.paper._statistics import Comparison
from quadric.apps.paper.sweep import Measured, Run, Study, StudyTask
from quadric.datasets import ImageData
from quadric.plotting import color_of

SEEDS = 10
# Training sequences, steps, inputs, outputs, and the width of each network. The widths give
# numbers of parameters that differ by less than 5 %.
TASKS: dict[str, tuple[int, int, int, int, dict[str, int]]] = {
    "adding": (3000, 8, 2, 1, {"quadratic": 9, "rnn": 24, "gru": 13}),
    "rows": (1200, 8, 8, 10, {"quadratic": 7, "rnn": 23, "gru": 13}),
    "parity": (3000, 8, 1, 2, {"quadratic": 6, "rnn": 13, "gru": 7}),
}
IN_WORDS = {
    "adding": "sum of two marked numbers",
    "rows": "digits read row by row",
    "parity": "parity of a sequence",
}
MODELS = {"quadratic": "QuadraticRNN", "rnn": "nn.RNN", "gru": "nn.GRU"}
OTHERS = ("rnn", "gru")
SECONDS = {"quadratic": 0.008, "rnn": 0.002, "gru": 0.004}  # per step of training
SETTINGS: dict[str, Any] = {"steps": 400, "batch": 32, "rates": [0.003, 0.01]}


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train one network and return its score on test sequences."""
    from quadric.apps.paper._torch_networks import train_recurrent

    return train_recurrent(task, settings)


def parts(context: Context) -> list[Part]:
    """Return the runs of every task."""
    parts = []
    for name, (size, length, _, _, widths) in TASKS.items():
        study = Study("recurrent", ("score",), train, {**SETTINGS, "task": name, "length": length})
        updates = SETTINGS["steps"] * len(SETTINGS["rates"])
        tasks = [
            StudyTask(size, width, kind, seed, updates * SECONDS[kind])
            for kind, width in widths.items()
            for seed in seeds_of(context, SEEDS)
        ]
        parts.append(Part(study, tasks, None, (name,)))
    return parts


def cells_of(parts: Sequence[Part], runs: Sequence[Sequence[Run]]) -> Samples:
    """Return the samples by task and network."""
    return {(key[0], key[3]): sample for key, sample in samples(parts, runs).items()}


def summary(context: Context) -> str:
    """Return the method."""
    return (
        "One recurrent layer, and a linear layer that reads its last state, trained by Adam for "
        f"{SETTINGS['steps']} steps of {SETTINGS['batch']} sequences. Each run tries the learning "
        f"rates {' and '.join(map(str, SETTINGS['rates']))} and keeps the one that is better on "
        "held-out sequences. Scores are the share of test sequences with the right class or, for "
        f"adding, with a sum within 0.04. {RULE}"
    )


def comparisons(cells: Samples) -> Tests:
    """Compare the QuadraticRNN with the other networks, by (task, other network)."""
    return differences(
        {
            (name, other): (sample, cells[name, other])
            for (name, kind), sample in cells.items()
            if kind == "quadratic"
            for other in OTHERS
        }
    )


def claim(cells: Samples) -> Claim:
    """Judge by the tasks on which the QuadraticRNN differs significantly from nn.RNN."""
    tests = comparisons(cells)
    shown = "; ".join(
        f"{IN_WORDS[name]}: " + ", ".join(_compared(tests[name, other], other) for other in OTHERS)
        for name in dict.fromkeys(key[0] for key in cells)
    )
    signs = [test.sign for key, test in tests.items() if key[1] == "rnn"]
    verdict = Verdict.of(2 * signs.count(1) > len(signs) and -1 not in signs)
    if verdict is Verdict.FAILS and 1 in signs:
        verdict = Verdict.CONDITIONALLY  # on some of the tasks
    return Claim(
        "recurrent",
        "named as future work",
        f"score of QuadraticRNN, in points; {shown}",
        verdict if are_enough(cells) else Verdict.UNKNOWN,
        method="Welch's test, Holm over all comparisons; against torch.nn.RNN",
    )


def _compared(test: Comparison, other: str) -> str:
    """Return, for example, 'higher than nn.RNN (+1.2)' or 'undecided against nn.GRU (-0.1)'."""
    preposition = "than" if test.sign else "against"
    return f"{sign_text(test)} {preposition} {MODELS[other]} ({test.difference:+.1f})"


def tables(results: Results) -> list[Table]:
    """Return the scores, and the comparisons of QuadraticRNN with the others."""
    from quadric.apps.paper._torch_networks import parameters

    rows = {}
    for (name, kind), sample in results.cells.items():
        size, length, inputs, outputs, widths = TASKS[name]
        count = parameters(kind, inputs, widths[kind], outputs)
        rows[name, length, size, MODELS[kind], widths[kind], count] = sample
    return [
        samples_table(
            "recurrent",
            "Scores on test sequences in percent",
            ("task", "steps", "training sequences", "network", "neurons", "parameters"),
            rows,
            statistics=("mean", "std", "best", "worst", "runs"),
        ),
        comparisons_table(
            "recurrent_comparisons",
            "QuadraticRNN compared with the others",
            ("task", "other network"),
            {
                (name, MODELS[other]): test
                for (name, other), test in comparisons(results.cells).items()
            },
            "In percentage points; p values are corrected by Holm's method.",
            significant="QuadraticRNN is",
        ),
    ]


def draw(cells: Samples) -> Figure:
    """Draw the scores by task."""
    names = list(dict.fromkeys(key[0] for key in cells))
    figure = new_figure(6.4, 3.2)
    ax = figure.subplots()
    for k, (kind, label) in enumerate(MODELS.items()):
        by_task = [cells[name, kind] for name in names]
        ax.bar(
            [i + 0.26 * (k - 1) for i in range(len(names))],
            [sample.mean for sample in by_task],
            0.24,
            yerr=[sample.std or 0.0 for sample in by_task],
            capsize=2,
            color=color_of(k),
            label=label,
        )
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("score, %")
    ax.grid(alpha=0.25, axis="y")
    legend_below(figure, ax, 3)
    return figure


STUDY = Compared(
    "recurrent",
    "Study: recurrent networks",
    summary,
    parts,
    tables,
    lambda results: {
        "recurrent": (
            draw(results.cells),
            "Scores of the three recurrent networks on each task: means and standard deviations "
            "over the seeds, with equal numbers of parameters.",
        )
    },
    lambda results: [claim(results.cells)],
    cells_of,
    needs_torch="The study recurrent",
)
