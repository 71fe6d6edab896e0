"""The page of a report."""

from importlib import resources
from pathlib import Path
from typing import Any

from quadric.apps.shell.report import _content, _figures
from quadric.apps.shell.tables import Schema, Source, TestTable
from quadric.apps.shell.tables._evaluation import shown
from quadric.explain import explain
from quadric.utils import require

LISTED_ROWS = 10
MOST_CLASSES = 15
MOST_IMPORTANCES = 15


def report_page(
    path: Path,
    model: Any,
    schema: Schema,
    source: Source,
    found: TestTable,
    *,
    about: dict[str, Any],
    points: tuple[Any, Any],
    how: str,
    remarks: list[str],
    notes: list[str],
) -> str:
    """Return the report of a model as a self-contained HTML page.

    Parameters
    ----------
    path : Path
        The model file.
    model : estimator
    schema : Schema
    source : Source
        The test table.
    found : TestTable
        The scores on the test table.
    about : dict
        The description of the model file; see `quadric.files.info`.
    points : (DataFrame, array)
        Complete rows of the table and their targets, for the plots and the explanation.
    how : str
        A description of the rows on which the scores are computed.
    remarks, notes : list of str
        Sentences about the model and the table.

    Returns
    -------
    str
    """
    require("jinja2", extra="cli", by="The report")
    import jinja2

    evaluation = found.evaluation
    explanation, why_not = _explained(model, points[0], schema)
    importances = [] if explanation is None else explanation.importances
    important = [one.name for one in importances if one.name in schema.names]
    largest = max((max(row) for row in evaluation.confusion), default=1) or 1
    template = resources.files(__package__).joinpath("template.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        model=path.name,
        schema=schema,
        evaluation=evaluation,
        score_table=evaluation.score_table(),
        class_table=evaluation.class_table(),
        summary=_content.summary(found, schema),
        shown=shown,
        largest=largest,
        most_classes=MOST_CLASSES,
        columns=_content.column_lines(schema),
        listed=_content.rows_to_look_at(found, schema, source, LISTED_ROWS, important),
        usage=_content.usage(path, model, schema, source),
        explanation=explanation,
        importances=importances[:MOST_IMPORTANCES],
        why_not=why_not,
        figures=_figures.figures(model, points, found, schema),
        how=how,
        remarks=remarks,
        notes=notes,
        about=about,
        trained_on=about["extra"].get("data") if isinstance(about["extra"], dict) else None,
    )


def _explained(model: Any, X: Any, schema: Schema) -> tuple[Any, str]:
    """Return the explanation, or None and the reason why there is none."""
    try:
        return explain(model, X, target=schema.target), ""
    except (ValueError, TypeError, MemoryError) as error:
        return None, str(error)
