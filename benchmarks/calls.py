"""Time common calls in two checkouts: `python -m benchmarks.calls --against PATH`.

The calls are fits, predictions, certificates, explanations, model files, and new processes that
import quadric or run a command. If "there / here" is greater than 1, this checkout is faster. The
checkouts alternate, and a ratio is the median over the rounds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.start_up import COMMAND, XOR
from benchmarks.two_checkouts import in_turns, median_ratio, parse_arguments, start

ROUNDS = 15
AT_LEAST = 0.05  # seconds; calls are repeated for this long
CALLS = (
    "fit_default",
    "fit_hidden_layer",
    "fit_one_layer",
    "fit_logistic",
    "predict_a_row",
    "predict_rows",
    "radius_of_a_row",
    "radius_of_rows",
    "radius_of_a_network_that_does_not_fold",
    "counterfactual",
    "explain",
    "save_and_load",
)
PROCESSES = (
    "process_import",
    "process_xor",
    "process_help",
    "process_missing_table",
    "process_train",
    "process_predict",
)


class Worker:
    """The process of one checkout."""

    def prepare(self) -> None:
        from sklearn.datasets import load_iris, load_wine
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        from quadric import QuadraticClassifier

        warnings.simplefilter("ignore")
        self.X, self.y = load_wine(return_X_y=True)
        self.place = Path(tempfile.mkdtemp())
        iris = load_iris(as_frame=True).frame
        iris.to_csv(self.place / "iris.csv", index=False)
        self.folded = make_pipeline(StandardScaler(), QuadraticClassifier((), random_state=0))
        self.folded.fit(self.X, self.y)
        self.deep = make_pipeline(StandardScaler(), QuadraticClassifier((6,), random_state=0))
        self.deep.fit(self.X, self.y)
        self.process_train()

    def fit_default(self) -> float:
        return _seconds(lambda: self._fit())

    def fit_hidden_layer(self) -> float:
        return _seconds(lambda: self._fit((6,), max_iter=50))

    def fit_one_layer(self) -> float:
        return _seconds(lambda: self._fit(()))

    def _fit(self, *arguments: Any, **options: Any) -> None:
        from quadric import QuadraticClassifier

        QuadraticClassifier(*arguments, random_state=0, **options).fit(self.X, self.y)

    def fit_logistic(self) -> float:
        from quadric import QuadraticLogisticRegression

        return _seconds(lambda: QuadraticLogisticRegression().fit(self.X, self.y))

    def predict_a_row(self) -> float:
        return _seconds(lambda: self.folded[-1].predict(self.X[:1]))

    def predict_rows(self) -> float:
        rows = self.X.repeat(60, axis=0)
        return _seconds(lambda: self.folded[-1].predict(rows))

    def radius_of_a_row(self) -> float:
        from quadric.certify import radius

        return _seconds(lambda: radius(self.folded, self.X[:1]))

    def radius_of_rows(self) -> float:
        from quadric.certify import radius

        return _seconds(lambda: radius(self.folded, self.X))

    def radius_of_a_network_that_does_not_fold(self) -> float:
        from quadric.certify import radius

        return _seconds(lambda: radius(self.deep, self.X))

    def counterfactual(self) -> float:
        from quadric.certify import counterfactual

        return _seconds(lambda: counterfactual(self.folded, self.X[0]))

    def explain(self) -> float:
        from quadric.explain import explain

        return _seconds(lambda: str(explain(self.folded, self.X)))

    def save_and_load(self) -> float:
        from quadric import load, save

        path = self.place / "saved.quadric"
        return _seconds(lambda: (save(self.folded, path), load(path)))

    def process_import(self) -> float:
        return _process("import quadric")

    def process_xor(self) -> float:
        return _process(XOR)

    def process_help(self) -> float:
        return self._command("--help")

    def process_missing_table(self) -> float:
        return self._command("train", "none.csv", "-t", "y")

    def process_train(self) -> float:
        model = str(self.place / "iris.quadric")
        table = str(self.place / "iris.csv")
        return self._command("train", table, "-t", "target", "--hidden", "none", "-o", model)

    def process_predict(self) -> float:
        output = str(self.place / "predicted.csv")
        return self._command(
            "predict", str(self.place / "iris.quadric"), str(self.place / "iris.csv"), "-o", output
        )

    def _command(self, *arguments: str) -> float:
        return _process(COMMAND.format(list(arguments)))


def _seconds(run: Callable[[], Any]) -> float:
    """Return the shortest time of a call, repeated for about AT_LEAST seconds."""
    run()
    times, begin = [], time.perf_counter()
    while not times or time.perf_counter() - begin < AT_LEAST:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _process(script: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    options = parse_arguments(__doc__.splitlines()[0], threads=1)
    checkouts = start("benchmarks.calls", options)
    for checkout in checkouts:
        checkout.ask("prepare")
    places = ("here", "there")[: len(checkouts)]
    columns = ["call", *(f"ms {place}" for place in places)] + ["there / here"] * (len(places) - 1)
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for call in (*CALLS, *PROCESSES):
        times = in_turns(checkouts, (call,), options.rounds or ROUNDS)
        cells = [call.replace("_", " ")]
        cells += [f"{1e3 * median(seconds[call]):.2f}" for seconds in times]
        if len(places) == 2:
            cells.append(f"{median_ratio(times[1][call], times[0][call]):.2f}")
        print("| " + " | ".join(cells) + " |", flush=True)
    for checkout in checkouts:
        checkout.close()


if __name__ == "__main__":
    main()
