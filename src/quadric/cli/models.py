"""What the commands that take a model file share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadric.cli.console import fail

if TYPE_CHECKING:
    from quadric.tables import Schema, Source

__all__ = ["Opened", "describe_model", "load_model", "open_model"]


@dataclass
class Opened:
    """A model, what it takes from tables, where that is known, and the table it is used on.

    `labelled`: whether a column of the table that is named as the target holds the true labels.
    """

    model: Any
    schema: Schema | None
    source: Source | None
    notes: list[str] = field(default_factory=list)
    labelled: bool = True


def load_model(path: Path) -> Any:
    """The model in a file, as it was saved."""
    from quadric import model_file

    _must_exist(path)
    return model_file.load(path)


def describe_model(path: Path) -> dict[str, Any]:
    """What a file says of itself; the numbers are not read."""
    from quadric import model_file

    _must_exist(path)
    return model_file.info(path)


def open_model(path: Path, data: Path | None = None) -> Opened:
    """The model in a file and, where there is one, a table that it can be used on.

    A model of `quadric train` knows its columns. A bare Network may; otherwise it takes the
    columns of numbers. One line and exit code 1 for a model that knows nothing of tables.
    """
    from quadric.network import Network
    from quadric.tables import TableNetwork, open_table

    model = load_model(path)
    extra = describe_model(path)["extra"]
    schema = _trained_on(extra)
    source = None if data is None else open_table(data)
    if schema is None and isinstance(model, Network):
        network = TableNetwork(model, extra, source)
        return Opened(network, network.schema, source, network.notes, "target" in extra)
    if schema is None and source is not None:
        fail(
            f"{path} does not say which columns it takes: it was not made by `quadric train`. Use "
            "it in Python: quadric.load(...)."
        )
    return Opened(model, schema, source)


def _trained_on(extra: dict[str, Any]) -> Schema | None:
    """The schema among what was saved with a model."""
    from quadric.tables import Schema

    state = extra.get("table")
    try:
        return None if state is None else Schema.from_dict(state)
    except (KeyError, TypeError, ValueError):
        fail("the file's description of its table is not of this version of quadric.")


def _must_exist(path: Path) -> None:
    if not path.exists():
        fail(f"there is no file {path}.")
