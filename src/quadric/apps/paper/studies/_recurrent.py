"""Study: whether quadratic neurons help in recurrent networks.

`QuadraticRNN` is compared with `torch.nn.RNN` and `torch.nn.GRU` with as many parameters on three
tasks: the sum of two marked numbers, digits read row by row, and the parity of a sequence.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from quadric.apps.paper.claims import Claim, Verdict
from quadric.apps.paper.experiments._experiment import Context, Outcome, Table, new_figure
from quadric.apps.paper.experiments._statistics import Comparison, Sample, contrast, holm
from quadric.apps.paper.studies._runs import (
    RULE,
    Group,
    Part,
    are_enough,
    estimated_seconds,
    facts_of,
    run_parts,
    samples,
    seeds_of,
    sign_text,
)
from quadric.apps.paper.sweep import Study, StudyTask
from quadric.apps.paper.sweep._study import Measured
from quadric.datasets import ImageData
from quadric.plotting import color_of
from quadric.utils import require

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
SECONDS = {"quadratic": 0.008, "rnn": 0.002, "gru": 0.004}  # per step of training
SETTINGS: dict[str, Any] = {"steps": 400, "batch": 32, "rates": [0.003, 0.01]}

Samples = Mapping[Group, Sample]


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData | None) -> Measured:
    """Train one network and return its score on test sequences."""
    from quadric.apps.paper.studies._sequences import train as train_network

    scores, steps = train_network(task, settings)
    return tuple(scores), steps


def parts_for(context: Context) -> list[Part]:
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


def estimate(context: Context) -> float:
    """Estimate how many seconds all runs take."""
    return estimated_seconds(context, parts_for(context))


def run(context: Context) -> Outcome:
    """Run the tasks that are not in the store, and compare the networks."""
    require("torch", extra="torch", by="The study recurrent")
    parts = parts_for(context)
    runs = run_parts(context, parts)
    cells = {(key[0], key[3]): value for key, value in samples(parts, runs).items()}
    return Outcome(
        "recurrent",
        "Study: recurrent networks",
        "One recurrent layer, and a linear layer that reads its last state, trained by Adam for "
        f"{SETTINGS['steps']} steps of {SETTINGS['batch']} sequences. Each run tries the learning "
        f"rates {' and '.join(map(str, SETTINGS['rates']))} and keeps the one that is better on "
        "held-out sequences. Scores are the share of test sequences with the right class or, for "
        f"adding, with a sum within 0.04. {RULE}",
        [_table(cells), _tests_table(cells)],
        [_claim(cells)],
        {"recurrent": _figure(cells)},
        facts_of(runs),
        {
            "recurrent": "Scores of the three recurrent networks on each task: means and standard "
            "deviations over the seeds, with equal numbers of parameters."
        },
    )


def comparisons(cells: Samples) -> dict[Group, Comparison]:
    """Compare the QuadraticRNN with the other networks, by (task, other network)."""
    return holm(
        {
            (name, other): contrast((1, cells[name, "quadratic"]), (-1, cells[name, other]))
            for name in dict.fromkeys(key[0] for key in cells)
            for other in ("rnn", "gru")
        }
    )


def _claim(cells: Samples) -> Claim:
    tests = comparisons(cells)
    shown = "; ".join(
        f"{IN_WORDS[name]}: "
        + ", ".join(_compared(tests[name, other], other) for other in ("rnn", "gru"))
        for name in dict.fromkeys(key[0] for key in cells)
    )
    signs = [test.sign for key, test in tests.items() if key[1] == "rnn"]
    verdict = Verdict.of(2 * signs.count(1) > len(signs) and -1 not in signs)
    if verdict is Verdict.FAILS and 1 in signs:
        verdict = Verdict.CONDITIONALLY  # on some of the tasks
    if not are_enough(cells):
        verdict = Verdict.UNKNOWN
    return Claim(
        "recurrent",
        "named as future work",
        f"score of QuadraticRNN, in points; {shown}",
        verdict,
        method="Welch's test, Holm over all comparisons; against torch.nn.RNN",
    )


def _compared(test: Comparison, other: str) -> str:
    """Return, for example, 'higher than nn.RNN (+1.2)' or 'undecided against nn.GRU (-0.1)'."""
    preposition = "than" if test.sign else "against"
    return f"{sign_text(test)} {preposition} {MODELS[other]} ({test.difference:+.1f})"


def _table(cells: Samples) -> Table:
    from quadric.apps.paper.studies._sequences import parameters

    rows = []
    for (name, kind), sample in cells.items():
        size, length, inputs, outputs, widths = TASKS[name]
        count = parameters(kind, inputs, widths[kind], outputs)
        row = (name, length, size, MODELS[kind], widths[kind], count)
        rows.append((*row, sample.mean, sample.std, sample.best, sample.worst, sample.runs))
    return Table(
        "recurrent",
        "Scores on test sequences in percent",
        (
            *("task", "steps", "training sequences", "network", "neurons", "parameters"),
            *("mean", "std", "best", "worst", "runs"),
        ),
        rows,
        "",
        {"mean": ".2f", "std": ".2f", "best": ".2f", "worst": ".2f"},
    )


def _tests_table(cells: Samples) -> Table:
    return Table(
        "recurrent_comparisons",
        "QuadraticRNN compared with the others",
        ("task", "other network", "difference", "standard error", "p", "QuadraticRNN is"),
        [
            (name, MODELS[other], test.difference, test.error, test.p, sign_text(test))
            for (name, other), test in comparisons(cells).items()
        ],
        "In percentage points; p values are corrected by Holm's method.",
        {"difference": "+.2f", "standard error": ".2f", "p": ".2g"},
    )


def _figure(cells: Samples) -> Figure:
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
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
