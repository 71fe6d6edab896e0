"""The form of every experiment and study, and the list of them.

An experiment is a module with a function `run`, which takes the settings (`Context`) and returns
tables, verdicts (`Claim`) and figures (`Outcome`). A study also has a function `parts`, which
returns the repeated runs that it compares. The module is imported when the experiment is used.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module, resources
from typing import Any

from joblib import Parallel, delayed
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from quadric import Network, QuadraticClassifier
from quadric.apps.paper._statistics import Comparison, Sample, contrast, holm, sample_of
from quadric.apps.paper.sweep import Recipe, Run, Store, Study, StudyTask, run_sweep
from quadric.checks import Array
from quadric.datasets import ImageData
from quadric.plotting import color_of, marker_of
from quadric.utils import one_blas_thread, require

# The paper's names for the networks, and the kinds of their layers.
MODELS = {"ann": "linear", "qnn": "quadratic", "rpqnn": "reduced"}
NAMES = {kind: model for model, kind in MODELS.items()}


def packaged(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Context:
    """The settings of a reproduction; each experiment uses those that it needs.

    Attributes
    ----------
    full : bool
        Whether to use the paper's numbers of seeds, epochs and cells.
    seeds : int or None
        Number of seeds; None means the experiment's default.
    first_seed : int
    jobs : int
        Number of threads or, for the runs of a study, processes.
    dask : str or None
        The address of a Dask scheduler for the runs that are kept in the store.
    recipe : Recipe
        How the runs of the MNIST table are trained.
    images : ImageData or None
        MNIST or a substitute, for experiments that need images.
    fashion : ImageData or None
        Fashion-MNIST, for experiments that need it; None if it is not available.
    store : Store or None
        Finished runs, for experiments that need a store.
    row : tuple of int or None
        The only row of the MNIST table to run: images, epochs and hidden neurons.
    progress : callable(done, total, text)
    """

    full: bool = False
    seeds: int | None = None
    first_seed: int = 0
    jobs: int = 2
    dask: str | None = None
    recipe: Recipe = field(default_factory=Recipe)
    images: ImageData | None = None
    fashion: ImageData | None = None
    store: Store | None = None
    row: tuple[int, int, int] | None = None
    progress: Callable[[float, float, str], object] = lambda done, total, text: None

    @property
    def data(self) -> ImageData:
        """The images, for experiments that need them."""
        assert self.images is not None
        return self.images

    @property
    def has_mnist(self) -> bool:
        """Whether the images are MNIST, so that results can be compared with the paper's."""
        return self.data.name == "mnist"

    def all_seeds(self, default: int) -> range:
        """Return the seeds: `default` of them, unless the context has another number."""
        return range(self.first_seed, self.first_seed + (self.seeds or default))

    def map(
        self, function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], name: str
    ) -> list[Any]:
        """Call ``function(*case)`` for every case, using threads; return the results in order."""
        results: list[Any] = []
        parallel = Parallel(n_jobs=self.jobs, prefer="threads", return_as="generator")
        with one_blas_thread():
            for result in parallel(delayed(function)(*case) for case in cases):
                results.append(result)
                self.progress(len(results), len(cases), f"{name}: {len(results)} of {len(cases)}")
        return results


# ---- the result of an experiment -----------------------------------------------------------------

NEEDS_FULL = "not judged: needs --full"  # the note of a quick run on a claim it cannot decide


class Verdict(StrEnum):
    """Whether a statement holds."""

    HOLDS = "holds"
    CONDITIONALLY = "holds with a condition"
    FAILS = "does not hold"
    UNKNOWN = "cannot be judged"

    @classmethod
    def of(cls, holds: object, *, partly: object = False, judged: object = True) -> "Verdict":
        """Return the verdict on a statement that holds, or holds `partly`, if it can be judged."""
        if not judged:
            return cls.UNKNOWN
        if holds:
            return cls.HOLDS
        return cls.CONDITIONALLY if partly else cls.FAILS


@dataclass(frozen=True)
class Claim:
    """What an experiment finds about a statement of the paper.

    Attributes
    ----------
    id : str
        The statement in `claims.toml`.
    paper, ours : str
        What the paper prints, and what we find. Names the condition or the reason where the
        verdict needs one.
    verdict : Verdict
        The verdict on our numbers.
    paper_verdict : Verdict
        The verdict on the paper's own numbers, figures or derivation.
    method : str
        How our verdict was reached, for example 'Welch's test, Holm over 60 rows'.
    """

    id: str
    paper: str
    ours: str
    verdict: Verdict
    paper_verdict: Verdict = Verdict.UNKNOWN
    method: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns.

    Attributes
    ----------
    name : str
        The name of the CSV file, which consists of letters, digits and underscores.
    title : str
    columns : sequence of str
    rows : sequence of sequences
        Numbers, strings, booleans or None.
    note : str
        How to read the table.
    formats : dict
        The format of a column's numbers, for example ``{"mean": ".2f"}``.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    formats: dict[str, str] = field(default_factory=dict)

    def text(self, column: int, value: Any) -> str:
        """Return the text of a cell."""
        if value is None:
            return "-"
        if isinstance(value, bool):
            return "yes" if value else "no"
        style = self.formats.get(self.columns[column])
        return format(value, style) if style and not isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Headline:
    """The main result of an experiment in one line: what is measured, in the paper and by us.

    `verdict` is that on the statement with the id `claim`, if it belongs to one.
    """

    what: str
    paper: str
    ours: str
    verdict: Verdict
    claim: str = ""


