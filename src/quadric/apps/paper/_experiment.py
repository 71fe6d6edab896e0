"""The settings of an experiment (`Context`), its result (`Outcome`), and the list of experiments.

The module of an experiment is imported when the experiment is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from joblib import Parallel, delayed
from matplotlib.figure import Figure

from quadric.apps.paper._claims import Claim
from quadric.apps.paper.sweep import Recipe, Store
from quadric.datasets import ImageData
from quadric.plotting import color_of, marker_of
from quadric.utils import one_blas_thread

# The paper's names for the networks, and the kinds of their layers.
MODELS = {"ann": "linear", "qnn": "quadratic", "rpqnn": "reduced"}
NAMES = {kind: model for model, kind in MODELS.items()}


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
    progress: Callable[[float, float, str], object] = lambda done, total, text: None

    @property
    def data(self) -> ImageData:
        """The images, for experiments that need them."""
        assert self.images is not None
        return self.images

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


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def line_style(k: int, **options: Any) -> dict[str, Any]:
    """Return the options of matplotlib for line k: its color, marker, size and width."""
    style = {"color": color_of(k), "marker": marker_of(k), "markersize": 4, "linewidth": 1.3}
    return style | options


def legend_below(figure: Figure, ax: Any, columns: int, **options: Any) -> None:
    """Draw the legend of an axis below the whole figure."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, **options
    )


@dataclass(frozen=True)
class Experiment:
    """How to reproduce a result, and roughly how many seconds that takes on two cores."""

    run: Callable[[Context], Outcome]
    estimate: Callable[[Context], float]
    needs_images: bool = False
    needs_store: bool = False
    needs_fashion: bool = False


def _later(module: str, name: str) -> Callable[[Context], Any]:
    """Return a function that imports a module, and calls its function or its study's method."""

    def call(context: Context) -> Any:
        imported: Any = import_module(f"quadric.apps.paper.{module}")
        return getattr(getattr(imported, "STUDY", imported), name)(context)

    return call


def _experiment(module: str, quick: float, full: float, **needs: bool) -> Experiment:
    """Return an experiment that takes this many seconds in a quick and in a full run."""
    return Experiment(
        _later(module, "run"), lambda context: full if context.full else quick, **needs
    )


def _stored(module: str, **needs: bool) -> Experiment:
    """Return an experiment whose runs are stored, and whose module estimates their time."""
    return Experiment(_later(module, "run"), _later(module, "estimate"), needs_store=True, **needs)


EXPERIMENTS = {
    "xor": _experiment("_xor", 2, 2),
    "clusters": _experiment("_clusters", 20, 230),
    "mnist": _stored("_mnist", needs_images=True),
    "timing": _experiment("_timing", 8, 8, needs_images=True),
    "complexity": _experiment("_complexity", 3, 8),
    "theorem": _experiment("_theorem", 8, 50),
    "ablation": _experiment("_ablation", 10, 180, needs_images=True),
}
# Claims that the paper does not test. Studies that need torch come last, so that the others run
# without it.
STUDIES = {
    "wide-layers": _stored("_wide_layers", needs_images=True),
    "fewer-layers": _stored("_fewer_layers", needs_images=True),
    "cnn-head": _stored("_cnn_head", needs_images=True),
    "recurrent": _stored("_recurrent"),
}
# Results of another publication.
BILINEAR = {"bilinear": _stored("_bilinear", needs_images=True, needs_fashion=True)}
