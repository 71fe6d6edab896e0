"""Where and with what a comparison ran."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import date
from pathlib import Path

from benchmarks.compare._peers import versions
from benchmarks.two_checkouts import HERE, commit, processor


def description() -> dict[str, object]:
    """Return the command, commit, date, machine and versions of this run."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "commit": commit(HERE),
        "date": date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {gigabytes():.0f} GB",
        "python": platform.python_version(),
        "versions": versions(),
    }


def gigabytes() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemTotal"):
            return int(line.split()[1]) / 1e6
    raise OSError("/proc/meminfo has no line MemTotal")