def headline(claims: Sequence[Claim], name: str, what: str, paper: str, ours: str) -> Headline:
    """Return the main result with the verdict on the claim of this id, if it is judged."""
    verdicts = (claim.verdict for claim in claims if claim.id == name)
    return Headline(what, paper, ours, next(verdicts, Verdict.UNKNOWN), name)


@dataclass
class Outcome:
    """The result of one experiment.

    Attributes
    ----------
    name, title : str
    summary : str
        The method and the data, in a sentence or two.
    tables : list of Table
    claims : list of Claim
        Verdicts on statements of the paper.
    figures : dict of Figure
        The figures by file name.
    facts : dict
        Settings and measurements worth keeping, such as data, seeds and seconds.
    captions : dict of str
        A sentence about each figure, by the figure's file name.
    findings : list of str
        Statements about the results, each of one or two sentences.
    citation : str
        The publication whose results are reproduced, unless it is the paper.
    headline : Headline or None
        The main result.
    descriptions : dict of str
        What is seen in each figure, by the figure's file name, for readers who cannot see it.
    """

    name: str
    title: str
    summary: str
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    citation: str = ""
    headline: Headline | None = None
    descriptions: dict[str, str] = field(default_factory=dict)


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, grid: Any = "", **options: Any
) -> tuple[Figure, Any]:
    """Return a figure of this size in inches, and its axes: one, or an array of them.

    `grid` names the axes whose grid lines are drawn: 'x', 'y', 'both', or none.
    """
    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    axes = figure.subplots(rows, columns, **options)
    for ax in figure.axes if grid else ():
        ax.grid(axis=grid, alpha=0.25)
    return figure, axes


def line_style(k: int, **options: Any) -> dict[str, Any]:
    """Return the options of matplotlib for line k: its color, marker, size and width."""
    return {
        "color": color_of(k),
        "marker": marker_of(k),
        "markersize": 4,
        "linewidth": 1.3,
        **options,
    }


def legend_below(figure: Figure, ax: Any, columns: int, text: str = "{}", **options: Any) -> None:
    """Draw the legend of an axis below the whole figure; `text` is the form of its labels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        [text.format(label) for label in labels],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        **options,
    )


# ---- studies: repeated runs, stored and compared -------------------------------------------------

ENOUGH = 10  # runs per cell; with fewer, the numbers are shown without a verdict
RULE = (
    "Means are compared by Welch's test with Holm's correction over the rows of a table, at 5 %. "
    f"With fewer than {ENOUGH} runs per cell there is no verdict."
)

Group = tuple[Any, ...]  # the key of a cell, such as (data set, size, width, kind, measure)
Samples = Mapping[Group, Sample]
Tests = Mapping[Group, Comparison]


@dataclass(frozen=True)
class Part:
    """Runs of one study with one group of settings, such as one data set.

    `group` comes first in the keys that `samples` returns. `keep` is called with the task and the
    network of every newly finished run that returns a network.
    """

    study: Study
    tasks: Sequence[StudyTask]
    data: ImageData | None = None
    group: Group = ()
    keep: Callable[[Any, Network], object] | None = None


Finished = Sequence[tuple[Part, Sequence[Run]]]


def fitted(model: QuadraticClassifier, X: Array, y: Array) -> QuadraticClassifier:
    """Fit a model; its number of iterations is a setting, so it need not converge."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return model.fit(X, y)


def run_parts(context: Context, parts: Sequence[Part]) -> Finished:
    """Run the tasks that are not in the store, and return every part with its runs."""
    assert context.store is not None
    total, done = sum(task.cost for part in parts for task in part.tasks), 0.0
    finished: list[tuple[Part, list[Run]]] = []
    for part in parts:

        def on_result(run: Run, count: int, wanted: int, name: str = part.study.name) -> None:
            nonlocal done
            done += run.task.cost
            context.progress(done, total, f"{name}: run {count} of {wanted} in this part")

        runs = run_sweep(
            part.tasks,
            part.study,
            part.data,
            context.store,
            jobs=context.jobs,
            dask=context.dask,
            on_result=on_result,
            on_model=part.keep,
        )
        finished.append((part, runs))
        # with the runs found in the store
        done = sum(task.cost for one, _ in finished for task in one.tasks)
        context.progress(done, total, part.study.name)
    return finished


