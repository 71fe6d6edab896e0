"""A checkpoint: where a run stands, in one file that is whole or the one before it."""

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

import quadric
from quadric._utils.arrays import Array
from quadric._utils.whole_files import remove_leftovers, write_whole
from quadric.errors import ModelFileError, TableError
from quadric.model_file import _safetensors as container
from quadric.model_file._canonical_json import canonical, parse
from quadric.tables._state_checks import check_fields, require

FORM = container.Form(
    "checkpoint", "quadric_checkpoint", frozenset({"versions"}),
    "Remove it, and start again without --resume.",
)  # fmt: skip
LONGEST_NAME = 255  # bytes, in the file systems of today
STATE = "state"


class Checkpoint:
    """The file of one run.

    It is a container as model files are: numbers and text, nothing in it is executed, and all of
    it is checked. Only a file that is a checkpoint is ever replaced or removed, never one that
    another process has put in its place; links are not followed.

    Parameters
    ----------
    path : Path
        See `checkpoint_path`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run: dict[str, Any] = {}
        self._tag = ""
        self._ours: tuple[int, ...] | None = None  # the file that we have read or written

    def begin(
        self, run: dict[str, Any], *, resume: bool
    ) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """The state and the arrays of an earlier checkpoint; None if there is nothing to resume.

        Parameters
        ----------
        run : dict
            The data and the settings that a checkpoint must belong to.
        resume : bool
            If false, an earlier checkpoint is not read, and replaced by the first `save`.

        Raises
        ------
        TableError
            Where the file is not ours to replace or, with `resume`, damaged or of another run.
        """
        plain = parse(canonical(run))
        self._run = {name: plain[name] for name in run}  # in the order of what is said first
        self._tag = hashlib.sha256(canonical(run).encode()).hexdigest()[:8]
        found = self._found()
        if found is None:
            return None
        self._check_ours()
        stored = self._read() if resume else None
        self._ours = found
        return stored

    def save(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Replace the file in one step; OSError where that is not possible."""
        text = canonical({"run": self._run, "state": state}).encode()
        tensors = {**arrays, STATE: np.frombuffer(text, dtype=np.uint8)}
        content = container.to_bytes({"versions": _versions()}, tensors, FORM)
        found = self._found()
        if found not in (None, self._ours):
            raise self._replaced()
        try:
            write_whole(self.path, content, follow_links=False, new=found is None, tag=self._tag)
        except FileExistsError:
            raise self._replaced() from None
        self._ours = self._found()

    def remove(self) -> None:
        """Remove the file that this run has written, and temporary files that it left behind."""
        with contextlib.suppress(OSError):
            if self._ours is not None and self._found() == self._ours:
                self.path.unlink()
        if self._tag:
            remove_leftovers(self.path, self._tag)

    def damaged(self, reason: object) -> TableError:
        """What to say of a state that is not as it should be."""
        return TableError(
            f"{self.path} is a damaged checkpoint ({reason}). Remove it, and start again without "
            "--resume."
        )

    def _found(self) -> tuple[int, ...] | None:
        """Which file there is, if any."""
        try:
            now = os.lstat(self.path)
        except FileNotFoundError:
            return None
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns

    def _check_ours(self) -> None:
        if not stat.S_ISREG(os.lstat(self.path).st_mode):
            what = "is a link, a directory, a device or a pipe"
        elif not container.has_key(self.path, FORM):
            what = "exists and is no checkpoint of quadric"
        else:
            return
        raise TableError(
            f"{self.path} {what}, and is where the checkpoint would go. Move it away, or give "
            "another name with -o."
        )

    def _replaced(self) -> TableError:
        return TableError(
            f"{self.path} was put there by another process: does another run have the same "
            "output? Give this one another name with -o."
        )

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        try:
            description, arrays = container.read(self.path, FORM)
        except ModelFileError as error:
            raise TableError(str(error)) from None
        try:
            require(STATE in arrays and arrays[STATE].dtype == np.uint8, "its state")
            described = parse(arrays.pop(STATE).tobytes().decode("ascii"))
            check_fields(described, ("run", "state"), "its state")
            run, state = described["run"], described["state"]
            require(isinstance(run, dict) and isinstance(state, dict), "its state")
        except ValueError as error:  # of the text, of its JSON, or of what is in it
            raise self.damaged(error) from None
        run |= {"versions": description["versions"]}
        expected = self._run | {"versions": _versions()}
        for name in [*expected, *run]:
            if name not in run or name not in expected or run[name] != expected[name]:
                raise TableError(
                    f"{self.path} belongs to another run: {name} was {repr(run.get(name))[:80]}, "
                    f"and is {repr(expected.get(name))[:80]}. Give the same command as then, or "
                    "start again without --resume."
                )
        return state, arrays


def checkpoint_path(output: Path) -> Path:
    """Where the checkpoint of a run goes: beside the output, under a name that is short enough."""
    name = f"{output.name}.checkpoint"
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f"{hashlib.sha256(os.fsencode(output.name)).hexdigest()[:16]}.checkpoint"
    return output.with_name(name)


def _versions() -> dict[str, str]:
    """With other versions, the rest of a run may give other bits."""
    return {"numpy": np.__version__, "quadric": quadric.__version__}
