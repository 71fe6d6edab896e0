"""What the commands that take a model file share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from quadric.cli._console import fail
from quadric.errors import ModelFileError

if TYPE_CHECKING:
    from quadric.tables import Schema, Source


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
    extra = extra if isinstance(extra, dict) else {}
    schema = _trained_on(extra, model)
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


def _trained_on(extra: dict[str, Any], model: Any) -> Schema | None:
    """The schema among what was saved with a model; None for a "table" that is not ours."""
    from quadric.tables import Schema

    state = extra.get("table")
    if not is_description(state):
        return None
    try:
        schema = Schema.from_dict(state)
        _check_fit(schema, model)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the file's description of its table does not fit its model ({error}). Train the "
            "model again with `quadric train`, or use it in Python: quadric.load(...)."
        ) from None
    return schema


def is_description(table: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is what `quadric train` says of a table, and not a note of somebody else's."""
    return isinstance(table, dict) and {"columns", "target", "task"} <= set(table)


def _check_fit(schema: Schema, model: Any) -> None:
    """Raise ValueError unless the model takes these columns and predicts these classes."""
    if not isinstance(schema.target, str) or not schema.target:
        raise ValueError("the target has no name")
    if schema.names != list(getattr(model, "feature_names_in_", ())):
        raise ValueError("its columns are not those of the model")
    if not all(isinstance(name, str) for name in schema.order) or (
        schema.order and not set(schema.names) <= set(schema.order)
    ):
        raise ValueError("the order of its columns is none")
    if list(schema.classes) != list(getattr(model, "classes_", ())):
        raise ValueError("its classes are not those of the model")
    if (schema.task == "classification") != hasattr(model, "classes_"):
        raise ValueError("its task is not that of the model")
    categories = [column for column in schema.columns if column.kind == "category"]
    if not all(isinstance(text, str) for column in categories for text in column.categories):
        raise ValueError("a category is no text")
    if {column.name for column in categories} != _encoded(model):
        raise ValueError("its categories are not those of the model")


def _encoded(model: Any) -> set[str]:
    """The columns that a model of `quadric train` takes as categories."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    parts = getattr(first, "transformers_", [])
    return {name for part, _, columns in parts if part == "categories" for name in columns}


def _must_exist(path: Path) -> None:
    if not path.exists():
        fail(f"there is no file {path}.")
