"""Store a full run of the MNIST table: `python -m benchmarks.mnist_results REPORT COMMIT`.

REPORT is the directory that `quadric reproduce mnist --full --out REPORT` has written, and COMMIT
is the commit at which it was run. The script writes results/mnist.csv and results/mnist.md.
"""

import argparse
import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

from quadric import datasets
from quadric.apps.paper.claims import statements
from quadric.apps.paper.experiments._mnist_cells import Cell, compare, paper_table, read_table
from quadric.apps.paper.experiments._mnist_claims import RULE, claims_of
from quadric.apps.paper.sweep import Recipe, Store


def results_of(cells: Sequence[Cell]) -> str:
    """Return the claims and the cells that are not reproduced as Markdown."""
    lines = [
        "## Claims",
        "",
        RULE,
        "",
        "| claim | the paper's numbers | verdict | our numbers | verdict |",
        "|---|---|---|---|---|",
    ]
    for claim in claims_of(cells, compared=True):
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
                f"| {cell.train_size} | {cell.epochs} | {cell.hidden} | {cell.model} | "
                f"{cell.ours.mean:.2f} ± {cell.ours.std:.2f} | "
                f"{cell.paper.mean:.2f} ± {cell.paper.std:.2f} | "
                f"{cell.comparison.difference:+.2f} | {cell.z:+.1f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("commit")
    arguments = parser.parse_args()
    results = Path("results")
    table = results / "mnist.csv"
    shutil.copy(arguments.report / "mnist_comparison.csv", table)
    with Store(arguments.report / "runs.sqlite", read_only=True) as store:
        runs = store.runs(Recipe(), datasets.mnist().checksum)
    times = sorted(datetime.datetime.fromisoformat(run.finished_at) for run in runs)
    seconds = (times[-1] - times[0]).total_seconds()
    steps = sum(run.result.steps for run in runs)
    seeds = sorted({run.task.seed for run in runs})
    processors = ", ".join(sorted({run.environment.cpu for run in runs}))
    cells = compare(
        read_table(table.read_text(encoding="utf-8").splitlines(), len(seeds)), paper_table()
    )
    text = (
        "# The full MNIST table\n\n"
        f"`quadric reproduce mnist --full --first-seed {seeds[0]}` at commit {arguments.commit}; "
        f"{processors}, 2 cores with other load. {len(runs)} runs, seeds {seeds[0]} to "
        f"{seeds[-1]}, {steps / 1e6:.1f} million SGD steps in {seconds:.0f} s from the first "
        "finished run to the last. The recipe was chosen before these seeds were run. "
        "[mnist.csv](mnist.csv) contains mean, standard deviation, best and worst of every cell "
        "next to the paper's, and z, the difference of the means in standard errors.\n\n"
        + results_of(cells)
    )
    (results / "mnist.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
