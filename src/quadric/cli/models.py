"""What the commands that take a model file share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadric.cli.console import fail

if TYPE_CHECKING:
    from quadric.tables import Schema

__all__ = ["load_model", "table_of"]


def load_model(path: Path) -> tuple[Any, Schema | None]:
    """The model in a file, and the table that it was trained on, where `quadric train` made it."""
    from quadric import model_file

    _must_exist(path)
    model = model_file.load(path)
    return model, table_of(model_file.info(path))


def describe_model(path: Path) -> dict[str, Any]:
    """What a file says of itself; the numbers are not read."""
    from quadric import model_file

    _must_exist(path)
    return model_file.info(path)


def table_of(info: dict[str, Any]) -> Schema | None:
    """The schema among what was saved with a model."""
    from quadric.tables import Schema

    state = info.get("extra", {}).get("table")
    try:
        return None if state is None else Schema.from_dict(state)
    except (KeyError, TypeError, ValueError):
        fail("the file's description of its table is not of this version of quadric.")


def needs_table(schema: Schema | None, path: Path) -> Schema:
    """One line and exit code 1 for a model that knows nothing of tables."""
    if schema is None:
        fail(
            f"{path} does not say which columns it takes: it was not made by `quadric train`. Use "
            "it in Python: quadric.load(...)."
        )
    return schema


def _must_exist(path: Path) -> None:
    if not path.exists():
        fail(f"there is no file {path}.")
