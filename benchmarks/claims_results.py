"""Store the verdicts of full runs: `python -m benchmarks.claims_results REPORT [REPORT ...]`.

Each REPORT is a directory that `quadric reproduce --full --out REPORT` has written. If several runs
judge a claim, the last one counts; without a REPORT, the stored verdicts are kept and only the
claims that the list judges itself are updated. The script writes results/claims.csv and
docs/claims.md.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from quadric.apps.paper.claims import COLUMNS, Judged, judge, markdown_page, read_rows

TABLE, PAGE = Path("results") / "claims.csv", Path("docs") / "claims.md"


def merged(runs: Sequence[Sequence[Judged]]) -> list[Judged]:
    """Return a row for every claim: that of the last run that judged it."""
    rows = {row.id: row for row in judge([])}
    for run in runs:
        for row in run:
            if row.id in rows and row.judged_by.startswith("quadric ") and row.was_run:
                listed = rows[row.id]  # where the claim stands comes from the list
                verdicts = row.paper, row.paper_verdict, row.ours, row.verdict, row.method
                rows[row.id] = Judged(*listed.cells()[:4], *verdicts, listed.judged_by)
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", type=Path, nargs="*")
    tables = [TABLE, *(report / "claims.csv" for report in parser.parse_args().reports)]
    rows = merged(
        [
            read_rows(table.read_text(encoding="utf-8").splitlines())
            for table in tables
            if table.exists()
        ]
    )
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *(row.cells() for row in rows)])
    PAGE.write_text(markdown_page(rows), encoding="utf-8")
    print(f"{TABLE} and {PAGE}: {len(rows)} claims")


if __name__ == "__main__":
    main()
