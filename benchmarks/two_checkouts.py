"""Run one benchmark in two checkouts of this repository, alternating between them.

A benchmark module defines a class `Worker`. Each checkout gets a process that imports quadric from
its own src/, creates a `Worker` of the benchmark (always from this checkout) and calls its methods
on request. Requests and answers are pickled and sent through pipes. The parent asks one process at
a time, so the runs are interleaved and a waiting process does not use CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import platform
import shlex
import subprocess
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[1]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


class Checkout:
    """A process that imports quadric from the src/ of the checkout at `path`."""

    def __init__(self, path: Path, benchmark: str, threads: int | None) -> None:
        environment = dict(os.environ, PYTHONPATH=str(path / "src"))
        if threads is not None:
            environment |= dict.fromkeys(THREAD_VARIABLES, str(threads))
        self.path = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.two_checkouts", benchmark],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=HERE,
        )
        imported = Path(self._receive())
        if not imported.is_relative_to(path / "src"):
            raise RuntimeError(f"expected quadric from {path / 'src'}. Got {imported} instead.")

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the process's `Worker` and return its result."""
        pickle.dump((method, arguments), self._process.stdin)
        self._process.stdin.flush()
        return self._receive()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def _receive(self) -> Any:
        try:
            succeeded, answer = pickle.load(self._process.stdout)
        except EOFError:
            raise RuntimeError(f"the process for {self.path} ended; see the output above") from None
        if not succeeded:
            raise RuntimeError(f"in the process for {self.path}:\n{answer}")
        return answer


def parse_arguments(description: str, *, threads: int | None) -> argparse.Namespace:
    """Parse the options common to these benchmarks; `threads` is the default of `--threads`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--against", type=lambda p: Path(p).resolve(), help="another checkout of the repository"
    )
    parser.add_argument(
        "--threads", type=int, default=threads, help="number of BLAS and OpenMP threads"
    )
    parser.add_argument("--rounds", type=int, help="timed runs of each case in each checkout")
    options = parser.parse_args()
    if options.against is not None and not (options.against / "src" / "quadric").is_dir():
        parser.error(f"--against must name a checkout with src/quadric. Got {options.against}.")
    return options


def start(benchmark: str, options: argparse.Namespace) -> list[Checkout]:
    """Print the header; return the processes for this checkout and for the other one, if any."""
    paths = [HERE] if options.against is None else [HERE, options.against]
    print(header(options.threads, *paths), flush=True)
    return [Checkout(path, benchmark, options.threads) for path in paths]


def in_turns(
    checkouts: list[Checkout], methods: tuple[str, ...], rounds: int
) -> list[dict[str, list[float]]]:
    """Return the seconds that each method took in every round, for each checkout.

    A round calls every method in every checkout. The checkouts take turns going first.
    """
    found: list[dict[str, list[float]]] = [{method: [] for method in methods} for _ in checkouts]
    for turn in range(rounds):
        for c in range(len(checkouts))[:: -1 if turn % 2 else 1]:
            for method in methods:
                found[c][method].append(checkouts[c].ask(method))
    return found


def median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median of above / below over the rounds; other load affects both alike."""
    return median(a / b for a, b in zip(above, below, strict=True))


def header(threads: int | None, *paths: Path) -> str:
    """Return the command, commits, versions and processor as a Markdown list."""
    module = Path(sys.argv[0]).stem
    command = shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]])
    commits = ", ".join(
        f"{commit(path)} {place}" for path, place in zip(paths, ("here", "there"), strict=False)
    )
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return "\n".join(
        [
            f"- `{command}`",
            f"- commit {commits}",
            f"- Python {platform.python_version()}, {versions}",
            f"- {processor()}, {os.cpu_count()} cores, "
            + (f"{threads} thread(s)" if threads else "default number of threads"),
            "",
        ]
    )


def commit(path: Path) -> str:
    """Return the short hash of the checkout's commit, and whether src/ has uncommitted changes."""

    def git(*arguments: str) -> str:
        run = subprocess.run(
            ["git", "-C", path, *arguments], capture_output=True, text=True, check=True
        )
        return run.stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return git("rev-parse", "--short", "HEAD") + (" with uncommitted changes" if changed else "")


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def serve(benchmark: str) -> None:
    """Answer requests until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the benchmark's own output out of the pipe

    def answer(succeeded: bool, value: Any) -> None:
        pickle.dump((succeeded, value), answers)
        answers.flush()

    import quadric

    worker = importlib.import_module(benchmark).Worker()
    answer(True, str(Path(quadric.__file__).resolve()))
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer(True, getattr(worker, method)(*arguments))
        except Exception:
            answer(False, traceback.format_exc())


if __name__ == "__main__":
    serve(sys.argv[1])
