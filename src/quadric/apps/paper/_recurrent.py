"""Study: whether quadratic neurons help in recurrent networks.

`QuadraticRNN` is compared with `torch.nn.RNN` and `torch.nn.GRU` with as many parameters on three
tasks: the sum of two marked numbers, digits read row by row, and the parity of a sequence.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from quadric.apps.paper._experiment import (
    RULE,
    Claim,
    Context,
    Outcome,
    Part,
    Samples,
    Tests,
    Verdict,
    are_enough,
    comparisons_table,
    differences,
    facts_of,
    headline,
    legend_below,
    new_figure,
    run_parts,
    samples,
    samples_table,
    sign_text,
)
from quadric.apps.paper._statistics import Comparison
from quadric.apps.paper.sweep import Measured, Study, StudyTask
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


def train(task: StudyTask, settings: Mapping[str, Any], data: None) -> Measured:
    """Train one network and return its score on test sequences."""
    from quadric.apps.paper._torch_networks import train_recurrent

    return train_recurrent(task, settings)


def parts(context: Context) -> list[Part]:
    """Return the runs of every task."""
    updates = SETTINGS["steps"] * len(SETTINGS["rates"])
    return [
        Part(
            Study("recurrent", ("score",), train, {**SETTINGS, "task": name, "length": length}),
            [
                StudyTask(size, width, kind, seed, updates * SECONDS[kind])
                for kind, width in widths.items()
                for seed in context.all_seeds(SEEDS)
            ],
            group=(name,),
        )
        for name, (size, length, _, _, widths) in TASKS.items()
    ]


def run(context: Context) -> Outcome:
    """Train the networks, and compare QuadraticRNN with the others."""
    from quadric.apps.paper._torch_networks import parameters

    finished = run_parts(context, parts(context))
    cells = {(key[0], key[3]): sample for key, sample in samples(finished).items()}
    claims, tests = [claim(cells)], comparisons(cells)
    better = {other: sum(tests[name, other].sign == 1 for name in TASKS) for other in OTHERS}
    return Outcome(
        "recurrent",
        "Study: recurrent networks",
        "One recurrent layer, and a linear layer that reads its last state, trained by Adam for "
        f"{SETTINGS['steps']} steps of {SETTINGS['batch']} sequences. Each run tries the learning "
        f"rates {' and '.join(map(str, SETTINGS['rates']))} and keeps the one that is better on "
        "held-out sequences. Scores are the share of test sequences with the right class or, for "
        f"adding, with a sum within 0.04. {RULE}",
        [
            samples_table(
                "recurrent",
                "Scores on test sequences in percent",
                ("task", "steps", "training sequences", "network", "neurons", "parameters"),
                {
                    (
                        *(name, length, size, MODELS[kind], widths[kind]),
                        parameters(kind, inputs, widths[kind], outputs),
                    ): cells[name, kind]
                    for name, (size, length, inputs, outputs, widths) in TASKS.items()
                    for kind in widths
                },
                statistics=("mean", "std", "best", "worst", "runs"),
            ),
            comparisons_table(
                "recurrent_comparisons",
                "QuadraticRNN compared with the others",
                ("task", "other network"),
                {(name, MODELS[other]): test for (name, other), test in tests.items()},
                "In percentage points; p values are corrected by Holm's method.",
                significant="QuadraticRNN is",
            ),
        ],
        claims,
        {"recurrent": draw(cells)},
        facts_of(finished),
        {
            "recurrent": "Scores of the three recurrent networks on each task: means and standard "
            "deviations over the seeds, with equal numbers of parameters."
        },
        [
            f"With as many parameters, QuadraticRNN is significantly better than nn.RNN in "
            f"{better['rnn']} and than nn.GRU in {better['gru']} of {len(TASKS)} tasks."
        ],
        headline=headline(
            claims,
            "recurrent",
            "recurrent: better than nn.RNN",
            "future work",
            f"{better['rnn']} of {len(TASKS)} tasks",
        ),
        descriptions={
            "recurrent": "Three bars for each task. "
            + "; ".join(
                f"{IN_WORDS[name]}: "
                + ", ".join(f"{MODELS[kind]} {cells[name, kind].mean:.0f} %" for kind in MODELS)
                for name in TASKS
            )
            + "."
        },
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
    signs = [test.sign for key, test in tests.items() if key[1] == "rnn"]
    return Claim(
        "recurrent",
        "named as future work",
        "score of QuadraticRNN, in points; "
        + "; ".join(
            f"{IN_WORDS[name]}: "
            + ", ".join(_compared(tests[name, other], other) for other in OTHERS)
            for name in dict.fromkeys(key[0] for key in cells)
        ),
        Verdict.of(
            2 * signs.count(1) > len(signs) and -1 not in signs,
            partly=1 in signs,  # on some of the tasks
            judged=are_enough(cells),
        ),
        method="Welch's test, Holm over all comparisons; against torch.nn.RNN",
    )


def _compared(test: Comparison, other: str) -> str:
    """Return, for example, 'higher than nn.RNN (+1.2)' or 'undecided against nn.GRU (-0.1)'."""
    return (
        f"{sign_text(test)} {'than' if test.sign else 'against'} {MODELS[other]} "
        f"({test.difference:+.1f})"
    )


def draw(cells: Samples) -> Figure:
    """Draw the scores by task."""
    names = list(dict.fromkeys(key[0] for key in cells))
    figure, ax = new_figure(6.4, 3.2, grid="y")
    for k, (kind, label) in enumerate(MODELS.items()):
        ax.bar(
            [i + 0.26 * (k - 1) for i in range(len(names))],
            [cells[name, kind].mean for name in names],
            0.24,
            yerr=[cells[name, kind].std or 0.0 for name in names],
            capsize=2,
            color=color_of(k),
            label=label,
        )
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("score, %")
    legend_below(figure, ax, 3)
    return figure
