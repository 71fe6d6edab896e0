"""The fixtures of numbers and model files, and how they are written.

    python -m tests.support.fixtures parity|conics|models

parity: for each kind, loss and penalty, the forward pass, gradients and 200 SGD steps of a
3 -> 4 -> 2 network with both layers of that kind and hidden activation tanh, from
`quadric.reference`. Every implementation of the equations (layers, compiled loop, torch, ONNX) is
tested against these numbers. Names and layout are those of model files: 'layers.0.Q' is the
row-major upper triangle, shape (m, n(n+1)/2).

conics: for conics of every kind, in several positions and sizes, the kind, the center, the
half-lengths of the axes, the equation, and the distances and nearest points of some points, from
`quadric.geometry`. The page's JavaScript is tested against these numbers. Where several points are
equally near, as from a center, the nearest point is null.

models: the model files of format 1 that every version from the first release on must read. After
the first release, these files stay as they are, and every new format adds files of its own.
"""

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np

from quadric import Network, save
from quadric.core import LAYERS
from quadric.files._describe import from_tensors, to_tensors
from quadric.geometry import Quadric
from quadric.reference._algorithms import forward_qnn, forward_rpqnn
from tests.support.fitted_models import make
from tests.support.networks import KINDS, as_dicts, reference_gradients, reference_training

# ---- parity ------------------------------------------------------------------------------


FIXTURES = Path(__file__).parents[1] / "fixtures"
PARITY = FIXTURES / "parity.json"
RATE, STEPS, SAMPLES = 0.05, 200, 10
LAST = {
    "binary_cross_entropy": "logistic",
    "cross_entropy": "softmax",
    "squared_error": "identity",
}


def packed(layers):
    """Return {'layers.0.W': nested lists, ...} with Q as its triangle."""
    return {
        f"layers.{l}.{name}": (
            array[:, *np.triu_indices(array.shape[-1])] if name == "Q" else array
        ).tolist()
        for l, layer in enumerate(layers)
        for name, array in layer.items()
    }


def draw(kind, n, m, rng):
    layer = {"W": rng.normal(size=(m, n)), "b": rng.normal(size=m)}
    if kind == "quadratic":
        Q = rng.normal(size=(m, n, n))
        layer["Q"] = (Q + Q.transpose(0, 2, 1)) / 2
    if kind == "reduced":
        layer |= {"U": rng.normal(size=(m, n)), "c": rng.normal(size=m)}
    return LAYERS[kind](*(0.4 * array for array in layer.values()))


