"""Studies that compare repeated runs: each declares itself, and is run and presented here."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from quadric import Network
from quadric.apps.paper._claims import Claim
from quadric.apps.paper._experiment import Context, Outcome, Table
from quadric.apps.paper._statistics import Comparison, Sample, contrast, holm, sample_of
from quadric.apps.paper.sweep import Run, Study, StudyTask, run_sweep
from quadric.datasets import ImageData
from quadric.utils import require

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


def seeds_of(context: Context, default: int) -> range:
    """Return the seeds of a study: `default` of them, unless the context has another number."""
    return range(context.first_seed, context.first_seed + (context.seeds or default))


def run_parts(context: Context, parts: Sequence[Part]) -> list[list[Run]]:
    """Run the tasks that are not in the store, and return the runs of each part."""
    assert context.store is not None
    costs: dict[Any, float] = {
        (index, task): task.cost for index, part in enumerate(parts) for task in part.tasks
    }
    total, finished = sum(costs.values()), []
    for index, part in enumerate(parts):
        name = part.study.name

        def on_result(
            run: Run, count: int, wanted: int, name: str = name, index: int = index
        ) -> None:
            del costs[index, run.task]
            text = f"{name}: run {count} of {wanted} in this part"
            context.progress(total - sum(costs.values()), total, text)

        finished.append(
            run_sweep(
                part.tasks,
                part.study,
                part.data,
                context.store,
                jobs=context.jobs,
                dask=context.dask,
                on_result=on_result,
                on_model=part.keep,
            )
        )
        for task in part.tasks:  # those found in the store
            costs.pop((index, task), None)
        context.progress(total - sum(costs.values()), total, name)
    return finished


def samples(parts: Sequence[Part], runs: Sequence[Sequence[Run]]) -> dict[Group, Sample]:
    """Return samples in percent by (*group, size, hidden, kind, measure), over the seeds."""
    values: dict[Group, list[float]] = defaultdict(list)
    for part, runs_of_part in zip(parts, runs, strict=True):
        for run in runs_of_part:
            place = (*part.group, run.task.size, run.task.hidden, run.task.kind)
            for measure, value in zip(part.study.measures, run.result.accuracies, strict=True):
                values[*place, measure].append(100 * value)
    return {key: sample_of(numbers) for key, numbers in values.items()}


def are_enough(cells: Samples) -> bool:
    """Return whether every cell has enough runs for a verdict."""
    return min(sample.runs for sample in cells.values()) >= ENOUGH


def differences(pairs: Mapping[Group, tuple[Sample, Sample]]) -> dict[Group, Comparison]:
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


@dataclass(frozen=True)
class Results:
    """The runs of a comparison, and their samples by the keys of its cells."""

    context: Context
    parts: Sequence[Part]
    runs: Sequence[Sequence[Run]]
    cells: Samples


@dataclass(frozen=True)
class Compared:
    """A study that compares models over repeated runs.

    Attributes
    ----------
    name, title : str
    summary : callable(context)
        Returns the method and the data, in a few sentences.
    parts : callable(context)
        Returns the runs: the arms, their seeds and what they measure.
    tables : callable(results)
    figures : callable(results)
        Returns a figure and its caption, by file name.
    claims : callable(results)
        Judges the statements of the paper.
    cells : callable(parts, runs)
        Returns the samples by the keys that the tables and tests use.
    findings : callable(cells)
        Returns sentences about the results.
    facts : callable(parts)
    citation : str
        The publication whose results are reproduced, unless it is the paper.
    needs_torch : str
        What needs torch, for the message if it is not installed; empty if nothing does.
    """

    name: str
    title: str
    summary: Callable[[Context], str]
    parts: Callable[[Context], list[Part]]
    tables: Callable[[Results], list[Table]]
    figures: Callable[[Results], dict[str, tuple[Figure, str]]]
    claims: Callable[[Results], list[Claim]] = lambda results: []
    cells: Callable[[Sequence[Part], Sequence[Sequence[Run]]], Samples] = samples
    findings: Callable[[Samples], list[str]] = lambda cells: []
    facts: Callable[[Sequence[Part]], dict[str, Any]] = lambda parts: {}
    citation: str = ""
    needs_torch: str = ""

    def estimate(self, context: Context) -> float:
        """Estimate how many seconds all runs take."""
        tasks = (task for part in self.parts(context) for task in part.tasks)
        return sum(task.cost for task in tasks) / context.jobs

    def run(self, context: Context) -> Outcome:
        """Run the tasks that are not in the store, and compare the arms."""
        if self.needs_torch:
            require("torch", extra="torch", by=self.needs_torch)
        parts = self.parts(context)
        runs = run_parts(context, parts)
        results = Results(context, parts, runs, self.cells(parts, runs))
        figures = self.figures(results)
        all_runs = [run for runs_of_part in runs for run in runs_of_part]
        facts = {
            "runs": len(all_runs),
            "seconds of all runs": sum(run.result.seconds for run in all_runs),
            "processors": sorted({run.environment.cpu for run in all_runs}),
        }
        return Outcome(
            self.name,
            self.title,
            self.summary(context),
            self.tables(results),
            self.claims(results),
            {name: figure for name, (figure, _) in figures.items()},
            facts | self.facts(parts),
            {name: caption for name, (_, caption) in figures.items()},
            self.findings(results.cells),
            self.citation,
        )
