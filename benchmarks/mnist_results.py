"""Store a full run of the MNIST table: `python -m benchmarks.mnist_results REPORT COMMIT`.

REPORT is the directory that `quadric reproduce --full --out REPORT` has written, and COMMIT is the
commit at which it was run. The script writes results/mnist_table.csv and results/mnist.md.
"""

import argparse
import csv
import datetime
import shutil
from pathlib import Path

from quadric import datasets
from quadric.paper.experiments import _mnist_cells as mnist
from quadric.paper.sweep import Recipe, Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("commit")
    arguments = parser.parse_args()
    results = Path("results")
    source = arguments.report / "mnist_table.csv"
    shutil.copy(source, results / "mnist_table.csv")
    paper = mnist.paper_table()
    cells = []
    with source.open() as file:
        for row in csv.DictReader(file):
            key = (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"])
            ours = (float(row[name]) for name in ("mean", "std", "best", "worst"))
            cells.append(mnist.Cell(*key, *ours, paper[key]["mean"], paper[key]["std"]))
    with Store(arguments.report / "runs.sqlite", read_only=True) as store:
        rows = store.runs(Recipe(), datasets.mnist().checksum)
    times = sorted(datetime.datetime.fromisoformat(row.finished_at) for row in rows)
    seconds = (times[-1] - times[0]).total_seconds()
    steps = sum(row.result.steps for row in rows)
    seeds = sorted({row.task.seed for row in rows})
    processors = ", ".join(sorted({row.environment.cpu for row in rows}))
    within = sum(bool(cell.within_2_sigmas) for cell in cells)
    near = sum(bool(cell.near) for cell in cells)
    lines = [
        "# The full MNIST table",
        "",
        f"`quadric reproduce --full` at commit {arguments.commit}; {processors}, 2 cores. "
        f"{len(rows)} runs, seeds {seeds[0]} to {seeds[-1]}, {steps / 1e6:.1f} million SGD steps "
        f"in {seconds:.0f} s from the first finished run to the last: "
        f"{steps / seconds / 1e6:.2f} million steps per second, including evaluation. "
        "[mnist_table.csv](mnist_table.csv) contains the table in the paper's format.",
        "",
        f"- **{within} of 180** means differ from the paper's by at most two standard deviations "
        "(as given in the paper).",
        f"- **{near} of 180** differ by at most three standard deviations or one percentage point.",
        "",
        "## Claims",
        "",
        "| statement | the paper's numbers | ours |",
        "|---|---|---|",
    ]
    for claim in mnist.claims_of(cells, compared=True)[1:]:
        lines.append(f"| {claim.text} | {claim.paper} | {claim.ours} |")
    lines += [
        "",
        "## Cells that differ by more than two standard deviations",
        "",
        "| images | epochs | hidden | model | ours | paper | difference | in std |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        if not cell.within_2_sigmas:
            lines.append(
                f"| {cell.train_size} | {cell.epochs} | {cell.hidden} | {cell.model} | "
                f"{cell.mean:.2f} | {cell.paper_mean:.2f} ± {cell.paper_std:.2f} | "
                f"{cell.difference:+.2f} | {cell.sigmas:+.1f} |"
            )
    (results / "mnist.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
