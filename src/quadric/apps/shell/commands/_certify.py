"""`quadric certify`: how far each row of a table is from another class."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    check_options,
    check_picture,
    errors_as_one_line,
    output_path,
    print_json,
    print_line,
    print_notes,
    print_table,
    progress_bar,
)
from quadric.apps.shell.commands._inputs import (
    JsonOption,
    KeepOption,
    ModelArgument,
    RawCsvOption,
    TableArgument,
    TableFormat,
    check_written,
    column_names,
    open_model,
)
from quadric.apps.shell.commands._plot import figure_bytes
from quadric.utils import counted, rounded, rounded_down, write_whole


def certify(
    model: ModelArgument,
    data: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write predictions and radii: .csv, .tsv or .parquet."),
    ] = None,
    min_radius: Annotated[
        float,
        typer.Option(
            "--min-radius", min=0.0, help="Abstain (leave the prediction empty) below this radius."
        ),
    ] = 0.0,
    units: Annotated[
        str,
        typer.Option(
            help="Units of the radii: 'inputs', those of the columns, or 'scaled', the columns' "
            "standard deviations in training."
        ),
    ] = "inputs",
    fixed: Annotated[
        list[str] | None,
        typer.Option(help="Inputs that cannot change; may be repeated. Categories never change."),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            help="Also compute the probability that normal noise with this standard deviation, in "
            "--units, changes the predicted class."
        ),
    ] = None,
    fragile: Annotated[
        int, typer.Option(min=0, help="Number of rows with the smallest radii to print.")
    ] = 5,
    keep: KeepOption = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the certified accuracy: .png, .svg or .pdf."),
    ] = None,
    raw_csv: RawCsvOption = False,
    *,
    table_format: TableFormat,
    as_json: JsonOption = False,
) -> None:
    """Certify predictions: how far each row can move before its predicted class can change.

    The radius of a row is proven: no input that is closer has another predicted class, rounding
    errors included. If the table contains the target, the certified accuracy is the share of rows
    that are predicted correctly and have at least the given radius.
    """
    check_options(
        {
            f"--units must be 'inputs' or 'scaled'. Got {units!r}.": (
                units not in ("inputs", "scaled")
            ),
            f"--noise must be positive. Got {noise}.": noise is not None and not noise > 0,
            "--keep and --raw-csv need a file for the radii: -o radii.csv.": (
                output is None and (keep or raw_csv)
            ),
        }
    )
    if output is not None:
        check_written(output_path(output, inputs=[model, data]))
    if picture is not None:
        check_picture(output_path(picture, "--plot", [model, data, output]), "--plot")
    with errors_as_one_line(ValueError, TypeError):
        opened = open_model(model, data, table_format)
        schema, source = opened.table
        names = column_names(fixed, schema.names)
        numbers = [name for name in names if name not in schema.categories]
        kept = column_names(keep, source.columns)
        tables.check_columns(kept, source.columns)
        with progress_bar("Certifying") as report:
            found = tables.certify_table(
                opened, units=units, fixed=numbers, noise=noise, progress=report
            )
        if output is not None:
            found.write(output, source.read().select(kept), min_radius, raw_csv=raw_csv)
        if picture is not None:
            _draw(found, picture)
    notes = opened.notes + found.notes()
    summary = {"units": units, **({} if noise is None else {"noise": noise})} | found.summary(
        min_radius, fragile
    )
    if as_json:
        print_json(summary | {"output": None if output is None else str(output), "notes": notes})
        return
    print_notes(notes)
    _print(summary)
    for name, file in {"Radii": output, "Curve": picture}.items():
        if file is not None:
            print_line(f"{name}: {file}")


def _print(summary: dict[str, Any]) -> None:
    unit = "standard deviations" if summary["units"] == "scaled" else "the units of the inputs"
    print_line(f"{counted(summary['rows'], 'row')}; radii in {unit}.")
    name = "certified accuracy" if "certified_accuracy" in summary else "certified share"
    curve = [(at["radius"], at["share"]) for at in summary[name.replace(" ", "_")]]
    table = Table(Column("radius", justify="right"), Column(name, justify="right"), box=None)
    print_table(table, [(rounded_down(at), f"{100 * share:.1f} %") for at, share in curve])
    if summary["min_radius"] > 0:
        share = summary["accuracy_of_answered"]
        accuracy = "" if share is None else f"; accuracy of the others {100 * share:.1f} %"
        print_line(
            f"Abstained for {counted(summary['rows'] - summary['answered'], 'row')} with a radius "
            f"below {rounded(summary['min_radius'])}{accuracy}."
        )
    if summary["fragile"]:
        print_line("Most fragile rows (quadric explain MODEL DATA --row N explains one):")
    for row in summary["fragile"]:
        change = "" if row["becomes"] is None else f", becomes {row['becomes']}"
        print_line(
            f"  row {row['row']}: {row['predicted']}, radius {rounded_down(row['radius'])}{change}"
        )

    if "noisy" in summary:
        _print_noise(summary, unit)


def _print_noise(summary: dict[str, Any], unit: str) -> None:
    mean, error = summary["mean_flip_probability"], summary["largest_flip_error"]
    print_line(
        f"Noise with standard deviation {rounded(summary['noise'])} in {unit} changes the class "
        f"with a mean probability of {100 * mean:.2f} % (errors at most {error:.0e})."
    )
    for row in summary["noisy"]:
        print_line(
            f"  row {row['row']}: {row['predicted']}, {100 * row['probability']:.2f} %, "
            f"most likely to become {row['becomes']}"
        )


def _draw(found: "tables.CertifiedTable", path: Path) -> None:
    from matplotlib.figure import Figure

    from quadric.plotting import plot_certified_accuracy

    figure = Figure(figsize=(6.4, 4.2), layout="constrained", dpi=150)
    plot_certified_accuracy(*found.labeled, figure.subplots())
    write_whole(path, figure_bytes(figure, path.suffix))
