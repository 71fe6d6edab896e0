"""`quadric data`: which data sets are here, fetching them, and whether their files are right."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from quadric._utils.text import visible
from quadric.cli._console import fail, make_console, print_line

data = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="List, fetch and verify data sets.",
)


class Name(StrEnum):
    """The data sets that are made of files."""

    mnist = "mnist"
    fashion_mnist = "fashion_mnist"


@data.command("list", epilog="Example: `quadric data list --json`")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Say where each data set is, and whether its files are right; no network is used."""
    rows = [_row(name.value) for name in Name]
    if as_json:
        typer.echo(json.dumps({"rows": rows}, indent=2))
        return
    table = Table(title="Data sets made of files", title_justify="left")
    for heading in ("name", "where", "size", "verified"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        where = "not here" if row["where"] is None else visible(row["where"])
        size = "" if row["size"] is None else f"{row['size'] / 1e6:.1f} MB"
        verified = "" if row["where"] is None else "no" if row["problem"] else "yes"
        table.add_row(row["name"], where, size, verified)
    console = make_console()
    console.print(table)
    for row in rows:
        if row["problem"]:
            console.print(visible(row["problem"]))
    console.print("The others (xor, clusters, digits) need no files.")


def _row(name: str) -> dict[str, Any]:
    from quadric.datasets._directories import find, read
    from quadric.datasets._idx import COLLECTIONS
    from quadric.datasets._images import locate
    from quadric.errors import DatasetError

    collection = COLLECTIONS[name]
    directory, advice = locate(collection)
    found = [path for file in collection.files if (path := find(directory, file)) is not None]
    row: dict[str, Any] = {
        "name": name, "where": None, "size": None, "verified": False, "problem": None
    }  # fmt: skip
    if found:
        row |= {"where": str(directory), "size": sum(path.stat().st_size for path in found)}
        try:
            read(directory, collection, advice)
            row["verified"] = True
        except DatasetError as error:
            row["problem"] = str(error)
    return row


@data.command(epilog="Example: `quadric data fetch mnist`")
def fetch(
    name: Annotated[Name, typer.Argument(help="Which data set.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Put it in a sub-directory of this one rather than in the cache; name this "
            "directory later with QUADRIC_DATA or data_dir=...",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch it even if it is here, and replace it.")
    ] = False,
) -> None:
    """Fetch a data set from the first source that has it, verify it, and keep it."""
    from quadric.datasets._images import download
    from quadric.errors import DatasetError

    try:
        with make_console(stderr=True).status("looking") as status:
            where, source = download(
                name.value, data_dir, force=force,
                tell=lambda title: status.update(f"fetching {name.value} from {title}"),
            )  # fmt: skip
    except DatasetError as error:
        fail(str(error))
    except OSError as error:
        place = error.filename or data_dir or "the cache"
        fail(
            f"cannot write to {place}: {error.strerror}. Choose another directory with --data-dir "
            "or QUADRIC_CACHE."
        )
    came = "was there already" if source is None else f"came from {source}"
    print_line(f"{name.value} is in {where}, verified; it {came}.")


@data.command(epilog="Example: `quadric data verify mnist`")
def verify(
    name: Annotated[
        Name | None, typer.Argument(help="Which data set; without it, all that are here.")
    ] = None,
) -> None:
    """Compute the md5 of each file; exit code 1 if one is not right or the data is not here."""
    from quadric.datasets._directories import find, read_file
    from quadric.datasets._idx import COLLECTIONS
    from quadric.datasets._images import locate
    from quadric.errors import DatasetError

    bad, here = [], 0
    for collection in [COLLECTIONS[one.value] for one in ([name] if name else Name)]:
        directory, advice = locate(collection)
        paths = [(file, find(directory, file)) for file in collection.files]
        if not any(path for _, path in paths):
            if name is None:
                typer.echo(f"{collection.name}: not here")
            continue
        here += 1
        for file, path in paths:
            if path is None:
                bad.append(f"{directory / file.name} is not there. {advice}")
                continue
            try:
                read_file(path, collection, file, advice)
                print_line(f"{path}: ok, md5 {file.md5}")
            except DatasetError as error:
                bad.append(str(error))
    if bad:
        others = "" if len(bad) == 1 else f" ({len(bad)} files in all are not right.)"
        fail(bad[0] + others)
    if not here:
        wanted = name.value if name else "mnist"
        fail(f"there is nothing to verify. Fetch it first: `quadric data fetch {wanted}`.")
