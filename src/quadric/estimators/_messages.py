"""Messages to the user: warnings that point to the user's own line, and progress on stderr."""

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from quadric.training import Epoch, Options, TrainingState
from quadric.utils import counted, notebook

Update = Callable[[int, str], None]
MOST_LINES = 100
WORSE = 1.01  # times the loss at the start; tolerates the noise of the last epoch


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost line of the stack outside quadric and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("quadric.", "sklearn.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_not_converged(message: str) -> None:
    """Issue a ConvergenceWarning."""
    warn_user(message, ConvergenceWarning)


def warn_about_training(options: Options, state: TrainingState) -> None:
    """Warn if 'sgd' or 'adam' did not converge, ended with a larger loss, or diverged."""
    call, rate = state.call, options.learning_rate
    start, end = call.loss_at_start, call.loss_at_end
    if state.history.exhausted and not options.resume:
        warn_not_converged(
            f"Stochastic Optimizer: Maximum iterations ({options.epochs}) reached and the "
            "optimization hasn't converged yet."
        )
    worse = start is not None and end is not None and not end <= WORSE * start + options.tol
    if worse and not options.resume:
        warn_not_converged(
            f"Training ended with a larger loss ({end:.4g}) than it began with ({start:.4g}). "
            "Scale the features (StandardScaler), or set a smaller learning_rate_init."
        )
    if call.recoveries:
        warn_not_converged(
            f"Training diverged {counted(call.recoveries, 'time')}; each time the last good epoch "
            f"was restored and the learning rate lowered, from {rate:g} to "
            f"{rate * state.schedule.damping:g}. Scale the features (StandardScaler), or set "
            "a smaller learning_rate_init."
        )


@contextmanager
def progress(title: str, total: int, rows: int = 0) -> Iterator[Callable[[Epoch], None]]:
    """Yield a callback for `train`.

    The progress is a bar in a notebook, or on a terminal if rich is installed, and plain lines
    otherwise. If `rows` is not 0, the text also has the rows per second of the last epoch.
    """
    start = time.perf_counter()
    rich = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    shown = _bar if rich else _lines
    if notebook.has_display():  # where rich would ask for ipywidgets
        shown = notebook.progress_bar

    def report(epoch: Epoch) -> None:
        score = epoch.validation_score
        text = f"loss {epoch.loss:.4g}" + ("" if score is None else f", score {score:.4f}")
        if rows:
            nonlocal start
            before, start = start, time.perf_counter()
            text += f", {rows / max(start - before, 1e-9):,.0f} rows per second"
        update(epoch.index + 1, text)

    with shown(title, total) as update:
        yield report


# Each of these, like `notebook.progress_bar`, yields a function of the finished epochs and a text.


@contextmanager
def _lines(title: str, total: int) -> Iterator[Update]:
    """Print a line per epoch, but no more than about a hundred in total, and always the last."""
    every = max(1, total // MOST_LINES)
    pending: list[str] = []

    def update(done: int, text: str) -> None:
        pending[:] = [f"{title}: epoch {done} of {total}, {text}"]
        if (done - 1) % every == 0:
            print(pending.pop(), file=sys.stderr, flush=True)

    try:
        yield update
    finally:
        for line in pending:
            print(line, file=sys.stderr, flush=True)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    with Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "{task.fields[numbers]}",
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=total, numbers="")
        yield lambda done, text: bar.update(task, advance=1, numbers=text)
