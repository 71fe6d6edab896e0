"""The page of `quadric report`: scores, figures, equations, and how to use the model.

This module imports slow packages. `quadric report` imports it only if it is needed.
"""

import base64
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import files
from quadric.apps.shell._report_contributions import Contributions, contributions_of
from quadric.apps.shell.commands._console import as_options, print_notes
from quadric.apps.shell.commands._inputs import inputs_and_labels, open_model
from quadric.apps.shell.commands._plot import figure_bytes, model_figure
from quadric.apps.shell.tables import (
    Schema,
    Source,
    TableFormat,
    TableNetwork,
    TestTable,
    Trained,
    evaluate_table,
    is_pattern,
    shown,
)
from quadric.explain import Importance, explain
from quadric.plotting import (
    calibration_figure,
    plot_dependence,
    precision_recall_figure,
    residuals_figure,
    roc_figure,
)
from quadric.utils import counted, listed, require, rounded, write_whole

CURVES = {  # of the predicted probabilities
    "calibration": calibration_figure,
    "roc": roc_figure,
    "precision_recall": precision_recall_figure,
}
LISTED_ROWS = 10
MOST_COLUMNS = 6  # of a listed row, so that it fits on paper
MOST_DRAWN = 2000  # rows drawn or averaged over; more would take longer and show the same


def write_report(
    path: Path,
    table: Path | Source,
    output: Path,
    seed: int = 0,
    trained: Trained | None = None,
    table_format: TableFormat | None = None,
) -> None:
    """Score the model in a file on a table and write the report, a self-contained HTML page.

    If the model was just trained, the page contains the scores and remarks of `train`.
    """
    require("jinja2", extra="cli", by="The report")
    import jinja2

    opened = open_model(path, table, table_format)
    schema, source = opened.table
    notes = opened.notes_on_scores if trained is None else opened.notes
    if trained is None:
        found = evaluate_table(opened.model, schema, source, linear=opened.linear, seed=seed)
        how = f"the rows of {source.path.name}"
        print_notes(notes + found.notes)
        remarks = [finding.sentence for finding in schema.findings]
        remarks += found.remarks(balanced=opened.balanced, selection=opened.selection)
    else:
        assert trained.tested is not None
        found, how, remarks = trained.tested, trained.how, trained.remarks
    threshold = [trained.threshold.sentence] if trained and trained.threshold else []
    model, evaluation = opened.model, found.evaluation
    points, about = inputs_and_labels(opened), files.info(path)
    first = ("accuracy", "ROC AUC") if schema.classes else ("R²", "MAE")  # at the top of the page
    explanation, why_not = _explained(model, points[0], schema)
    importances = [] if explanation is None else explanation.importances
    contributions, why_left_out = contributions_of(opened, points[0], MOST_DRAWN)
    important = [one.name for one in importances if one.name in schema.names]
    template = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(template).render(
        model=path.name,
        schema=schema,
        evaluation=evaluation,
        score_table=evaluation.score_table(),
        class_table=evaluation.class_table(),
        summary=[{"name": name, **vars(evaluation.scores[name])} for name in first],
        shown=shown,
        largest=max((max(row) for row in evaluation.confusion), default=1) or 1,
        most_classes=15,
        columns=_column_lines(schema),
        listed=_rows_to_look_at(found, schema, source, important),
        usage=usage(path, model, schema, source),
        explanation=explanation,
        importances=importances[:15],
        parts=_parts(importances),
        contributions=contributions,
        waterfalls=_waterfalls(contributions),
        why_left_out=why_left_out,
        contents=_contents(
            bool(schema.classes), bool(remarks), bool(importances), contributions is not None
        ),
        why_not=why_not,
        as_options=as_options,
        figures=_figures(model, points, found, schema),
        how=how,
        remarks=remarks,
        notes=notes + found.notes + threshold,
        cost=trained.cost_of_equation if trained else "",
        frequencies=_frequencies(model),
        about=about,
        table_hash=source.fingerprint()["content"],
        trained_on=about["extra"].get("data") if isinstance(about["extra"], dict) else None,
    )
    write_whole(output, page.encode(errors="replace"))


def _frequencies(model: Any) -> str:
    """Return a sentence about the column of selection frequencies; empty if there is none."""
    found = None if isinstance(model, TableNetwork) else getattr(model[-1], "stability_", None)
    if found is None:
        return ""
    return (
        f"Selected: on halves of the training rows. {counted(len(found.stable), 'term')} with at "
        f"least {found.threshold:.0%}; at most {found.expected_false:.2g} false ones are expected."
    )


