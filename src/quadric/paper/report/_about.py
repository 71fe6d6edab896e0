"""The machine, the versions and the command behind a report."""

import datetime
import importlib.metadata
import os
import platform
import shlex
import sys

from quadric.paper.sweep import environment

PACKAGES = ("quadric", "numpy", "numba", "scipy", "scikit-learn", "matplotlib", "joblib")


def about_this_run(seconds: float, jobs: int | None = None) -> dict[str, str]:
    """What a reader needs to judge, and to do it again."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{package} (not installed as a package)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    now = datetime.datetime.now(datetime.UTC)
    return {
        "command": shlex.join(["quadric", *sys.argv[1:]]),
        "finished": now.strftime("%Y-%m-%d %H:%M UTC"),
        "took": f"{seconds:.0f} s",
        "processor": f"{environment().cpu}, {jobs or cores} of {cores} cores in use",
        "system": platform.platform(),
        "Python": platform.python_version(),
        "packages": ", ".join(versions),
    }
