"""What a fit tells its user: warnings at the user's own line, and progress on stderr."""

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sklearn.exceptions import ConvergenceWarning

from quadric.training._options import Options
from quadric.training._state import Epoch, TrainingState

Report = Callable[[Epoch], None]
MOST_LINES = 100
WORSE = 1.01  # times the loss at the start: more than the noise of a last epoch


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the stack that is neither quadric's nor scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("quadric.", "sklearn.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_not_converged(message: str) -> None:
    """Warn with scikit-learn's ConvergenceWarning."""
    warn_user(message, ConvergenceWarning)


def warn_about_the_end(options: Options, state: TrainingState) -> None:
    """Warn if the epochs ran out, or if training ended worse than it began."""
    if state.history.exhausted:
        warn_not_converged(
            f"Stochastic Optimizer: Maximum iterations ({options.epochs}) reached and the "
            "optimization hasn't converged yet."
        )
    start, end = state.loss_at_start, state.loss_at_end
    if start is not None and end is not None and not end <= WORSE * start + options.tol:
        warn_not_converged(
            f"Training ended with a larger loss ({end:.4g}) than it began with ({start:.4g}). "
            "Scale the features (StandardScaler), or set a smaller learning_rate_init."
        )


def warn_about_recoveries(options: Options, state: TrainingState) -> None:
    """Warn if training diverged and was continued with a lower rate."""
    if state.recoveries:
        first = options.learning_rate
        warn_not_converged(
            f"Training diverged {state.recoveries} time{'s' if state.recoveries > 1 else ''}; each "
            "time the last good epoch was restored and the learning rate lowered, from "
            f"{first:g} to {first * state.damping:g}. Scale the features (StandardScaler), or set "
            "a smaller learning_rate_init."
        )


def progress(title: str, total: int) -> AbstractContextManager[Report]:
    """A context with a callback for `train`: a live bar on a terminal with rich, else lines."""
    if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
        return _bar(title, total)
    return _lines(title, total)


def _numbers(epoch: Epoch) -> str:
    score = epoch.validation_score
    return f"loss {epoch.loss:.4g}" + ("" if score is None else f", score {score:.4f}")


@contextmanager
def _lines(title: str, total: int) -> Iterator[Report]:
    """A line for each epoch, thinned to about a hundred; the last one is always there."""
    every, held = max(1, total // MOST_LINES), ""

    def report(epoch: Epoch) -> None:
        nonlocal held
        held = f"{title}: epoch {epoch.index + 1} of {total}, {_numbers(epoch)}"
        if epoch.index % every == 0:
            flush()

    def flush() -> None:
        nonlocal held
        if held:
            print(held, file=sys.stderr, flush=True)
        held = ""

    try:
        yield report
    finally:
        flush()


@contextmanager
def _bar(title: str, total: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed()
    numbers = TextColumn("{task.fields[numbers]}")
    with Progress(*columns, numbers, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, numbers="")

        def report(epoch: Epoch) -> None:
            bar.update(task, advance=1, numbers=_numbers(epoch))

        yield report
