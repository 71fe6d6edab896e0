"""Speed of the playground: `python -m benchmarks.playground`.

The first part compares the page's `net.js` with the compiled loop. Both train a 2 -> 12 -> 6
network of quadratic layers on the standardized six clusters with per-sample SGD in float64, from
the same parameters and in the same order. After one epoch the parameters must agree to 1e-10. The
two take turns. Seconds are processor time: the best epoch of the page, and the best mean over 20
epochs of the loop.

The second part measures, in Chromium, the first paint of the page and the main-thread work per
frame while it trains the six clusters with a hidden layer of 12 quadratic neurons (see
`playground_browser.py`).
"""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import playground_browser
from quadric import Network, datasets

SCRIPT = Path(__file__).with_name("playground_steps.js")
TURNS, ROUNDS = 5, 20
FIELDS = (("W", "Q"), ("b",))  # the page stores all weights before all biases


def theta(network):
    """The parameters in the order of the page."""
    arrays = []
    for fields in FIELDS:
        for layer in network.layers:
            for name in fields:
                arrays.append((layer.packed.T if name == "Q" else getattr(layer, name)).ravel())
    return np.concatenate(arrays)


def in_node(folder, rounds):
    files = [folder / name for name in ("start", "X", "Y")]
    command = ["node", str(SCRIPT), *map(str, files), str(rounds)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return np.array(answer["parameters"]), min(answer["seconds"])


def in_python(network, X, Y, rounds):
    start = network.copy()
    options = {"learning_rate": 0.03, "epochs": 1, "shuffle": False}
    start.fit(X, Y, **options)  # compiles
    parameters = theta(start)
    before = time.process_time()
    start.fit(X, Y, **{**options, "epochs": rounds})
    return parameters, (time.process_time() - before) / rounds


def main():
    if shutil.which("node") is None:
        raise SystemExit("error: Node.js is not installed.")
    X, y = datasets.clusters(500)
    order = np.random.default_rng(0).permutation(len(X))
    X, Y = ((X - X.mean(axis=0)) / X.std(axis=0))[order], np.eye(6)[y[order]]
    layers = [("quadratic", 12, "tanh"), ("quadratic", 6, "softmax")]
    network = Network.create(2, layers, init="glorot", rng=0)
    page, engine = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, array in (("start", theta(network)), ("X", X), ("Y", Y)):
            (folder / file).write_bytes(np.ascontiguousarray(array, dtype="<f8").tobytes())
        for _ in range(TURNS):
            theirs, seconds = in_node(folder, ROUNDS)
            page.append(seconds)
            ours, seconds = in_python(network, X, Y, ROUNDS)
            engine.append(seconds)
            np.testing.assert_allclose(theirs, ours, atol=1e-10)
    print("six clusters, 2 -> 12 -> 6, quadratic, per-sample SGD, float64")
    for label, seconds in (("net.js under Node.js", min(page)), ("compiled loop", min(engine))):
        print(f"{label:22}{len(X) / seconds:12,.0f} steps per second")
    print(f"ratio {min(page) / min(engine):.1f}")
    playground_browser.report()


if __name__ == "__main__":
    main()
