"""The state of a fit in a file, from which another process continues."""

import contextlib
import io
import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.utils import write_whole

FACTS = "facts"


@dataclass
class Checkpoint:
    """A file with the state of a fit after its last iteration."""

    path: Path
    resume: bool
    facts: dict[str, Any] = field(default_factory=dict)

    def begin(self, facts: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Return the stored state if it belongs to a fit with these facts; None without `resume`.

        Raise ValueError if the file belongs to another fit or is damaged.
        """
        self.facts = json.loads(json.dumps(facts))
        if not self.resume or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = dict(stored)
            described = json.loads(arrays.pop(FACTS).tobytes())
            found, numbers = described["facts"], described["numbers"]
        except Exception as error:
            raise ValueError(
                f"{self.path} is not a checkpoint of a fit ({type(error).__name__}). Use another "
                "path, or start again without resuming."
            ) from None
        for name in self.facts:
            if found.get(name) != self.facts[name]:
                raise ValueError(
                    f"{self.path} belongs to another fit: {name} was {found.get(name)!r:.80}, but "
                    f"is now {self.facts[name]!r:.80}. Repeat that fit, with an integer as "
                    "random_state, or start again without resuming."
                )
        return arrays, numbers

    def save(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        """Replace the file atomically."""
        text = json.dumps({"facts": self.facts, "numbers": numbers}).encode()
        content = io.BytesIO()
        every: dict[str, Any] = arrays | {FACTS: np.frombuffer(text, dtype=np.uint8)}
        np.savez(content, **every)
        write_whole(self.path, content.getvalue())


_current: ContextVar[Checkpoint | None] = ContextVar("checkpoint", default=None)


def current() -> Checkpoint | None:
    """Return the checkpoint of the fits in this context."""
    return _current.get()


@contextlib.contextmanager
def checkpoint(path: Any, *, resume: bool = False) -> Iterator[Checkpoint]:
    """Store the state of a fit on Dask collections after every iteration.

    The file is replaced atomically. It is removed when the context exits without an exception.

    Parameters
    ----------
    path : str or path
        The file.
    resume : bool, default=False
        Whether to continue from the file, if there is one. The result has the same bits as if the
        fit had not been interrupted. The data and the parameters of the estimator must be the same;
        `random_state` must be an integer.

    Yields
    ------
    Checkpoint
        The file and the options, which are rarely needed.

    Examples
    --------
    >>> with checkpoint("fit.state", resume=True):  # doctest: +SKIP
    ...     model.fit(X, y)
    """
    one = Checkpoint(Path(path), resume)
    token = _current.set(one)
    try:
        yield one
        one.path.unlink(missing_ok=True)
    finally:
        _current.reset(token)
