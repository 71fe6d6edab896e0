"""Write the report of a reproduction; every file is written atomically."""

import base64
import csv
import io
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from joblib import cpu_count

from quadric.apps.paper._claims import COLUMNS, KINDS, judge
from quadric.apps.paper._experiment import NEEDS_FULL, Outcome, Verdict, packaged
from quadric.apps.paper._mnist import SIDE_BY_SIDE
from quadric.apps.paper.sweep import environment
from quadric.utils import require, write_whole

MOST_FINDINGS = 5  # on the first screen
FIRST = ("mnist", "theorem", "timing", "clusters")  # outcomes that tell most about the paper
SLIPS = ("misprint", "count")  # kinds of statements whose failures are counted, not listed
NOT_THE_PAPERS = ("question", "background")  # kinds of statements that are not counted
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "matplotlib", "joblib")
# the class of each verdict in the page's style sheet
CLASSES = dict(zip(Verdict, ("yes", "partly", "no", "unknown"), strict=True))


def write_report(outcomes: Sequence[Outcome], directory: Path, about: dict[str, str]) -> Path:
    """Write index.html, claims.csv, and a CSV file per table and a PNG file per figure.

    claims.csv is not written if all results are those of other publications. Returns the path of
    the page.
    """
    pictures = {}
    for outcome in outcomes:
        for name, figure in outcome.figures.items():
            picture = io.BytesIO()
            figure.savefig(picture, format="png")
            write_whole(directory / f"{name}.png", picture.getvalue())
            pictures[name] = base64.b64encode(picture.getvalue()).decode()
        for table in outcome.tables:
            _write_csv(directory / f"{table.name}.csv", [table.columns, *table.rows])
    claims = judge(claim for outcome in outcomes for claim in outcome.claims)
    is_about_the_paper = not all(outcome.citation for outcome in outcomes)
    if is_about_the_paper:
        _write_csv(directory / "claims.csv", [COLUMNS, *(row.cells() for row in claims)])
    tables = [table for outcome in outcomes for table in outcome.tables]
    of_the_paper = [row for row in claims if row.kind not in NOT_THE_PAPERS]
    text = _html(
        outcomes=outcomes,
        about=about,
        pictures=pictures,
        findings=[(outcome, text) for outcome in _by_weight(outcomes) for text in outcome.findings][
            :MOST_FINDINGS
        ],
        lead=_lead(outcomes),
        headlines=[outcome for outcome in outcomes if outcome.headline],
        side_by_side=next((table for table in tables if table.name == SIDE_BY_SIDE), None),
        claims=of_the_paper,
        totals=Counter(row.finding.verdict for row in of_the_paper),
        kinds=[
            (title, [row for row in claims if row.kind == kind]) for kind, title in KINDS.items()
        ],
        classes=CLASSES,
        statements={row.id: row for row in claims},
        slips=sum(
            row.finding.verdict is Verdict.FAILS for row in of_the_paper if row.kind in SLIPS
        ),
        refuted=[
            row
            for row in of_the_paper
            if row.kind not in SLIPS and (row.recorded or row.finding).verdict is Verdict.FAILS
        ],
        needs_full=sum(NEEDS_FULL in row.finding.ours for row in of_the_paper),
        not_run=sum(not row.was_run for row in of_the_paper),
        is_about_the_paper=is_about_the_paper,
    )
    page = directory / "index.html"
    write_whole(page, text.encode(errors="replace"))
    return page


def _by_weight(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes, those that tell most about the paper first."""
    names = [*FIRST, *(outcome.name for outcome in outcomes)]
    return sorted(outcomes, key=lambda outcome: names.index(outcome.name))


def _lead(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, str]]:
    """Return the two figures at the top: the first ones of two outcomes, or two of a single one."""
    figures = [
        (place, outcome, name)
        for outcome in _by_weight(outcomes)
        for place, name in enumerate(outcome.figures)
    ]
    return [(outcome, name) for _, outcome, name in sorted(figures, key=lambda one: one[0])[:2]]


def _write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_whole(path, text.getvalue().encode(errors="replace"))


def _html(**values: Any) -> str:
    require("jinja2", extra="cli", by="The report")
    import jinja2

    return jinja2.Template(
        packaged("template.html"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    ).render(values)


def about_this_run(
    seconds: float, jobs: int | None = None, *, full: bool = False
) -> dict[str, str]:
    """Describe the command, the machine and the versions, so that the run can be repeated."""
    cores, here = cpu_count(), environment()
    return {
        "command": shlex.join(["quadric", *sys.argv[1:]]),
        "run": "full run: all cells, seeds and epochs"
        if full
        else "quick run: fewer cells, seeds and epochs than in the paper",
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "took": f"{seconds:.0f} s",
        "processor": f"{here.cpu}, {jobs or cores} of {cores} cores in use",
        "system": platform.platform(),
        "Python": platform.python_version(),
        "packages": ", ".join(
            [f"quadric {here.quadric}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]
        ),
    }
