"""`quadric playground`: train networks in the browser."""

import errno
from pathlib import Path
from typing import Annotated

import typer

from quadric.apps.shell.commands._console import errors_as_one_line, fail, print_line


def playground(
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, show_default="a free one", help="The port to listen on."),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    copy_to: Annotated[
        Path | None,
        typer.Option(
            help="Copy the page to a new directory, for a web host, instead of serving it."
        ),
    ] = None,
) -> None:
    """Show a page on which you can train small networks and watch their neurons.

    The page is served on this computer only. Stop it with Ctrl-C.
    """
    from quadric.apps.playground import copy_page, serve

    with errors_as_one_line():
        if copy_to is not None:
            copy_page(copy_to)
            print_line(f"Page: {copy_to / 'index.html'}")
            return
        try:
            serve(port, browser, announce=lambda url: print_line(f"{url} (stop with Ctrl-C)"))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            fail(f"cannot listen on port {port}: {error.strerror}. Choose another with --port.")
