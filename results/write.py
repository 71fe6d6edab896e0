"""Store the results of `quadric reproduce` in this directory: `python -m results.write`.

    python -m results.write claims [REPORT ...]
    python -m results.write mnist REPORT COMMIT
    python -m results.write runs NAME STORE COMMIT
    python -m results.write bilinear STORE COMMIT [--full] [--load TEXT]

REPORT is a directory that `quadric reproduce --full --out REPORT` has written, and STORE the file
runs.sqlite in such a directory. COMMIT is the commit at which the command was run.

`claims` writes claims.csv, docs/results/claims.md, and the file recorded.csv of the package. If
several runs judge a claim, the last one counts; without a REPORT, the stored verdicts are kept and
only the claims that the list judges itself are updated. `mnist` writes mnist.csv and mnist.md.
`runs` writes the accuracies of all runs of mnist, ablation or cnn-head to runs/. `bilinear` writes
bilinear.md, and the tables with all digits and the figures to bilinear/. Data sets of which a run
is missing are left out.
"""

import argparse
import csv
import datetime
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quadric import datasets
from quadric.apps.paper import (
    Context,
    Outcome,
    Recipe,
    Store,
    Table,
    Verdict,
    _ablation,
    _bilinear,
    _cnn_head,
    statements,
)
from quadric.apps.paper._bilinear import NAMES
from quadric.apps.paper._claims import (
    COLUMNS,
    KINDS,
    Statement,
    document,
    judge,
)
from quadric.apps.paper._experiment import NAMES as MODEL_OF, Claim, Part
from quadric.apps.paper._mnist_claims import (
    RULE,
    Accuracies,
    Cell,
    accuracies_of,
    cells_of,
    claims_of,
    paper_table,
    rows_below,
)

RESULTS = Path(__file__).parent
RECORDED = RESULTS.parent / "src" / "quadric" / "apps" / "paper" / "recorded.csv"
RECORDED_COLUMNS = ("id", "verdict", "paper", "ours")
PAGE_OF_CLAIMS = RESULTS.parent / "docs" / "results" / "claims.md"


INTRODUCTION = """\
# The paper: all statements

This page lists every statement of the paper that can be true or false, in our words, with a verdict
on what the paper prints (its numbers, figures and derivations) and a verdict on what we find. The
claims are grouped by kind. Under *Evidence*, they follow the order of the table above it; their
names are the column `id` of [results/claims.csv](../../results/claims.csv), from which this page is
generated.
[Reproducing the paper](../guide/reproduce.md#how-claims-are-judged) describes how claims are
judged, and [the overview](paper.md) summarizes them.

A place such as II 13.1 means section II, paragraph 13, sentence 1. A paragraph is a block of
running text: a displayed equation, table, figure, algorithm or heading ends it, and an equation
belongs to the text before it. m is the number of neurons of a layer, and n is the number of its
inputs.
"""


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


# ---- claims --------------------------------------------------------------------------------------


def read_rows(lines: Iterable[str]) -> list[Statement]:
    """Return the rows of a file claims.csv; where a claim stands comes from the list."""
    rows = [row for row in csv.DictReader(lines) if row["id"] in statements()]
    return [_with_finding(statements()[row["id"]], _finding(row)) for row in rows]


def _with_finding(statement: Statement, finding: Claim) -> Statement:
    is_known = finding.verdict is not Verdict.UNKNOWN
    return replace(statement, finding=finding, recorded=None if is_known else statement.recorded)


def _finding(row: dict[str, str]) -> Claim:
    verdicts = Verdict(row["verdict on ours"]), Verdict(row["verdict on the paper"])
    return Claim(row["id"], row["the paper"], row["ours"], *verdicts, row["method"])


def merged(runs: Sequence[Sequence[Statement]]) -> list[Statement]:
    """Return a row for every claim: that of the last run that judged it."""
    rows = {row.id: row for row in judge([])}
    for run in runs:
        for row in run:
            if row.judged_by.startswith("quadric ") and row.was_run:
                rows[row.id] = row
    return list(rows.values())


