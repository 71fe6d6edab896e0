"""Functions for all studies: run the tasks, summarize the runs, and describe comparisons."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quadric.apps.paper.experiments._experiment import Context
from quadric.apps.paper.experiments._statistics import Comparison, Sample, sample_of
from quadric.apps.paper.sweep import Run, Study, StudyTask, run_sweep
from quadric.datasets import ImageData
from quadric.network import Network

ENOUGH = 10  # runs per cell; with fewer, the numbers are shown without a verdict
RULE = (
    "Means are compared by Welch's test with Holm's correction over the rows of a table, at 5 %. "
    f"With fewer than {ENOUGH} runs per cell there is no verdict."
)

Group = tuple[Any, ...]  # the key of a cell, such as (data set, size, width, kind, measure)


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


def estimated_seconds(context: Context, parts: Sequence[Part]) -> float:
    """Estimate how many seconds all runs take."""
    return sum(task.cost for part in parts for task in part.tasks) / context.jobs


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


def are_enough(cells: Mapping[Group, Sample]) -> bool:
    """Return whether every cell has enough runs for a verdict."""
    return min(sample.runs for sample in cells.values()) >= ENOUGH


def sign_text(test: Comparison) -> str:
    """Return whether a difference is significant, in a word."""
    return {1: "higher", -1: "lower", 0: "undecided"}[test.sign]


def facts_of(runs: Sequence[Sequence[Run]]) -> dict[str, Any]:
    """Return the number of runs, their total time and the processors."""
    all_runs = [run for runs_of_part in runs for run in runs_of_part]
    return {
        "runs": len(all_runs),
        "seconds of all runs": sum(run.result.seconds for run in all_runs),
        "processors": sorted({run.environment.cpu for run in all_runs}),
    }
