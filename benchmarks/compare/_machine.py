"""The machine, the versions and the command of a comparison."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import date

from benchmarks.compare._peers import versions
from benchmarks.two_checkouts import HERE, processor


def description() -> dict[str, object]:
    """Return the command, commit, date, machine and versions of this run."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "commit": commit_of_code(),
        "date": date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {gigabytes():.0f} GB",
        "python": platform.python_version(),
        "versions": versions(),
    }


def commit_of_code() -> str:
    """Return the last commit that changed src/ or benchmarks/, and whether they have changes.

    So a commit of results or pages between two sections does not change it.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(HERE), *arguments, "--", "src", "benchmarks"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    changed = " with uncommitted changes" if git("status", "--porcelain") else ""
    return git("log", "-1", "--format=%h") + changed


def gigabytes() -> float:
    """Return the size of the memory in units of 10⁹ bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
