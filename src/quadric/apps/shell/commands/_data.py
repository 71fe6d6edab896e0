"""`quadric data`: list, download and verify data sets."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from quadric.apps.shell.commands._console import (
    as_options,
    fail,
    make_console,
    print_json,
    print_line,
    print_table,
)
from quadric.errors import DatasetError
from quadric.utils import visible

data = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="List, download and verify data sets.",
)

DatasetName = StrEnum("DatasetName", ["mnist", "fashion_mnist"])


@data.command("list", epilog="Example: `quadric data list --json`")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """List the data sets, their locations and whether their files are valid; download nothing."""
    from quadric.datasets import check_files

    rows: list[dict[str, Any]] = []
    for name in DatasetName:
        directory, files = check_files(name.value)
        problems = [problem for _, _, problem in files if problem]
        rows.append(
            {
                "name": name.value,
                "where": str(directory) if files else None,
                "size": (
                    sum(path.stat().st_size for path, _, _ in files if path.exists())
                    if files
                    else None
                ),
                "verified": bool(files) and not problems,
                "problem": as_options(problems[0]) if problems else None,
            }
        )
    if as_json:
        print_json({"rows": rows})
        return
    headings = [Column(name, overflow="fold") for name in ("name", "where", "size", "verified")]
    print_table(
        Table(*headings, title="Data sets in files", title_justify="left"),
        (
            (row["name"], "not found")
            if row["where"] is None
            else (
                row["name"],
                visible(row["where"]),
                f"{row['size'] / 1e6:.1f} MB",
                "yes" if row["verified"] else "no",
            )
            for row in rows
        ),
    )
    for problem in filter(None, (row["problem"] for row in rows)):
        print_line(problem)
    print_line("The other data sets (xor, clusters, digits) need no files.")


@data.command(epilog="Example: `quadric data fetch mnist`")
def fetch(
    name: Annotated[DatasetName, typer.Argument(help="The data set.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Save to a subdirectory of this directory instead of the cache. To use it later, "
            "set QUADRIC_DATA or pass data_dir=...",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Download again and replace existing files.")
    ] = False,
) -> None:
    """Download a data set from the first source that has it and verify it."""
    from quadric.datasets import download

    try:
        with make_console(stderr=True).status("searching") as status:
            where, source = download(
                name.value,
                data_dir,
                force=force,
                tell=lambda title: status.update(f"downloading {name.value} from {title}"),
            )
    except DatasetError as error:
        fail(str(error))
    except OSError as error:
        fail(
            f"cannot write to {error.filename or data_dir or 'the cache'}: {error.strerror}. "
            "Choose another directory with --data-dir or QUADRIC_CACHE."
        )
    how = "already there" if source is None else f"downloaded from {source}"
    print_line(f"{name.value}: {where} ({how}, verified)")


@data.command(epilog="Example: `quadric data verify mnist`")
def verify(
    name: Annotated[
        DatasetName | None,
        typer.Argument(help="The data set [default: all that have been downloaded]."),
    ] = None,
) -> None:
    """Verify the MD5 checksum of each file; exit with code 1 if a file is invalid or missing."""
    from quadric.datasets import check_files

    found = {one: check_files(one.value)[1] for one in ([name] if name else DatasetName)}
    for one, files in found.items():
        if not files and name is None:
            typer.echo(f"{one.value}: not found")
        for path, md5, problem in files:
            if problem is None:
                print_line(f"{path}: ok, md5 {md5}")
    problems = [problem for files in found.values() for _, _, problem in files if problem]
    if problems:
        more = f" (In total, {len(problems)} files are invalid.)" if len(problems) > 1 else ""
        fail(problems[0] + more)
    if not any(found.values()):
        fail(
            "there is nothing to verify. Download it first: `quadric data fetch "
            f"{name.value if name else 'mnist'}`."
        )
