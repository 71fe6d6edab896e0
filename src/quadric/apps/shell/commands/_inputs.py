"""The model and the table that a command reads: their arguments and options, and opening them."""

from __future__ import annotations

import csv
import functools
import glob
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, get_origin

import typer

from quadric.apps.shell.commands._console import errors_as_one_line, fail, print_notes
from quadric.apps.shell.tables._options import (
    WRITTEN,
    TableFormat as TableFormat,
    is_pattern,
    is_stdin,
)
from quadric.errors import ModelFileError, TableError
from quadric.utils import counted

if TYPE_CHECKING:
    from quadric.apps.shell.tables import Schema, Source
    from quadric.apps.shell.tables._evaluation import LinearBaseline
    from quadric.models import ModelView

TABLE_HELP = "a CSV or Parquet file, a directory of Parquet files, a pattern, or - for stdin"

ModelArgument = Annotated[
    Path,
    typer.Argument(
        readable=False, help="A model file from `quadric train` or, in Python, `quadric.save`."
    ),
]
TableArgument = Annotated[
    Path,
    typer.Argument(readable=False, help=f"A table with the model's columns: {TABLE_HELP}."),
]
LabeledTableArgument = Annotated[
    Path,
    typer.Argument(
        readable=False, help=f"A table with the model's columns and the target: {TABLE_HELP}."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
BootstrapSeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed of the bootstrap.")
]

KeepOption = Annotated[
    list[str] | None,
    typer.Option("--keep", help="Columns of the table to copy to the output; may be repeated."),
]
RawCsvOption = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Do not add an apostrophe in front of text that looks like a spreadsheet formula.",
    ),
]


def with_options(command: Callable[..., None], order: Sequence[str] = ()) -> Callable[..., None]:
    """Let a command take dataclasses, whose annotated fields become options of the command.

    The name, the default and the help of these options are declared once, in the dataclass. Help
    lists the options in the order of the signature, but those in `order` first.
    """
    groups: dict[str, Any] = {}
    options: dict[str, list[inspect.Parameter]] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        options[name] = [parameter]
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            fields = inspect.signature(groups[name], eval_str=True).parameters.values()
            options[name] = [one for one in fields if get_origin(one.annotation) is Annotated]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        with errors_as_one_line():  # the dataclasses check their values
            for name, make in groups.items():
                own = {option.name: values.pop(option.name) for option in options[name]}
                values[name] = make(**own)
        command(**values)

    flat = [one.replace(kind=one.KEYWORD_ONLY) for group in options.values() for one in group]
    flat.sort(key=lambda one: order.index(one.name) if one.name in order else len(order))
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return run


def check_exists(*paths: Path | None) -> None:
    """Fail early, before any slow import, if an input does not exist."""
    for path in paths:
        if path is None or is_stdin(path):
            continue
        try:
            if not is_pattern(path):
                os.stat(path)
            elif not glob.glob(str(path)):
                fail(f"no file matches {path}.")
        except OSError as error:
            fail(f"cannot read {path}: {error.strerror}.")


def check_written(path: Path) -> None:
    """Raise BadParameter unless a table can be written in the format of this file name."""
    if path.suffix.lower() not in WRITTEN:
        raise typer.BadParameter(
            f"tables are written as .csv, .tsv or .parquet files. Got {path.name!r}."
        )


def column_names(texts: Iterable[str] | None, columns: Sequence[str]) -> list[str]:
    """Return the names in a repeatable option such as --drop.

    Each string is a name, or several names separated by commas. The name of a column that contains
    a comma can be given as it is, or in double quotes.
    """
    names: list[str] = []
    for text in texts or ():
        names.extend([text] if text in columns else split_names(text))
    return list(dict.fromkeys(names))


def split_names(text: str) -> list[str]:
    """Split a string at commas, except within double quotes.

    >>> split_names('a, "b, c"')
    ['a', 'b, c']
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise TableError(f"{text!r} is not a list of names: {error}.") from None
    return [name.strip() for row in rows for name in row if name.strip()]


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

    @functools.cached_property
    def view(self) -> ModelView:
        """The classes, the inputs and the estimator of the model."""
        from quadric.models import ModelView

        return ModelView.of(self.model)

    @property
    def balanced(self) -> bool:
        """Whether the classes were weighted in training."""
        return getattr(self.view.estimator, "class_weight", None) is not None

    def inputs_and_labels(self) -> tuple[Any, Any]:
        """Return the inputs and targets of the rows without missing values; None if unknown."""
        from quadric.apps.shell.tables._schema import (
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
    from quadric.apps.shell.tables._saved_model import schema_of_estimator
    from quadric.network import Network

    opened = OpenedModel(files.load(path), None, source)
    extra = extra if isinstance(extra, dict) else {}
    if is_table_description(extra.get("table")):
        opened.schema = _schema_in(extra["table"], opened.view)
        if opened.view.transformers:  # they compute the columns of the baseline
            from quadric.apps.shell.tables._evaluation import LinearBaseline

            opened.linear = LinearBaseline.from_dict(
                extra.get("linear"), opened.schema, opened.view.network.n_inputs
            )
    elif isinstance(opened.model, Network):
        network = TableNetwork(opened.model, extra, source)
        return OpenedModel(network, network.schema, source, network.notes, "target" in extra)
    elif source is not None:
        opened.schema, opened.notes = schema_of_estimator(opened.model, extra, source)
    return opened


def is_table_description(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a schema from `quadric train` rather than the user's own data."""
    return isinstance(value, dict) and {"columns", "target", "task"} <= set(value)


def _schema_in(state: dict[str, Any], view: ModelView) -> Schema:
    """Return the schema that was saved with a model."""
    from quadric.apps.shell.tables import Schema

    try:
        schema = Schema.from_dict(state)
        _check_fit(schema, view)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the table description in the model file does not fit the model ({error}). Train it "
            "again with `quadric train`, or use it in Python: quadric.load(...)."
        ) from None
    return schema


def _check_fit(schema: Schema, view: ModelView) -> None:
    """Raise ValueError if a schema describes another model."""
    names, classes = view.input_names, view.classes
    parts = [part for step in view.transformers[:1] for part in getattr(step, "transformers_", ())]
    encoded = {name for part, _, columns in parts if part == "categories" for name in columns}
    agree = {
        "columns": schema.names == ([] if names is None else list(names)),
        "classes": list(schema.classes) == ([] if classes is None else list(classes)),
        "task": (schema.task == "classification") == (classes is not None),
        "categories": encoded
        == {column.name for column in schema.columns if column.kind == "category"},
    }
    for what, same in agree.items():
        if not same:
            raise ValueError(f"different {what}")