def markdown_page(rows: Sequence[Statement]) -> str:
    """Return the page: counts of verdicts, the claims by kind, and sentences without a claim."""
    verdicts = {
        kind: Counter(row.finding.verdict for row in rows if row.kind == kind) for kind in KINDS
    }
    parts = [
        INTRODUCTION,
        _table(
            ("our verdict", *verdicts),
            [(str(one), *(str(found[one]) for found in verdicts.values())) for one in Verdict],
        ),
        f"{len(rows)} statements. Questions are ours; the other kinds are the paper's.\n",
    ]
    for kind, title in KINDS.items():
        own = [row for row in rows if row.kind == kind]
        parts += [
            f"## {title}\n",
            _table(("claim", "place", "the paper", "ours"), map(_cells, own)),
            "### Evidence\n" if kind != "background" else "### Reasons\n",
            "\n".join(map(_evidence, own)) + "\n",
        ]
    parts += [
        "## Sentences without a claim\n",
        "Together with the places above, these are all sentences of the paper.\n",
        "\n".join(
            f"- *{reason}*: {', '.join(places)}"
            for reason, places in document()["text"]["without_claim"].items()
        )
        + "\n",
    ]
    return "\n".join(parts)


def _cells(row: Statement) -> tuple[str, str, str, str]:
    found = row.finding
    return row.claim, ", ".join(row.where), f"{found.paper_verdict}", f"**{found.verdict}**"


def _evidence(row: Statement) -> str:
    """Return a line of a list: what is printed and found, and how it was judged."""
    found = row.finding
    printed = f"The paper: {found.paper}. " if found.paper != "-" else ""
    method = f" *{found.method.rstrip('.')}.*" if found.method else ""
    judged = f" {_judge(row.judged_by)}" if row.was_run and row.judged_by != "-" else ""
    return f"- `{row.id}`: {printed}Ours: {found.ours.rstrip('.')}.{method}{judged}"


def _judge(name: str) -> str:
    """Return a command as code, a derivation as a link, and a test as a comment."""
    if "::" in name:
        return f"<!-- test: {name} -->"
    if ".md#" in name:
        return f"[Derivation]({name.removeprefix('results/')})."
    return f"`{name}`"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def recorded_rows(rows: Iterable[Statement]) -> list[tuple[str, ...]]:
    """Return what the package shows if a run cannot judge a claim itself."""
    return [
        (row.id, row.finding.verdict, row.finding.paper, row.finding.ours)
        for row in rows
        if row.experiment or row.study
    ]


def write_claims(reports: Sequence[Path]) -> None:
    """Write claims.csv, docs/results/claims.md and the recorded.csv of the package."""
    table = RESULTS / "claims.csv"
    tables = [table, *(report / "claims.csv" for report in reports)]
    rows = merged(
        [
            read_rows(path.read_text(encoding="utf-8").splitlines())
            for path in tables
            if path.exists()
        ]
    )
    write_csv(table, [COLUMNS, *(row.cells() for row in rows)])
    write_csv(RECORDED, [RECORDED_COLUMNS, *recorded_rows(rows)])
    PAGE_OF_CLAIMS.write_text(markdown_page(rows), encoding="utf-8")
    print(f"{table}, {RECORDED} and {PAGE_OF_CLAIMS}: {len(rows)} claims")


# ---- the MNIST table -----------------------------------------------------------------------------


