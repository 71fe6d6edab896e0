"""The model and the table that a command reads: their arguments and options, and opening them."""

from __future__ import annotations

import functools
import glob
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    compilation_announced,
    errors_as_one_line,
    fail,
    print_notes,
)
from quadric.apps.shell.tables._options import (
    WRITTEN,
    CostOption as CostOption,
    TableFormat as TableFormat,
    is_pattern,
    is_stdin,
)
from quadric.utils import counted

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


DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Use the workers of a Dask cluster: the address of its scheduler.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Use this many worker processes on this computer."),
]


@contextmanager
def cluster_of(dask: str | None, workers: int | None, kept: str) -> Iterator[Any]:
    """Connect to a cluster, or start worker processes; report errors in one line."""
    from quadric.cluster import connected, local_workers

    with errors_as_one_line(RuntimeError, ValueError, ConnectionError):
        if dask is not None:
            with connected(dask, kept=kept, default=True) as client:
                yield client
        else:
            with local_workers(workers or 1) as client:
                yield client


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
                values[name] = make(**{one.name: values.pop(one.name) for one in options[name]})
        with compilation_announced(disabled=values.get("as_json", False)):
            command(**values)

    flat = [one.replace(kind=one.KEYWORD_ONLY) for group in options.values() for one in group]
    flat.sort(key=lambda one: order.index(one.name) if one.name in order else len(order))
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return run


def check_exists(*paths: Path | tables.Source | None) -> None:
    """Fail early, before any slow import, if an input that is not open yet does not exist."""
    for path in paths:
        if not isinstance(path, Path) or is_stdin(path):
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
        names.extend([text] if text in columns else tables.split_names(text))
    return list(dict.fromkeys(names))


def open_model(
    path: Path, data: Path | tables.Source | None = None, table_format: TableFormat | None = None
) -> tables.OpenedModel:
    """Load a model file and open a table for it, unless the table is already open."""
    check_exists(path, data)
    from quadric import files

    extra = files.info(path)["extra"]  # a damaged file is reported before slow imports
    source = tables.open_table(data, table_format) if isinstance(data, Path) else data
    return tables.OpenedModel.of(files.load(path), extra, source)


def inputs_and_labels(opened: tables.OpenedModel) -> tuple[Any, Any]:
    """Return the inputs and targets of the rows that the model predicts; None if unknown."""
    X, y, ignored = opened.predictable_rows()
    if ignored:
        which = "without any value" if opened.imputes else "with missing values"
        print_notes([f"Ignored {counted(ignored, 'row')} {which}."])
    return X, y
