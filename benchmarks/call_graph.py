"""Find calls between files of the package: `python -m benchmarks.call_graph [--edges] [fit ...]`.

Each workload runs once to import and compile, then once under a profile function. A file counts if
one of its functions runs. Comprehensions, generators and module-level code belong to their file.

An edge leads from the file of a caller to the file of the function called, if both files are in the
package and differ. Frames outside the package (scikit-learn's decorators, contextlib, SciPy) are
skipped: the caller is the nearest frame of the package below them on the stack. Functions compiled
by numba count if Python calls them; calls between compiled functions are not visible.

Threads that start during the walk count, too; joblib starts new ones for each call. The caller of
the first function in such a thread is the function of the package that runs in the main thread
meanwhile: it has submitted the work and waits for it, so the function counts as passed.

Two files call each other if there are edges in both directions. A call to a function that was
passed as an argument does not count. Such a call is recognized by value: the called function (or
bound method, or generator) is an argument of the caller, an item of a tuple or list argument, a
value of a dict argument, or is stored in the instance dictionary of an argument, as in
`self.callback()`. Free variables of a
nested function count as its arguments. A method that the caller looks up on an argument, as in
`estimator.score()`, is an ordinary call, and so is a call to a class.

Calls to `__sklearn_tags__` do not count, because each class adds its tags to those of its parents.

The exit status is 1 if a walk visits more files than `LIMITS` allows, or if two of its files call
each other.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import io
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quadric
from benchmarks.two_checkouts import HERE, header
from quadric import QuadraticClassifier, QuadraticLogisticRegression
from quadric.apps import shell
from quadric.certify import radius
from quadric.torch import Quadratic

PACKAGE = Path(quadric.__file__).parent
# The most files that a walk may visit.
LIMITS = {
    "fit": 20,
    "predict": 8,
    "logistic": 17,
    "sgd": 23,
    "torch": 5,
    "radius": 20,
    "train": 53,
}


class Call(NamedTuple):
    caller: str
    callee: str
    outside: str  # the function outside the package through which the call went, if any
    passed: bool  # whether the function was passed as an argument

    def __str__(self) -> str:
        notes = [f"through {self.outside}"] * bool(self.outside)
        notes += ["passed as an argument"] * self.passed
        return f"{self.caller} -> {self.callee}" + (f" ({', '.join(notes)})" if notes else "")


Edges = dict[tuple[str, str], set[Call]]


def workloads() -> dict[str, Callable[[], object]]:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    fitted = QuadraticClassifier(random_state=0).fit(X, y)
    per_sample = {"solver": "sgd", "batch_size": 1, "momentum": 0.0, "max_iter": 3}
    layer, x = Quadratic(300, 10), torch.randn(64, 300).requires_grad_()  # several blocks
    pipeline = make_pipeline(StandardScaler(), QuadraticClassifier((), random_state=0)).fit(X, y)
    return {
        "fit": lambda: QuadraticClassifier(random_state=0).fit(X, y),
        "predict": lambda: fitted.predict(X),
        "logistic": lambda: QuadraticLogisticRegression().fit(X, y),
        "sgd": lambda: QuadraticClassifier(**per_sample, random_state=0).fit(X, y),
        "torch": lambda: layer(x).sum().backward(),
        "radius": lambda: radius(pipeline, X[:3]),
        "train": lambda: run_train(np.column_stack([X, y])),
    }


def run_train(table: np.ndarray) -> None:
    """Run the `train` command in this process; the target is the last column."""
    names = [f"x{i}" for i in range(table.shape[1])]
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),  # where the model is written
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        data = Path(folder, "data.csv")
        np.savetxt(data, table, delimiter=",", header=",".join(names), comments="")
        arguments, sys.argv = sys.argv, ["quadric", "train", str(data), "--target", names[-1]]
        try:
            shell.main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(errors.getvalue()) from None
        finally:
            sys.argv = arguments


def measure(run: Callable[[], object]) -> tuple[set[str], Edges]:
    """Return the files whose functions run, and the calls for every edge between them."""
    files: set[str] = set()
    edges: Edges = defaultdict(set)

    def note(frame: FrameType, event: str, argument: object) -> None:
        callee = file_of(frame.f_code)
        if event != "call" or callee is None or frame.f_code.co_name == "__sklearn_tags__":
            return
        files.add(callee)
        top = sys._getframe(1)  # a numba function has no frame on the stack; its caller does
        caller, outside = nearest(frame.f_back if top is frame else top)
        submitted = caller is None and threading.get_ident() != main_thread
        if submitted:
            caller, _ = nearest(sys._current_frames()[main_thread])
            outside = "a thread"
        if caller is not None and (from_file := file_of(caller.f_code)) != callee:
            names = caller.f_code.co_qualname, frame.f_code.co_qualname
            call = Call(*names, outside, submitted or was_passed(frame.f_code, caller))
            edges[from_file, callee].add(call)

    main_thread = threading.get_ident()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files, edges


def nearest(frame: FrameType | None) -> tuple[FrameType | None, str]:
    """Return the first frame of the package on a stack, and the last function outside above it."""
    outside = ""
    while frame is not None and file_of(frame.f_code) is None:
        outside, frame = frame.f_code.co_qualname, frame.f_back
    return frame, outside


@functools.cache
def file_of(code: CodeType) -> str | None:
    """Return the path within the package, or None for code outside it."""
    path = Path(code.co_filename)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None


def was_passed(code: CodeType, caller: FrameType) -> bool:
    """Return whether the function with this code is among the caller's arguments."""
    return any(
        getattr(value, "__code__", getattr(value, "gi_code", None)) is code
        for value in held_by_arguments(caller)
    )


def held_by_arguments(frame: FrameType) -> Iterator[Any]:
    """Yield the values of the frame's arguments and free variables, and the objects in them."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    for name in (*code.co_varnames[:count], *code.co_freevars):
        value = frame.f_locals.get(name)
        yield value
        if isinstance(value, (tuple, list)):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()
        elif not isinstance(value, (ModuleType, type)):
            yield from getattr(value, "__dict__", {}).values()


def pairs(edges: Edges, *, with_passed: bool) -> list[str]:
    """Return the pairs of files with calls in both directions."""
    counted = {
        edge for edge, calls in edges.items() if with_passed or not all(c.passed for c in calls)
    }
    return [f"{a} <-> {b}" for a, b in sorted(counted) if a < b and (b, a) in counted]


def main() -> int:
    warnings.simplefilter("ignore")  # three epochs do not converge
    runs = workloads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", nargs="*", help=f"{', '.join(runs)}; the default is all")
    parser.add_argument("--edges", action="store_true", help="print every edge and its calls")
    options = parser.parse_args()
    unknown = set(options.workload) - set(runs)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(runs)}")
    print(header(None, HERE))
    print("| walk | files | limit | edges | pairs | pairs without functions passed as arguments |")
    print("|---|---|---|---|---|---|")
    found, failed = {}, False
    for name in options.workload or runs:
        runs[name]()
        files, found[name] = measure(runs[name])
        every = pairs(found[name], with_passed=True)
        real = pairs(found[name], with_passed=False)
        cell = f"{len(real)}: {', '.join(real)}" if real else "0"
        size = f"{len(files)} | {LIMITS[name]}"
        print(f"| {name} | {size} | {len(found[name])} | {len(every)} | {cell} |")
        failed = failed or len(files) > LIMITS[name] or bool(real)
    for name, edges in found.items() if options.edges else ():
        print(f"\n{name}:")
        for (a, b), calls in sorted(edges.items()):
            print(f"  {a} -> {b}", *sorted(map(str, calls)), sep="\n    ")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
