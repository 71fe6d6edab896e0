"""The facts of a report: columns, uncertain rows, and how to use the model."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quadric.apps.shell.tables import Schema, Source, TableNetwork, TestTable
from quadric.apps.shell.tables._table_format import is_pattern
from quadric.apps.shell.tables._test_table import values_at
from quadric.utils import counted, listed, rounded

MOST_COLUMNS = 6  # of a listed row, so that it fits on paper


@dataclass(frozen=True)
class ListedRows:
    """Rows of the test table that deserve a look."""

    header: list[str]
    rows: list[list[str]]


def column_lines(schema: Schema) -> list[list[str]]:
    """Return the name, the kind and the treatment of each column."""
    lines = []
    for column in schema.columns:
        if column.kind == "category":
            what = f"one-hot encoded: {listed(column.categories, 6)}"
        elif schema.rows:
            what = f"scaled; mean {rounded(column.mean)}, standard deviation {rounded(column.std)}"
        else:
            what = "used as a number"
        if column.missing:
            what += f"; {counted(column.missing, 'missing value')} imputed"
        lines.append([column.name, column.kind, what])
    return lines + [[name, "not used", why] for name, why in schema.left_out.items()]


def rows_to_look_at(
    found: TestTable, schema: Schema, source: Source, most: int, important: Sequence[str] = ()
) -> ListedRows:
    """Return the least certain predictions, or those with the largest errors for regression.

    Each row is listed with the first inputs in `important`, or in the schema if it is empty.
    """
    truth, predicted = found.truth, found.predicted
    if schema.classes:
        top = predicted.max(axis=1)  # the probability of the predicted class
        order = np.argsort(top, kind="stable")[:most]
        names = np.array([str(label) for label in schema.classes])
        shown = [[names[truth[i]], names[predicted[i].argmax()], f"{top[i]:.3f}"] for i in order]
        header = ["row", f"true {schema.target}", "predicted", "probability"]
    else:
        error = predicted - truth
        order = np.argsort(-np.abs(error), kind="stable")[:most]
        shown = [[f"{truth[i]:.4g}", f"{predicted[i]:.4g}", f"{error[i]:+.4g}"] for i in order]
        header = ["row", f"true {schema.target}", "predicted", "error"]
    numbers, inputs = found.numbers[order], (list(important) or schema.names)[:MOST_COLUMNS]
    values = values_at(source, numbers, inputs)
    rows = [
        [str(number), *one, *map(_short, values[number])]
        for number, one in zip(numbers, shown, strict=True)
    ]
    return ListedRows([*header, *inputs], rows)


def _short(text: str) -> str:
    """Return a fraction with four digits; integers and other text unchanged."""
    try:
        return rounded(float(text)) if "." in text else text
    except ValueError:
        return text


def usage(path: Path, model: Any, schema: Schema, source: Source) -> dict[str, str]:
    """Return how to use the model in the shell, in Python and with ONNX.

    The commands work in the directory of the model and the table.
    """
    table, written = _table_name(source), source.table_format
    options = {
        "--encoding": written.encoding,
        "--decimal": written.decimal if written.decimal != "." else None,
        "--thousands": written.thousands or None,
    }
    given = [f"{name} {shlex.quote(value)}" for name, value in options.items() if value]
    file, onnx = shlex.quote(path.name), shlex.quote(path.with_suffix(".onnx").name)
    arguments = " ".join([file, shlex.quote(table), *given])
    if isinstance(model, TableNetwork):
        python = f"import quadric\n\nnetwork = quadric.load({path.name!r})\n"
        python += f"network.forward(X)  # the columns {listed(map(repr, schema.names))}"
    else:
        names = "TableFormat, open_table, read_inputs" if given else "open_table, read_inputs"
        opened = f"open_table({table!r}, {written})" if given else f"open_table({table!r})"
        python = (
            f"import quadric\nfrom quadric.apps.shell.tables import {names}\n\n"
            f"model = quadric.load({path.name!r})\n"
            f"table = {opened}\n"
            "model.predict(read_inputs(model, table))"
        )
    return {
        "Shell": f"quadric predict {arguments} -o predictions.csv\n"
        f"quadric evaluate {arguments}\nquadric explain {arguments}",
        "Python": python,
        "ONNX": f"quadric export {file} {onnx}",
    }


def _table_name(source: Source) -> str:
    """Return the name of the table in examples, without the directories above it."""
    if source.spool is not None:  # standard input
        return "table.csv"
    if is_pattern(source.path):
        return str(Path(*source.path.parts[-2:]))
    return source.path.name


def summary(found: TestTable, schema: Schema) -> list[dict[str, Any]]:
    """Return the two most important scores for the top of the page."""
    names = ("accuracy", "ROC AUC") if schema.classes else ("R²", "MAE")
    return [{"name": name, **vars(found.evaluation.scores[name])} for name in names]
