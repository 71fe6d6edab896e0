"""Run one section, or a piece, in a process of its own: `python -m benchmarks.compare._process`.

The environment limits the threads of every library before it is imported. The process also keeps
to as many cores, because JAX has no setting for the number of its threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.compare._sections import SECTIONS
from benchmarks.two_checkouts import HERE, THREAD_VARIABLES


def measure(name: str, *, quick: bool, piece: str | None = None) -> dict[str, Any]:
    """Start the process, wait for it and return its results."""
    threads = str(SECTIONS[name].threads)
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, threads)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "found.json"
        options = {"quick": quick} | ({"piece": piece} if piece else {})
        command = [sys.executable, "-m", "benchmarks.compare._process", name, str(file)]
        command.append(json.dumps(options))
        subprocess.run(command, env=environment, cwd=HERE, check=True)
        return json.loads(file.read_text(encoding="utf-8"))


def main(name: str, file: str, options: str) -> None:
    section = SECTIONS[name]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-section.threads :])
    found = section.load().run(**json.loads(options))
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
