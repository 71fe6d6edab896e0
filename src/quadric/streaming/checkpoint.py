"""A checkpoint: where a run stands, in one file that is whole or the one before it."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.errors import TableError
from quadric.whole_files import write_whole

__all__ = ["Checkpoint"]


class Checkpoint:
    """The file of one run; it is known by `run`, the data and the settings it belongs to.

    Numbers and arrays only, in NumPy's own format: nothing in it is executed.
    """

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self.path, self.run = path, json.loads(json.dumps(run))

    def save(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Replace the file in one step; OSError where that is not possible."""
        text = json.dumps({"run": self.run, "state": state})
        buffer = io.BytesIO()
        np.savez(buffer, description=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
        write_whole(self.path, buffer.getvalue())

    def load(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """State and arrays; None if there is no file. TableError if it is damaged or another's."""
        try:
            content = io.BytesIO(self.path.read_bytes())
            with np.load(content, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            described = json.loads(arrays.pop("description").tobytes())
            run, state = described["run"], described["state"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
            raise TableError(
                f"{self.path} is no checkpoint, or a damaged one. Start again without --resume."
            ) from None
        other = [name for name in self.run if run.get(name) != self.run[name]]
        if other or set(run) != set(self.run):
            what = f"{other[0]} was {run.get(other[0])!r}" if other else "it is of another version"
            raise TableError(
                f"{self.path} belongs to another run: {what}. Give the same command as then, or "
                "start again without --resume."
            )
        return state, arrays

    def remove(self) -> None:
        """When the run is over."""
        with contextlib.suppress(OSError):
            self.path.unlink()
            for left in self.path.parent.glob(f".{self.path.name}.*.part"):
                left.unlink()