def results_of(cells: Sequence[Cell], accuracies: Accuracies | None = None) -> str:
    """Return the claims and the cells that are not reproduced as Markdown."""
    lines = [
        "## Claims",
        "",
        RULE,
        "",
        "| claim | the paper's numbers | verdict | our numbers | verdict |",
        "|---|---|---|---|---|",
    ]
    for claim in claims_of(cells, True, accuracies):
        lines.append(
            f"| {statements()[claim.id].claim} | {claim.paper} | {claim.paper_verdict} | "
            f"{claim.ours} | {claim.verdict} |"
        )
    lines += [
        "",
        "## Cells that are not reproduced",
        "",
        "The means differ by more than 2 standard errors.",
        "",
        "| images | epochs | hidden | model | ours | paper | difference | z |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        if cell.is_within is False:
            assert cell.paper is not None
            assert cell.comparison is not None
            lines.append(
                f"| {' | '.join(map(str, cell.key))} | "
                f"{cell.ours.mean:.2f} ± {cell.ours.std:.2f} | "
                f"{cell.paper.mean:.2f} ± {cell.paper.std:.2f} | "
                f"{cell.comparison.difference:+.2f} | {cell.z:+.1f} |"
            )
    if accuracies is not None:
        lines += [
            "",
            "## The rows in which the paper prints an RPQNN below the ANN",
            "",
            "RPQNN minus ANN in percentage points, compared in pairs of runs with the same seed; p "
            "is adjusted by Holm's method.",
            "",
            "| images | epochs | hidden | paper | ours | standard error | p | significant |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row, (printed, test) in rows_below(cells, accuracies).items():
            lines.append(
                f"| {' | '.join(map(str, row))} | {printed:+.2f} | {test.difference:+.2f} | "
                f"{test.error:.2f} | {test.p:.2g} | {'yes' if test.sign else 'no'} |"
            )
    return "\n".join(lines) + "\n"


def write_mnist(report: Path, commit: str) -> None:
    """Write mnist.csv and mnist.md."""
    table = RESULTS / "mnist.csv"
    shutil.copy(report / "mnist_comparison.csv", table)
    with Store(report / "runs.sqlite", read_only=True) as store:
        runs = store.runs(Recipe(), datasets.mnist().checksum)
    times = sorted(datetime.datetime.fromisoformat(run.finished_at) for run in runs)
    seconds = (times[-1] - times[0]).total_seconds()
    steps = sum(run.result.visited for run in runs)
    seeds = sorted({run.task.seed for run in runs})
    processors = ", ".join(sorted({run.environment.cpu for run in runs}))
    cells = cells_of(runs, Recipe(), paper_table())
    text = (
        "# The full MNIST table\n\n"
        f"`quadric reproduce mnist --full --seeds {len(seeds)} --first-seed {seeds[0]}` at commit "
        f"{commit}; "
        f"{processors}, 2 cores with other load. {len(runs)} runs, seeds {seeds[0]} to "
        f"{seeds[-1]}, {steps / 1e6:.1f} million SGD steps in {seconds:.0f} s from the first "
        "finished run to the last. The recipe was chosen before these seeds were run. "
        "[mnist.csv](mnist.csv) contains mean, standard deviation, best and worst of every cell "
        "next to the paper's, and z, the difference of the means in standard errors.\n\n"
        + results_of(cells, accuracies_of(runs, Recipe()))
    )
    (RESULTS / "mnist.md").write_text(text, encoding="utf-8")
    print(text)


# ---- single runs ---------------------------------------------------------------------------------

STUDIES_WITH_RUNS = {"ablation": _ablation, "cnn-head": _cnn_head}


def write_runs(name: str, path: Path, commit: str) -> None:
    """Write the accuracies of all runs of the MNIST table or of a study."""
    data = datasets.mnist()
    with Store(path, read_only=True) as store:
        methods: list[tuple[Any, Sequence[str]]]
        if name == "mnist":
            methods = [(Recipe(), [f"after {epochs} epochs" for epochs in Recipe().epochs])]
        else:
            parts = STUDIES_WITH_RUNS[name].parts(Context(full=True, images=data))
            methods = [(part.study, part.study.measures) for part in parts]
        rows = [
            (run.task.size, run.task.hidden, run.task.kind, run.task.seed, measure, 100 * accuracy)
            for method, measures in methods
            for run in store.runs(method, data.checksum)
            for measure, accuracy in zip(measures, run.result.accuracies, strict=True)
        ]
    seeds = sorted({row[3] for row in rows})
    command = f"quadric reproduce {name} --full --seeds {len(seeds)} --first-seed {seeds[0]}"
    table = RESULTS / "runs" / f"{name}.csv"
    table.parent.mkdir(exist_ok=True)
    numbers = [(*row[:5], f"{row[5]:.2f}") for row in sorted(rows)]
    write_csv(table, [RUN_COLUMNS, *numbers])
    table.with_suffix(".md").write_text(
        f"`{command}` at commit {commit}, {len(rows)} numbers: accuracies in percent on the 10 000 "
        f"test images of MNIST.\n",
        encoding="utf-8",
    )
    print(f"{table}: {len(rows)} numbers")


RUN_COLUMNS = ("images", "hidden", "kind", "seed", "measured", "accuracy")


def read_runs(name: str) -> dict[tuple[int, int, str, str], dict[int, float]]:
    """Return the accuracies of committed runs by (images, hidden, kind, measured) and seed."""
    found: dict[tuple[int, int, str, str], dict[int, float]] = {}
    text = (RESULTS / "runs" / f"{name}.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        key = (int(row["images"]), int(row["hidden"]), row["kind"], row["measured"])
        found.setdefault(key, {})[int(row["seed"])] = float(row["accuracy"])
    return found


def read_mnist_runs() -> Accuracies:
    """Return the accuracies of the committed runs of the MNIST table, as `accuracies_of`."""
    return {
        (size, int(measured.split()[1]), hidden, MODEL_OF[kind]): runs
        for (size, hidden, kind, measured), runs in read_runs("mnist").items()
    }


# ---- bilinear MLPs -------------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """Return a table with its title and note as Markdown."""
    head = [f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    cells = [[table.text(k, value) for k, value in enumerate(row)] for row in table.rows]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([f"## {table.title}", "", table.note, "", *head, *rows])


def page(outcome: Outcome, command: str, commit: str, seconds: Sequence[float], load: str) -> str:
    """Return the text of results/bilinear.md."""
    about = (
        f"`{command}` at commit {commit}; {', '.join(outcome.facts['processors'])}. A run took "
        f"{min(seconds):.0f} to {max(seconds):.0f} s on one core, {load}. The tables with all "
        "digits are in [bilinear/](bilinear). [Reproducing the paper](../docs/guide/reproduce.md) "
        "explains the settings and the measures."
    )
    findings = "\n".join(f"- {finding}" for finding in outcome.findings)
    parts = [f"# Bilinear MLPs\n\n{about}", outcome.summary, findings]
    figures = [
        f"{outcome.captions[name]}\n\n![{outcome.captions[name]}](bilinear/{name}.png)"
        for name in outcome.figures
    ]
    return "\n\n".join([*parts, *map(markdown, outcome.tables), "## Figures", *figures]) + "\n"


def stored_data(store: Store, seeds: int) -> list[str]:
    """Return the names of the data sets whose runs are all in the store."""
    complete = []
    for name in NAMES:
        context = Context(images=getattr(datasets, name)(), seeds=seeds, store=store)
        (part,) = _bilinear.parts(context)
        assert part.data is not None
        found = {run.task for run in store.runs(part.study, part.data.checksum)}
        if found >= set(part.tasks):
            complete.append(name)
    return complete


def run_times(store: Store, parts: Sequence[Part]) -> list[float]:
    """Return the seconds of all runs."""
    return [
        run.result.seconds
        for part in parts
        if part.data is not None
        for run in store.runs(part.study, part.data.checksum)
        if run.task in part.tasks
    ]


def write_bilinear(path: Path, commit: str, *, full: bool, load: str) -> None:
    """Write bilinear.md, and its tables and figures."""
    with Store(path) as store:
        names = stored_data(store, _bilinear.SEEDS[full])
        if not names:
            raise SystemExit("No data set is complete in this store.")
        first, *rest = (getattr(datasets, name)() for name in names)
        context = Context(full=full, images=first, fashion=rest[0] if rest else None, store=store)
        outcome = _bilinear.run(context)
        seconds = run_times(store, _bilinear.parts(context))
    directory = RESULTS / "bilinear"
    directory.mkdir(exist_ok=True)
    for table in outcome.tables:
        write_csv(directory / f"{table.name}.csv", [table.columns, *table.rows])
    for name, figure in outcome.figures.items():
        figure.savefig(directory / f"{name}.png", dpi=100)
    command = "quadric reproduce bilinear" + " --full" * full
    text = page(outcome, command, commit, seconds, load)
    (RESULTS / "bilinear.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results = parser.add_subparsers(dest="results", required=True)
    results.add_parser("claims").add_argument("reports", type=Path, nargs="*")
    mnist, bilinear = results.add_parser("mnist"), results.add_parser("bilinear")
    runs = results.add_parser("runs")
    runs.add_argument("name", choices=["mnist", *STUDIES_WITH_RUNS])
    runs.add_argument("store", type=Path)
    runs.add_argument("commit")
    mnist.add_argument("report", type=Path)
    mnist.add_argument("commit")
    bilinear.add_argument("store", type=Path)
    bilinear.add_argument("commit")
    bilinear.add_argument("--full", action="store_true", help="five seeds instead of one")
    bilinear.add_argument("--load", default="measured while other programs ran")
    given = parser.parse_args()
    if given.results == "claims":
        write_claims(given.reports)
    elif given.results == "mnist":
        write_mnist(given.report, given.commit)
    elif given.results == "runs":
        write_runs(given.name, given.store, given.commit)
    else:
        write_bilinear(given.store, given.commit, full=given.full, load=given.load)


if __name__ == "__main__":
    main()
