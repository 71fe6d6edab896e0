"""Code blocks of documentation pages, and running them in order.

A page with the line `<!-- blocks run in order -->` is a session: its Python blocks share a
namespace, its shell blocks run, and all of them share a directory. A text block that directly
follows a block is what it prints. This module needs only the standard library, so that a new
environment can run it: `python -m tests.support.page_blocks docs/tour.md`, in the directory for the
files.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

IN_ORDER = "<!-- blocks run in order -->"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text):
    """Return language, code and shown output ('' without a text block) of Python and sh blocks."""
    found = [*BLOCK.findall(text), ("", "")]
    return [
        (language, code, output if kind == "text" else "")
        for (language, code), (kind, output) in pairwise(found)
        if language in ("python", "sh")
    ]


def run_python(code, namespace):
    """Run code and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<documentation>", "exec"), namespace)
    return printed.getvalue()


def run_shell(code):
    """Run the lines of a shell block except installations; return what they print."""
    lines = [line for line in code.splitlines() if not line.startswith(("pip ", "git clone "))]
    folder = str(Path(sys.executable).parent)  # the quadric command of this environment
    environment = os.environ | {
        "PATH": os.pathsep.join([folder, os.environ["PATH"]]),
        "COLUMNS": "80",
    }
    result = subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)], capture_output=True, text=True, env=environment
    )
    if result.returncode:
        raise RuntimeError(f"{code}{result.stdout}{result.stderr}")
    return result.stdout


def assert_session_prints_what_is_shown(text):
    """Run the blocks of a page in order, in the current directory."""
    namespace = {"__name__": "__main__"}
    for language, code, shown in blocks(text):
        printed = run_python(code, namespace) if language == "python" else run_shell(code)
        if shown or language == "python":  # a command may print what differs between runs
            assert printed == shown, f"{code}\nprinted\n{printed}\ninstead of\n{shown}"


if __name__ == "__main__":
    for page in sys.argv[1:]:
        assert_session_prints_what_is_shown(Path(page).read_text(encoding="utf-8"))
        print(f"{page}: every block printed what the page shows")
