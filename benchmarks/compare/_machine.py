"""The machine, the versions and the command of a comparison."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import date

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
    """Return the size of the memory in units of 10⁹ bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
