"""A live bar on stderr for `verbose=True`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["live_bar"]

Update = Callable[[float, float | None], None]


@contextmanager
def live_bar(title: str, total: int, verbose: bool) -> Iterator[Update]:
    """Yields a function of (loss, score) to be called after every epoch."""
    if not verbose:
        yield lambda loss, score: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed(),
        TextColumn("{task.fields[numbers]}"), console=Console(stderr=True),
    )  # fmt: skip
    with progress:
        task = progress.add_task(title, total=total, numbers="")

        def update(loss: float, score: float | None) -> None:
            numbers = f"loss {loss:.4g}" + ("" if score is None else f"  score {score:.4f}")
            progress.update(task, advance=1, numbers=numbers)

        yield update
