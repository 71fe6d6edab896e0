"""Writing the report: each file whole or not at all."""

import base64
import csv
import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from quadric._utils.extras import require
from quadric._utils.whole_files import write_whole
from quadric.paper.experiments._outcome import Outcome, Table


def write_report(outcomes: Sequence[Outcome], directory: Path, about: dict[str, str]) -> Path:
    """Write index.html, a CSV file for each table and a PNG file for each figure.

    Returns the path of index.html.
    """
    pictures = {}
    for outcome in outcomes:
        for name, figure in outcome.figures.items():
            pictures[name] = figure_png(figure)
            write_whole(directory / f"{name}.png", pictures[name])
        for table in outcome.tables:
            write_whole(directory / f"{table.name}.csv", table_csv(table).encode(errors="replace"))
    page = directory / "index.html"
    write_whole(page, _html(outcomes, about, pictures).encode(errors="replace"))
    return page


def figure_png(figure: object) -> bytes:
    """A matplotlib figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")  # type: ignore[attr-defined]
    return buffer.getvalue()


def table_csv(table: Table) -> str:
    """The table as CSV, numbers in full."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(["" if value is None else value for value in row])
    return buffer.getvalue()


def _html(outcomes: Sequence[Outcome], about: dict[str, str], pictures: dict[str, bytes]) -> str:
    require("jinja2", extra="cli", by="The report")
    import jinja2

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = (
        resources.files("quadric.paper.report")
        .joinpath("template.html")
        .read_text(encoding="utf-8")
    )
    judged = [claim for outcome in outcomes for claim in outcome.claims if claim.holds is not None]
    claims = [claim for claim in judged if not claim.erratum]
    errata = [claim for claim in judged if claim.erratum]
    return environment.from_string(text).render(
        outcomes=outcomes,
        about=about,
        pictures={
            name: "data:image/png;base64," + base64.b64encode(data).decode()
            for name, data in pictures.items()
        },
        holding=sum(bool(claim.holds) for claim in claims),
        judged=len(claims),
        errata=len(errata),
        errors=sum(not claim.holds for claim in errata),
    )
