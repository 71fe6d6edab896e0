"""Who is told that a loop is about to be compiled, which takes seconds, once per machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_watchers: list[Callable[[], None]] = []


@contextmanager
def watch_compilation(watcher: Callable[[], None]) -> Iterator[None]:
    """Call `watcher` before each loop that is compiled within the context.

    Loops that are in the cache are loaded without a call. Compilation in other threads counts.
    """
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def announce() -> None:
    """Call all watchers."""
    for watcher in list(_watchers):
        watcher()
