"""Settings under which torch gives the same numbers for the same seed, in any thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()  # torch's random state is shared by all threads


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread within the context."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Set torch's seed within the context, and restore the random state afterwards."""
    with _lock, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