def facts_of(finished: Finished) -> dict[str, Any]:
    """Return the number of runs, their time and their processors."""
    runs = [run for _, runs_of_part in finished for run in runs_of_part]
    return {
        "runs": len(runs),
        "seconds of all runs": sum(run.result.seconds for run in runs),
        "processors": sorted({run.environment.cpu for run in runs}),
    }


def by_seed(finished: Finished) -> dict[Group, dict[int, float]]:
    """Return the runs in percent, by (*group, size, hidden, kind, measure) and seed."""
    values: dict[Group, dict[int, float]] = defaultdict(dict)
    for part, runs in finished:
        for run in runs:
            place = (*part.group, run.task.size, run.task.hidden, run.task.kind)
            for measure, value in zip(part.study.measures, run.result.accuracies, strict=True):
                values[*place, measure][run.task.seed] = 100 * value
    return values


def samples(finished: Finished) -> dict[Group, Sample]:
    """Return samples in percent by (*group, size, hidden, kind, measure), over the seeds."""
    return {key: sample_of([*numbers.values()]) for key, numbers in by_seed(finished).items()}


def are_enough(cells: Samples) -> bool:
    """Return whether every cell has enough runs for a verdict."""
    return min(sample.runs for sample in cells.values()) >= ENOUGH


def differences(pairs: Mapping[Any, tuple[Sample, Sample]]) -> dict[Any, Comparison]:
    """Compare the two samples of every pair; the p values are corrected by Holm's method."""
    return holm({key: contrast((1, one), (-1, other)) for key, (one, other) in pairs.items()})


def sign_text(test: Comparison) -> str:
    """Return whether a difference is significant, in a word."""
    return {1: "higher", -1: "lower", 0: "undecided"}[test.sign]


def samples_table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Mapping[Group, Sample],
    note: str = "",
    statistics: Sequence[str] = ("mean", "std", "runs"),
) -> Table:
    """Return a table of samples; `columns` name the parts of their keys."""
    return Table(
        name,
        title,
        (*columns, *statistics),
        [(*key, *(getattr(sample, name) for name in statistics)) for key, sample in rows.items()],
        note,
        {name: ".2f" for name in statistics if name != "runs"},
    )


def comparisons_table(
    name: str,
    title: str,
    columns: Sequence[str],
    tests: Tests,
    note: str,
    difference: str = "difference",
    significant: str = "is",
) -> Table:
    """Return a table of comparisons; `columns` name the parts of their keys."""
    return Table(
        name,
        title,
        (*columns, difference, "standard error", "p", significant),
        [
            (*key, test.difference, test.error, test.p, sign_text(test))
            for key, test in tests.items()
        ],
        note,
        {difference: "+.2f", "standard error": ".2f", "p": ".2g"},
    )


# ---- the list ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """How to reproduce a result, and roughly how many seconds that takes on two cores."""

    run: Callable[[Context], Outcome]
    estimate: Callable[[Context], float]
    needs_images: bool = False
    needs_store: bool = False
    needs_fashion: bool = False


def _later(module: str, name: str, torch_for: str = "") -> Callable[[Context], Any]:
    """Return a function that imports a module, and calls its function.

    `torch_for` is what needs torch, for the message if it is not installed; empty if nothing does.
    """

    def call(context: Context) -> Any:
        if torch_for:
            require("torch", extra="torch", by=torch_for)
        return getattr(import_module(f"quadric.apps.paper.{module}"), name)(context)

    return call


def _experiment(module: str, quick: float, full: float, **needs: bool) -> Experiment:
    """Return an experiment that takes this many seconds in a quick and in a full run."""
    return Experiment(
        _later(module, "run"), lambda context: full if context.full else quick, **needs
    )


def _study(module: str, torch_for: str = "", **needs: bool) -> Experiment:
    """Return a study, whose runs are stored."""

    def estimate(context: Context) -> float:
        parts = _later(module, "parts")(context)
        return sum(task.cost for part in parts for task in part.tasks) / context.jobs

    return Experiment(_later(module, "run", torch_for), estimate, needs_store=True, **needs)


EXPERIMENTS = {
    "xor": _experiment("_xor", 4, 4),
    "clusters": _experiment("_clusters", 20, 230),
    "mnist": Experiment(_later("_mnist", "run"), _later("_mnist", "estimate"), True, True),
    "timing": _experiment("_timing", 5, 8, needs_images=True),
    "complexity": _experiment("_complexity", 2, 8),
    "theorem": _experiment("_theorem", 8, 50),
    "ablation": _study("_ablation", needs_images=True),
}
# Claims that the paper does not test. Studies that need torch come last, so that the others run
# without it.
STUDIES = {
    "wide-layers": _study("_wide_layers", needs_images=True),
    "fewer-layers": _study("_fewer_layers", needs_images=True),
    "cnn-head": _study("_cnn_head", "The study cnn-head", needs_images=True),
    "recurrent": _study("_recurrent", "The study recurrent"),
}
# Results of another publication.
BILINEAR = {
    "bilinear": _study(
        "_bilinear", "The experiment bilinear", needs_images=True, needs_fashion=True
    )
}
