"""`quadric compile`: compile the loops before they are needed."""

import time
from typing import Annotated

import typer

from quadric.apps.shell.commands._console import (
    errors_as_one_line,
    print_json,
    print_line,
    progress_bar,
)
from quadric.utils import counted


def compile_ahead(
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Compile the loops once for this machine, so that no later command waits for it.

    Without this command, each loop is compiled when it is first needed. Compiled code is cached
    next to the installed package, or in the directory `NUMBA_CACHE_DIR`.
    """
    start = time.perf_counter()
    with errors_as_one_line():
        from quadric.network import compile_loops

        with progress_bar("Compiling once for this machine", disabled=as_json) as update:
            compiled = compile_loops(
                lambda done, total: update(
                    done, total, f"Compiling once for this machine: step {done} of {total}"
                )
            )
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"compiled": compiled, "seconds": seconds})
    elif compiled:
        print_line(f"Compiled {counted(compiled, 'loop')} in {seconds:.0f} s.")
    else:
        print_line("All loops were compiled before.")
