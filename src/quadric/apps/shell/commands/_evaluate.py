"""`quadric evaluate`: score a model on a table."""

from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Column, Table

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    print_json,
    print_line,
    print_notes,
    print_table,
)
from quadric.apps.shell.commands._inputs import (
    BootstrapSeedOption,
    CostOption,
    JsonOption,
    LabeledTableArgument,
    ModelArgument,
    TableFormat,
    open_model,
)
from quadric.utils import counted, visible

MOST_SHOWN_CLASSES = 15


def evaluate(
    model: ModelArgument,
    data: LabeledTableArgument,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="The column to compare with [default: the model's target]."
        ),
    ] = None,
    seed: BootstrapSeedOption = 0,
    cost: CostOption = (),
    *,
    table_format: TableFormat,
    as_json: JsonOption = False,
) -> None:
    """Score a model on a table that contains the target.

    Every score is printed with its 95% bootstrap interval and next to the scores of two baselines:
    the most frequent class or the mean of the target, and logistic or linear regression. The
    second baseline needs a model that was trained with `quadric train`.
    """
    with errors_as_one_line():
        opened = open_model(model, data, table_format)
        schema, source = opened.table
        schema = schema if target is None else replace(schema, target=target)
        found = tables.evaluate_table(opened.model, schema, source, linear=opened.linear, seed=seed)
        remarks = found.remarks(balanced=opened.balanced, selection=opened.selection)
        threshold = found.cheapest_threshold(cost) if cost else None
    notes = opened.notes_on_scores + found.notes
    if as_json:
        print_json(
            {
                "model": str(model),
                "data": str(data),
                "target": schema.target,
                "notes": notes,
                "remarks": remarks,
                "threshold": threshold.to_dict() if threshold else None,
                **found.evaluation.to_dict(),
            }
        )
        return
    print_notes(notes)
    print_line(f"{schema.target}, {counted(found.evaluation.rows, 'row')}:")
    print_evaluation(found.evaluation)
    print_threshold(threshold)
    print_remarks(remarks)


def print_evaluation(evaluation: "tables.Evaluation") -> None:
    """Print the scores and, for classifiers, the scores of each class and the confusion matrix."""
    _print(evaluation.score_table())
    if not evaluation.classes:
        return
    if len(evaluation.classes) > MOST_SHOWN_CLASSES:
        confusion = " and the confusion matrix" if evaluation.confusion else ""
        print_line(
            f"{len(evaluation.classes)} classes; --json lists the scores of each{confusion}."
        )
        return
    first = "" if evaluation.repetitions == 1 else " in the first repetition"
    typer.echo(f"\nScores of each class{first}:")
    _print(evaluation.class_table())
    typer.echo(f"\nConfusion matrix{first} (rows: true class, columns: predicted class):")
    names = [visible(str(one["class"])) for one in evaluation.classes]
    rows = zip(names, evaluation.confusion, strict=True)
    _print([["", *names], *([name, *map(str, row)] for name, row in rows)])


def print_threshold(threshold: "tables.CheapestThreshold | None") -> None:
    """Print the cheapest threshold, if costs were given."""
    if threshold:
        print_line(threshold.sentence)


def print_remarks(remarks: list[str]) -> None:
    """Print remarks about the quality of a model, one per line."""
    for remark in remarks:
        print_line(f"Remark: {remark}")


def _print(lines: list[list[str]]) -> None:
    """Print a table whose first line is the header."""
    first, *others = lines[0]
    # two lines for a long name, so that the scores fit into 80 columns
    names = [name if len(name) < 16 else "\n".join(name.rsplit(" ", 1)) for name in others]
    columns = (Column(name, justify="right") for name in names)
    print_table(Table(first, *columns), lines[1:])
