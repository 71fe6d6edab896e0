"""A study: runs with a training function of their own, in the same store as those of a recipe."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quadric.apps.paper.sweep._result import Result
from quadric.checks import check_integer
from quadric.datasets import ImageData
from quadric.network import Network
from quadric.utils import one_blas_thread

# one number from 0 to 1 per measure, samples visited, and perhaps the trained network
Measured = tuple[tuple[float, ...], int] | tuple[tuple[float, ...], int, Network]


@dataclass(frozen=True, order=True)
class StudyTask:
    """One run of a study. It is stored in the same columns as a `Task`.

    Attributes
    ----------
    size : int
        Number of training samples.
    hidden : int
        Width of the network: the number of hidden neurons or features.
    kind : str
        The model, such as 'quadratic' or 'gru'.
    seed : int
    cost : float
        Estimated seconds, to run the longest tasks first. Not stored.
    """

    size: int
    hidden: int
    kind: str
    seed: int
    cost: float = field(default=1.0, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("hidden", 1), ("seed", 0)):
            check_integer(name, getattr(self, name), at_least=least)
        if not isinstance(self.kind, str) or not self.kind:
            raise ValueError(f"kind must be a name that is not empty. Got {self.kind!r} instead.")

    def __str__(self) -> str:
        return f"{self.size} samples, {self.hidden} hidden, {self.kind}, seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """How the runs of a study are trained and what they measure.

    Attributes
    ----------
    name : str
    measures : tuple of str
        The names of the numbers that a run returns, each from 0 to 1.
    train : callable(task, settings, data)
        A function at the top level of a module, so that other processes can import it. Returns the
        measured numbers, the number of training samples visited and, optionally, the trained
        network.
    settings : mapping
        JSON values that determine the results together with the task and the data.
    """

    name: str
    measures: tuple[str, ...]
    train: Callable[[StudyTask, Mapping[str, Any], ImageData | None], Measured]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """Return what identifies the runs in a store, as canonical JSON."""
        values = {**self.settings, "study": self.name, "measures": self.measures}
        return json.dumps(values, sort_keys=True, separators=(",", ":"))

    def run(self, task: StudyTask, data: ImageData | None) -> Result:
        """Run a task with one BLAS thread."""
        start = time.perf_counter()
        with one_blas_thread():
            measured = self.train(task, self.settings, data)
        seconds = time.perf_counter() - start
        model = measured[2] if len(measured) == 3 else None
        return Result(tuple(map(float, measured[0])), seconds, measured[1], model)
