"""`quadric evaluate`: score a model on a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Column, Table

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    make_console,
    print_json,
    print_line,
    print_notes,
    print_table,
)
from quadric.apps.shell.commands._inputs import (
    BootstrapSeedOption,
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
        remarks = found.remarks(balanced=opened.balanced)
    notes = opened.notes + found.notes
    if as_json:
        about = {"model": str(model), "data": str(data), "target": schema.target}
        print_json({**about, "notes": notes, "remarks": remarks, **found.evaluation.to_dict()})
        return
    print_notes(notes)
    print_line(f"{schema.target}, {counted(found.evaluation.rows, 'row')}:")
    print_evaluation(found.evaluation)
    print_remarks(remarks)


def print_evaluation(evaluation: tables.Evaluation) -> None:
    """Print the scores and, for classifiers, the scores of each class and the confusion matrix."""
    _print(evaluation.score_table())
    if not evaluation.classes:
        return
    console = make_console()
    if len(evaluation.classes) > MOST_SHOWN_CLASSES:
        confusion = " and the confusion matrix" if evaluation.confusion else ""
        console.print(
            f"{len(evaluation.classes)} classes; --json lists the scores of each{confusion}."
        )
        return
    console.print("\nScores of each class:")
    _print(evaluation.class_table())
    console.print("\nConfusion matrix (rows: true class, columns: predicted class):")
    names = [visible(str(one["class"])) for one in evaluation.classes]
    rows = zip(names, evaluation.confusion, strict=True)
    _print([["", *names], *([name, *map(str, row)] for name, row in rows)])


def print_remarks(remarks: list[str]) -> None:
    """Print remarks about the quality of a model, one per line."""
    for remark in remarks:
        make_console().print(f"Remark: {visible(remark)}")


def _print(lines: list[list[str]]) -> None:
    """Print a table whose first line is the header."""
    first, *others = lines[0]
    # two lines for a long name, so that the scores fit into 80 columns
    names = [name if len(name) < 16 else "\n".join(name.rsplit(" ", 1)) for name in others]
    header = [Column(first), *(Column(name, justify="right") for name in names)]
    print_table(Table(*header), lines[1:])