def parity():
    rng = np.random.default_rng(20240101)
    cases = []
    for kind, (loss, last), l2 in product(KINDS, LAST.items(), (0.0, 0.01)):
        X = rng.normal(size=(SAMPLES, 3)) * (rng.random((SAMPLES, 3)) < 0.7)
        Y = np.eye(2)[rng.integers(0, 2, SAMPLES)]
        if loss == "squared_error":
            Y = rng.normal(size=(SAMPLES, 2))
        net = Network([draw(kind, 3, 4, rng), draw(kind, 4, 2, rng)], ["tanh", last])
        forward = forward_rpqnn if kind == "reduced" else forward_qnn
        caches = [forward(as_dicts(net), net.activations, x) for x in X]
        mean_loss, mean = reference_gradients(net, X, Y, loss)
        after = reference_training(net, X, Y, loss, RATE, epochs=STEPS // SAMPLES, l2=l2)
        cases.append(
            {
                "kind": kind,
                "loss": loss,
                "l2": l2,
                "activations": [*net.activations],
                "X": X.tolist(),
                "Y": Y.tolist(),
                "parameters": packed(as_dicts(net)),
                "logits": [cache.z[-1].tolist() for cache in caches],
                "outputs": [cache.a[-1].tolist() for cache in caches],
                "mean_loss": mean_loss,
                "mean_gradients": packed(mean),
                "sgd": {"rate": RATE, "steps": STEPS, "parameters": packed(as_dicts(after))},
            }
        )
    return {"format": 1, "made_by": "python -m tests.support.fixtures parity", "cases": cases}


# ---- conics ------------------------------------------------------------------------------


CONICS_FILE = FIXTURES / "conics.json"
# a conic of each kind: diagonal of Q, w, b
CONICS = {
    "circle": ((1, 1), (0, 0), -1),
    "ellipse": ((1, 3), (0, 0), -1),
    "hyperbola": ((1, -2), (0, 0), -1),
    "parabola": ((1, 0), (0, 1), 0),
    "crossing lines": ((1, -2), (0, 0), 0),
    "parallel lines": ((1, 0), (0, 0), -1),
    "coincident lines": ((1, 0), (0, 0), 0),
    "line": ((0, 0), (1, 0.5), 1),
    "point": ((1, 3), (0, 0), 0),
    "empty": ((1, 3), (0, 0), 1),
    "everything": ((0, 0), (0, 0), 0),
}
# angle, factor of F, length, shift
POSITIONS = (
    (0.0, 1.0, 1.0, (0.0, 0.0)),
    (0.5, -2.0, 1.0, (0.3, -0.4)),
    (2.0, 1e-3, 1.5, (-8.0, 10.0)),
    (1.1, 40.0, 0.02, (0.5, 0.25)),
)
EXTREMES = (
    ([[1, 0], [0, 1e-6]], [0.1, 0.2], -1),  # long
    ([[1, 0.999], [0.999, 1]], [0, 0], -1),
    ([[1e-9, 0], [0, 1e-9]], [1, 2], -1),  # almost a line
    ([[1, 0], [0, -1e-7]], [0, 0.3], 0.01),
    ([[1e120, 0], [0, 2e120]], [0, 0], -1e120),
    ([[3, 1], [1, 2]], [-1e-5, 0], -1e-10),
    ([[0, 0], [0, 0]], [0, 0], 2),  # empty
    ([[0, 0], [0, 0]], [0, 2], 0),
    ([[0, 1], [1, 0]], [0, 0], -1),
)


def placed(diagonal, w, b, angle, factor, length, shift):
    """The image of a conic under a rotation, a scaling and a shift."""
    cos, sin = np.cos(angle), np.sin(angle)
    turn = length * np.array([[cos, -sin], [sin, cos]]) if angle else np.eye(2) * length
    image = Quadric(np.diag(diagonal), w, b).transform(turn, shift)
    # the coefficients alone: the image also knows its source
    return Quadric(factor * image.Q, factor * image.w, factor * image.b)


def described(conic, points, *, unique=True):
    center, axes = conic.center, conic.axes
    on_curve = None if conic.is_empty or not unique else conic.nearest(points).tolist()
    half_lengths = [float(length) for length in axes.half_lengths]
    return {
        "Q": [float(conic.Q[0, 0]), float(conic.Q[0, 1]), float(conic.Q[1, 1])],
        "w": conic.w.tolist(),
        "b": conic.b,
        "kind": conic.kind,
        "center": None if center is None else center.tolist(),
        # null: not a number; a string: infinite
        "half_lengths": [
            None if np.isnan(length) else "inf" if np.isinf(length) else length
            for length in half_lengths
        ],
        "equation": conic.equation(["x1", "petal width"]),
        "points": np.asarray(points).tolist(),
        "distances": None if conic.is_empty else conic.distance(points).tolist(),
        "nearest": on_curve,
    }


def conics():
    rng = np.random.default_rng(20240102)
    cases = []
    for kind, (diagonal, w, b) in CONICS.items():
        for angle, factor, length, shift in POSITIONS:
            conic = placed(diagonal, w, b, angle, factor, length, shift)
            assert conic.kind == kind, (conic, kind)
            near = np.array(shift) + length * rng.normal(size=(3, 2)) * [[0.3], [1], [5]]
            cases.append(described(conic, near))
            if conic.center is not None:
                cases.append(described(conic, conic.center[None], unique=False))
    for Q, w, b in EXTREMES:
        cases.append(described(Quadric(Q, w, b), rng.normal(size=(2, 2))))
    return cases


# ---- model files ---------------------------------------------------------------------------


def models():
    """Write two model files, and return the predictions of the models."""
    model, frame = make("columns, rest scaled")
    rows = frame.head(12)
    save(model, FIXTURES / "format1_pipeline.quadric", extra={"target": "kind"})
    layers = [("linear", 4, "tanh"), ("reduced", 3, "relu"), ("quadratic", 2, "softmax")]
    network = Network.create(3, layers, init="normal", scale=0.8, rng=5, dtype="float32")
    save(network, FIXTURES / "format1_network.quadric")
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    return {
        "rows": {
            name: [None if value != value else value for value in column]
            for name, column in rows.to_dict("list").items()
        },
        "classes": model.predict(rows).tolist(),
        "probabilities": model.predict_proba(rows).tolist(),
        "names": model[0].get_feature_names_out().tolist(),
        "X": X.tolist(),
        "outputs": network.forward(X).tolist(),
    }


# ---- the cases of the parity fixture -----------------------------------------------------


CASES = json.loads(PARITY.read_text())["cases"]
NAMES = [f"{c['kind']}-{c['loss']}-{c['l2']}" for c in CASES]


def network(case, dtype=np.float64):
    layers = []
    for l in range(2):
        prefix = f"layers.{l}."
        arrays = {
            name.removeprefix(prefix): np.array(value, dtype=dtype)
            for name, value in case["parameters"].items()
            if name.startswith(prefix)
        }
        layers.append(from_tensors(case["kind"], *arrays["W"].shape[::-1], arrays.__getitem__))
    return Network(layers, case["activations"])


def assert_packed(layers, wanted, atol):
    held = {
        f"layers.{l}.{name}": array
        for l, layer in enumerate(layers)
        for name, array in to_tensors(layer).items()
    }
    assert held.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(held[name], array, atol=atol, err_msg=name)


if __name__ == "__main__":
    if sys.argv[1] == "models":
        (FIXTURES / "format1.json").write_text(json.dumps(models(), indent=1) + "\n")
    elif sys.argv[1] == "parity":
        PARITY.write_text(json.dumps(parity(), separators=(",", ":")) + "\n")
    else:
        lines = [json.dumps(case, separators=(",", ":"), allow_nan=False) for case in conics()]
        CONICS_FILE.write_text('{"cases":[\n' + ",\n".join(lines) + "\n]}\n")
