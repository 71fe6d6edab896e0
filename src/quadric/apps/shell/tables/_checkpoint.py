"""Checkpoints of a streaming run: one file, replaced atomically."""

import contextlib
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

import quadric
from quadric.apps.shell.tables._schema import check_fields, expect
from quadric.checks import Array
from quadric.errors import ModelFileError, TableError
from quadric.files import Form, has_form, read_tensors, tensor_bytes
from quadric.utils import remove_leftovers, write_whole

ADVICE = "Remove it, and start again without --resume."
FORM = Form("checkpoint", "quadric_checkpoint", frozenset({"versions"}), ADVICE)
LONGEST_NAME = 255  # bytes, in most file systems
STATE = "state"


class Checkpoint:
    """The checkpoint of one run.

    The format is that of model files: it contains only numbers and text, which are all checked and
    never executed. Only checkpoints are replaced or removed, and never a file that another process
    has written in the meantime. Links are not followed.

    Parameters
    ----------
    path : Path
        See `checkpoint_path`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run: dict[str, Any] = {}
        self._tag = ""
        self._ours: tuple[int, ...] | None = None  # the file that this run has read or written

    def begin(
        self, run: dict[str, Any], *, resume: bool
    ) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the state and the arrays of an earlier checkpoint, or None if there is none.

        Parameters
        ----------
        run : dict
            The data and settings that a checkpoint must match.
        resume : bool
            If False, an earlier checkpoint is not read, and the first `save` replaces it.

        Raises
        ------
        TableError
            If the file is not a checkpoint or if, with `resume`, it is damaged or belongs to
            another run.
        """
        text = json.dumps(run)
        self._run = json.loads(text)  # in the order of `run`: errors name the first difference
        self._tag = hashlib.sha256(text.encode()).hexdigest()[:8]
        current = self._current()
        if current is None:
            return None
        regular = stat.S_ISREG(os.lstat(self.path).st_mode)
        if not regular or not has_form(self.path, FORM):
            what = (
                "not a quadric checkpoint" if regular else "a link, a directory, a device or a pipe"
            )
            raise TableError(
                f"{self.path} is {what}, so the checkpoint cannot be written there. Move it, "
                "or choose another output with -o."
            )
        stored = self._read() if resume else None
        self._ours = current
        return stored

    def save(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Replace the file atomically; raise OSError if it cannot be written."""
        text = json.dumps({"run": self._run, "state": state}).encode()
        tensors = {**arrays, STATE: np.frombuffer(text, dtype=np.uint8)}
        content = tensor_bytes({"versions": _versions()}, tensors, FORM)
        current = self._current()
        try:
            if current not in (None, self._ours):
                raise FileExistsError
            write_whole(self.path, content, follow_links=False, new=current is None, tag=self._tag)
        except FileExistsError:
            raise TableError(
                f"{self.path} was written by another process, perhaps a run with the same output. "
                "Choose another output with -o."
            ) from None
        self._ours = self._current()

    def remove(self) -> None:
        """Remove the file that this run has written, and its temporary files."""
        with contextlib.suppress(OSError):
            if self._ours is not None and self._current() == self._ours:
                self.path.unlink()
        if self._tag:
            remove_leftovers(self.path, self._tag)

    def damaged(self, reason: object) -> TableError:
        """Return the error for an invalid state."""
        return TableError(f"{self.path} is a damaged checkpoint ({reason}). {ADVICE}")

    def _current(self) -> tuple[int, ...] | None:
        """Return values that identify the current file, or None if there is none."""
        try:
            now = os.lstat(self.path)
        except FileNotFoundError:
            return None
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        try:
            description, arrays = read_tensors(self.path, FORM)
        except ModelFileError as error:
            raise TableError(str(error)) from None
        try:
            expect(STATE in arrays and arrays[STATE].dtype == np.uint8, "its state")
            described = json.loads(arrays.pop(STATE).tobytes().decode("ascii"))
            check_fields(described, {"run": dict, "state": dict}, "its state")
        except (ValueError, RecursionError) as error:  # invalid encoding, JSON or values
            raise self.damaged(error) from None
        run = described["run"] | {"versions": description["versions"]}
        expected = self._run | {"versions": _versions()}
        for name in [*expected, *run]:
            if name not in run or name not in expected or run[name] != expected[name]:
                raise TableError(
                    f"{self.path} belongs to another run: {name} was {repr(run.get(name))[:80]}, "
                    f"but is now {repr(expected.get(name))[:80]}. Repeat that run's command, "
                    "or start again without --resume."
                )
        return described["state"], arrays


def checkpoint_path(output: Path) -> Path:
    """Return the checkpoint's path: the output path plus ".checkpoint", unless that is too long."""
    name = f"{output.name}.checkpoint"
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f"{hashlib.sha256(os.fsencode(output.name)).hexdigest()[:16]}.checkpoint"
    return output.with_name(name)


def _versions() -> dict[str, str]:
    """Return the versions that must match for a resumed run to be bit-identical."""
    return {"numpy": np.__version__, "quadric": quadric.__version__}
