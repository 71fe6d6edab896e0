"""Store a run of the bilinear MLPs: `python -m benchmarks.bilinear_results STORE COMMIT`.

STORE is the file that `quadric reproduce bilinear` has written (runs.sqlite in its directory), and
COMMIT is the commit at which it was run. Data sets of which a run is missing are left out. The
script writes results/bilinear.md, and the tables with all digits and the figures to
results/bilinear/.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from quadric import datasets
from quadric.apps.paper.bilinear import _reproduction as reproduction
from quadric.apps.paper.bilinear._published import NAMES
from quadric.apps.paper.experiments._experiment import Context, Outcome, Table
from quadric.apps.paper.studies._runs import Part
from quadric.apps.paper.sweep import Store


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
        "digits are in [bilinear/](bilinear). [Reproducing the paper](../docs/reproduce.md) "
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
        (part,) = reproduction.parts_for(context)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("commit")
    parser.add_argument("--full", action="store_true", help="five seeds instead of one")
    parser.add_argument("--load", default="measured while other programs ran")
    arguments = parser.parse_args()
    with Store(arguments.store) as store:
        names = stored_data(store, reproduction.SEEDS[arguments.full])
        if not names:
            raise SystemExit("No data set is complete in this store.")
        first, *rest = (getattr(datasets, name)() for name in names)
        context = Context(
            full=arguments.full, images=first, fashion=rest[0] if rest else None, store=store
        )
        outcome = reproduction.run(context)
        seconds = run_times(store, reproduction.parts_for(context))
    command = "quadric reproduce bilinear" + " --full" * arguments.full
    results = Path("results")
    (results / "bilinear").mkdir(exist_ok=True)
    for table in outcome.tables:
        with (results / "bilinear" / f"{table.name}.csv").open(
            "w", newline="", encoding="utf-8"
        ) as file:
            csv.writer(file, lineterminator="\n").writerows([table.columns, *table.rows])
    for name, figure in outcome.figures.items():
        figure.savefig(results / "bilinear" / f"{name}.png", dpi=100)
    text = page(outcome, command, arguments.commit, seconds, arguments.load)
    (results / "bilinear.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
