"""The settings of an experiment (`Context`) and its result (`Outcome`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from joblib import Parallel, delayed
from matplotlib.figure import Figure

from quadric.apps.paper.claims import Claim
from quadric.apps.paper.sweep import Recipe, Store
from quadric.datasets import ImageData
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


@dataclass(frozen=True)
class Experiment:
    """How to reproduce a result, and roughly how many seconds that takes on two cores."""

    run: Callable[[Context], Outcome]
    estimate: Callable[[Context], float]
    needs_images: bool = False
    needs_store: bool = False
    needs_fashion: bool = False


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    return Figure(figsize=(width, height), layout="constrained", dpi=150)
