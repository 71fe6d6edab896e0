"""Load a model file and a table; shared by the commands that apply a model to a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from quadric.apps.shell.commands._console import print_notes
from quadric.errors import ModelFileError, TableError
from quadric.utils import counted

if TYPE_CHECKING:
    from quadric.apps.shell.tables import Schema, Source, TableFormat
    from quadric.apps.shell.tables._linear_baseline import LinearBaseline


@dataclass
class OpenedModel:
    """A model and, optionally, the table to apply it to.

    Attributes
    ----------
    model : estimator or TableNetwork
    schema : Schema or None
        The columns that the model uses; None if they are unknown.
    source : Source or None
        The table; None if none was given.
    notes : list of str
        Assumptions that were made, as sentences.
    labeled : bool
        Whether a column of the table with the target's name contains the true labels.
    linear : LinearBaseline or None
        The linear baseline that `quadric train` saved with the model.
    """

    model: Any
    schema: Schema | None
    source: Source | None
    notes: list[str] = field(default_factory=list)
    labeled: bool = True
    linear: LinearBaseline | None = None

    @property
    def table(self) -> tuple[Schema, Source]:
        """The columns and the table, which are known if a table was given."""
        assert self.schema is not None
        assert self.source is not None
        return self.schema, self.source

    @property
    def target(self) -> str:
        """The name of what the model predicts."""
        return "y" if self.schema is None else self.schema.target

    @property
    def labels(self) -> Any:
        """The classes of a classifier; None for a regressor."""
        return getattr(self.model, "classes_", None)

    @property
    def balanced(self) -> bool:
        """Whether the classes were weighted in training."""
        last = self.model[-1] if hasattr(self.model, "steps") else self.model
        return getattr(last, "class_weight", None) is not None

    def inputs_and_labels(self) -> tuple[Any, Any]:
        """Return the inputs and targets of the rows without missing values; None if unknown."""
        from quadric.apps.shell.tables._features import (
            check_inputs,
            complete_rows,
            features,
            labels,
        )

        schema, source, y = self.schema, self.source, None
        if schema is None or source is None:
            return None, None
        check_inputs(schema, source.columns)
        frame = source.read()
        X = features(schema, frame)
        kept = complete_rows(X)
        if self.labeled and schema.target in source.columns:
            y, present = labels(schema, frame)
            y, kept = y[kept[present]], kept & present
        if not kept.any():
            raise TableError(f"every row of {source.path} has a missing value.")
        if not kept.all():
            print_notes([f"Ignored {counted(int((~kept).sum()), 'row')} with missing values."])
        return X.filter(kept), y


def open_model(
    path: Path, data: Path | Source | None = None, table_format: TableFormat | None = None
) -> OpenedModel:
    """Load a model file and open a table for it, unless the table is already open.

    A file written by `quadric train` contains the names of the model's columns. A file with a bare
    Network may contain them; otherwise, the numeric columns are used. An estimator or pipeline
    saved in Python contains them if it was fitted to a DataFrame.
    """
    from quadric import files
    from quadric.apps.shell.tables import open_table

    extra = files.info(path)["extra"]  # a damaged file is reported before slow imports
    source = open_table(data, table_format) if isinstance(data, Path) else data

    from quadric.apps.shell.tables import TableNetwork
    from quadric.apps.shell.tables._saved_estimator import schema_of_estimator
    from quadric.network import Network

    model = files.load(path)
    extra = extra if isinstance(extra, dict) else {}
    schema = _schema_in(extra, model)
    if schema is None and isinstance(model, Network):
        network = TableNetwork(model, extra, source)
        return OpenedModel(network, network.schema, source, network.notes, "target" in extra)
    if schema is not None:
        return OpenedModel(model, schema, source, linear=_linear_in(extra, schema, model))
    if source is None:
        return OpenedModel(model, schema, source)
    found, notes = schema_of_estimator(model, extra, source)
    return OpenedModel(model, found, source, notes)


def is_table_description(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a schema from `quadric train` rather than the user's own data."""
    return isinstance(value, dict) and {"columns", "target", "task"} <= set(value)


def _schema_in(extra: dict[str, Any], model: Any) -> Schema | None:
    """Return the schema that was saved with a model, if there is one."""
    from quadric.apps.shell.tables import Schema

    state = extra.get("table")
    if not is_table_description(state):
        return None
    try:
        schema = Schema.from_dict(state)
        _check_fit(schema, model)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the table description in the model file does not fit the model ({error}). Train it "
            "again with `quadric train`, or use it in Python: quadric.load(...)."
        ) from None
    return schema


def _linear_in(extra: dict[str, Any], schema: Schema, model: Any) -> LinearBaseline | None:
    """Return the linear baseline that was saved with a model, if there is one."""
    from quadric.apps.shell.tables._linear_baseline import LinearBaseline

    if not hasattr(model, "steps"):  # the baseline needs the columns before the last step
        return None
    return LinearBaseline.from_dict(extra.get("linear"), schema, model[-1].n_features_in_)


def _check_fit(schema: Schema, model: Any) -> None:
    """Raise ValueError if a schema describes another model."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    parts = getattr(first, "transformers_", [])
    encoded = {name for part, _, columns in parts if part == "categories" for name in columns}
    agree = {
        "columns": schema.names == list(getattr(model, "feature_names_in_", ())),
        "classes": list(schema.classes) == list(getattr(model, "classes_", ())),
        "task": (schema.task == "classification") == hasattr(model, "classes_"),
        "categories": encoded
        == {column.name for column in schema.columns if column.kind == "category"},
    }
    for what, same in agree.items():
        if not same:
            raise ValueError(f"different {what}")