def _contents(of_classes: bool, remarked: bool, ranked: bool, divided: bool) -> dict[str, str]:
    """Return the titles of the sections by the ids of their headings, in order."""
    titles = {
        "remarks": "Remarks" if remarked else "",
        "scores": "Scores",
        "curves": "ROC and precision-recall curves" if of_classes else "",
        "calibration": "Calibration" if of_classes else "",
        "residuals": "" if of_classes else "Predictions and residuals",
        "equation": "Equation",
        "importances": "Importances" if ranked else "",
        "contributions": "Contributions of the inputs" if divided else "",
        "boundaries": "Boundaries" if of_classes else "",
        "surface": "" if of_classes else "Surface",
        "dependence": "Dependence and interactions",
        "rows": "Least certain rows" if of_classes else "Rows with the largest errors",
        "columns": "Columns",
        "use": "Use the model",
        "versions": "Versions",
    }
    return {name: title for name, title in titles.items() if title}


def _parts(importances: Sequence[Importance]) -> tuple[str, ...]:
    """Return the parts of the bars; after a hidden layer, there are no terms to distinguish."""
    if importances and importances[0].linear is None:
        return ("total",)
    return ("linear", "squared", "interactions")


def _explained(model: Any, X: Any, schema: Schema) -> tuple[Any, str]:
    """Return the explanation, or None and the reason why there is none."""
    try:
        sparse = not isinstance(model, TableNetwork) and hasattr(model[-1], "terms_")
        return explain(model, X, target=schema.target, top=None if sparse else 10), ""
    except (ValueError, TypeError, MemoryError) as error:
        return None, as_options(str(error))


def _column_lines(schema: Schema) -> list[list[str]]:
    """Return the name, the kind and the treatment of each column."""
    lines = []
    for column in schema.columns:
        if column.kind == "ordinal":
            what = f"encoded in this order: {' < '.join(column.categories)}"
        elif column.categories:
            how = "one-hot encoded" if column.kind == "category" else "encoded by the target"
            what = f"{how}: {listed(column.categories, 6)}"
        elif column.kind == "date":
            what = f"replaced by {listed(column.parts, 6)}, which are scaled"
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
        shown = [list(map(rounded, (truth[i], predicted[i], error[i]))) for i in order]
        header = ["row", f"true {schema.target}", "predicted", "error"]
    numbers, inputs = found.numbers[order], (list(important) or schema.names)[:MOST_COLUMNS]
    texts: dict[Any, Any] = dict.fromkeys(inputs, str)
    values = source.read()[numbers - 1].select(inputs).cast(texts).fill_null("").rows()
    rows = [
        [str(number), *one, *map(_short, row)]
        for number, one, row in zip(numbers, shown, values, strict=True)
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
        python = (
            f"import quadric\n\nnetwork = quadric.load({path.name!r})\n"
            f"network.forward(X)  # the columns {listed(map(repr, schema.names))}"
        )
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
    drawn = {name: _attempt(model_figure, name, model, *data) for name in names}
    narrow = _attempt(plot_dependence, model, data[0], target=schema.target, columns=1)
    drawn["dependence"]["narrow"] = narrow.get("image", "")
    if schema.classes:
        truth = np.array(schema.classes)[found.truth]
        for name, draw in CURVES.items():
            drawn[name] = _attempt(draw, found.predicted, truth, schema.classes)
    else:
        drawn["residuals"] = _attempt(residuals_figure, found.predicted, found.truth, schema.target)
    return drawn


def _waterfalls(contributions: Contributions | None) -> list[dict[str, str]]:
    """Return a figure for each typical row, with a narrow version for phones."""
    figures = []
    for row in contributions.rows if contributions else ():
        assert contributions is not None
        drawn = _attempt(contributions.waterfall, row)
        narrow = _attempt(contributions.waterfall, row, width=4.0).get("image", "")
        texts = {"title": row.title, "caption": contributions.caption(row)}
        figures.append({**texts, **drawn, "narrow": narrow})
    return figures


def _attempt(draw: Callable[..., Figure], *arguments: Any, **options: Any) -> dict[str, str]:
    try:
        content = figure_bytes(draw(*arguments, **options), ".png")
    except (ValueError, TypeError) as error:
        return {"why_not": as_options(str(error))}
    return {"image": "data:image/png;base64," + base64.b64encode(content).decode()}
