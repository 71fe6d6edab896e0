"""The page of `quadric report`: scores, figures, equations, and how to use the model.

This module imports slow packages. `quadric report` imports it only if it is needed.
"""

import base64
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import files
from quadric.apps.shell.commands._console import as_options, print_notes
from quadric.apps.shell.commands._inputs import inputs_and_labels, open_model
from quadric.apps.shell.commands._plot import figure_bytes, model_figure
from quadric.apps.shell.tables import (
    OpenedModel,
    Schema,
    Source,
    TableFormat,
    TableNetwork,
    TestTable,
    Trained,
    evaluate_table,
)
from quadric.apps.shell.tables._evaluation import shown
from quadric.apps.shell.tables._held_out import values_at
from quadric.apps.shell.tables._options import is_pattern
from quadric.explain import explain
from quadric.plotting import calibration_figure, residuals_figure
from quadric.utils import counted, listed, require, rounded, write_whole

LISTED_ROWS = 10
MOST_COLUMNS = 6  # of a listed row, so that it fits on paper
MOST_DRAWN = 2000  # rows drawn or averaged over; more would take longer and show the same


def write_report(
    model: Path,
    table: Path | Source,
    path: Path,
    seed: int = 0,
    trained: Trained | None = None,
    table_format: TableFormat | None = None,
) -> None:
    """Score a saved model on a table and write the report, a self-contained HTML page.

    If the model was just trained, the page contains the scores and remarks of `train`.
    """
    opened = open_model(model, table, table_format)
    schema, source = opened.table
    if trained is None:
        found = evaluate_table(opened.model, schema, source, linear=opened.linear, seed=seed)
        how = f"the rows of {source.path.name}"
        print_notes(opened.notes + found.notes)
        remarks = found.remarks(balanced=opened.balanced)
    else:
        assert trained.tested is not None
        found, how, remarks = trained.tested, trained.how, trained.remarks
    page = _page(model, opened, found, how, remarks)
    write_whole(path, page.encode(errors="replace"))


def _page(path: Path, opened: OpenedModel, found: TestTable, how: str, remarks: list[str]) -> str:
    """Return the page.

    Parameters
    ----------
    path : Path
        The model file.
    opened : OpenedModel
        The model and the test table.
    found : TestTable
        The scores on the test table.
    how : str
        A description of the rows on which the scores are computed.
    remarks : list of str
        Sentences about the model.
    """
    require("jinja2", extra="cli", by="The report")
    import jinja2

    model, (schema, source) = opened.model, opened.table
    points, about = inputs_and_labels(opened), files.info(path)
    evaluation = found.evaluation
    first = ("accuracy", "ROC AUC") if schema.classes else ("R²", "MAE")  # at the top of the page
    explanation, why_not = _explained(model, points[0], schema)
    importances = [] if explanation is None else explanation.importances
    important = [one.name for one in importances if one.name in schema.names]
    largest = max((max(row) for row in evaluation.confusion), default=1) or 1
    template = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        model=path.name,
        schema=schema,
        evaluation=evaluation,
        score_table=evaluation.score_table(),
        class_table=evaluation.class_table(),
        summary=[{"name": name, **vars(evaluation.scores[name])} for name in first],
        shown=shown,
        largest=largest,
        most_classes=15,
        columns=_column_lines(schema),
        listed=_rows_to_look_at(found, schema, source, important),
        usage=usage(path, model, schema, source),
        explanation=explanation,
        importances=importances[:15],
        why_not=why_not,
        as_options=as_options,
        figures=_figures(model, points, found, schema),
        how=how,
        remarks=remarks,
        notes=opened.notes + found.notes,
        about=about,
        table_hash=source.fingerprint()["content"],
        trained_on=about["extra"].get("data") if isinstance(about["extra"], dict) else None,
    )


def _explained(model: Any, X: Any, schema: Schema) -> tuple[Any, str]:
    """Return the explanation, or None and the reason why there is none."""
    try:
        return explain(model, X, target=schema.target), ""
    except (ValueError, TypeError, MemoryError) as error:
        return None, as_options(str(error))


def _column_lines(schema: Schema) -> list[list[str]]:
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


def _rows_to_look_at(
    found: TestTable, schema: Schema, source: Source, important: Sequence[str]
) -> list[list[str]]:
    """Return the least certain predictions, or those with the largest errors for regression.

    The first line is the header. Each row is listed with the first inputs in `important`, or in
    the schema if it is empty.
    """
    truth, predicted = found.truth, found.predicted
    if schema.classes:
        top = predicted.max(axis=1)  # the probability of the predicted class
        order = np.argsort(top, kind="stable")[:LISTED_ROWS]
        names = np.array([str(label) for label in schema.classes])
        shown = [[names[truth[i]], names[predicted[i].argmax()], f"{top[i]:.3f}"] for i in order]
        header = ["row", f"true {schema.target}", "predicted", "probability"]
    else:
        error = predicted - truth
        order = np.argsort(-np.abs(error), kind="stable")[:LISTED_ROWS]
        shown = [[f"{truth[i]:.4g}", f"{predicted[i]:.4g}", f"{error[i]:+.4g}"] for i in order]
        header = ["row", f"true {schema.target}", "predicted", "error"]
    numbers, inputs = found.numbers[order], (list(important) or schema.names)[:MOST_COLUMNS]
    values = values_at(source, numbers, inputs)
    rows = [
        [str(number), *one, *map(_short, values[number])]
        for number, one in zip(numbers, shown, strict=True)
    ]
    return [[*header, *inputs], *rows]


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
    table, written = source.path.name, source.table_format
    if source.spool is not None:  # standard input
        table = "table.csv"
    elif is_pattern(source.path):
        table = str(Path(*source.path.parts[-2:]))
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


def _figures(
    model: Any, points: tuple[Any, Any], found: TestTable, schema: Schema
) -> dict[str, dict[str, str]]:
    """Return figures by name, each with its "image", a data URL, or with the reason "why_not".

    Parameters
    ----------
    model : estimator
    points : (DataFrame, array)
        Rows and their targets.
    found : TestTable
        The predictions that are compared with the truth.
    schema : Schema
    """
    X, y = points
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_DRAWN])
    data = X[rows], None if y is None else y[rows], schema.target
    names = ["boundaries" if schema.classes else "surface", "dependence"]
    drawn = {name: _attempt(partial(model_figure, name, model, *data)) for name in names}
    if schema.classes:
        truth = np.array(schema.classes)[found.truth]
        drawn["calibration"] = _attempt(
            lambda: calibration_figure(found.predicted, truth, schema.classes)
        )
    else:
        drawn["residuals"] = _attempt(
            lambda: residuals_figure(found.predicted, found.truth, schema.target)
        )
    return drawn


def _attempt(draw: Callable[[], Figure]) -> dict[str, str]:
    try:
        content = figure_bytes(draw(), ".png")
    except (ValueError, TypeError) as error:
        return {"why_not": as_options(str(error))}
    return {"image": "data:image/png;base64," + base64.b64encode(content).decode()}
