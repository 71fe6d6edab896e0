"""Write the parity fixture from `quadric.reference`: python -m tests.support.make_parity_fixture

For each kind, loss and penalty, the fixture has the forward pass, gradients and 200 SGD steps of a
3 -> 4 -> 2 network with both layers of that kind and hidden activation tanh. Every implementation
of the equations (layers, compiled loop, torch, ONNX) is tested against these numbers. Names and
layout are those of model files: 'layers.0.Q' is the row-major upper triangle, shape (m, n(n+1)/2).
"""

import json
from pathlib import Path

import numpy as np

from quadric.reference import gradients_qnn, gradients_rpqnn, train_qnn, train_rpqnn
from quadric.reference._algorithms import forward_qnn, forward_rpqnn

PATH = Path(__file__).parents[1] / "fixtures" / "parity.json"
RATE, STEPS, SAMPLES = 0.05, 200, 10
LAST = {
    "binary_cross_entropy": "logistic",
    "cross_entropy": "softmax",
    "squared_error": "identity",
}


def packed(layers):
    """Return {'layers.0.W': nested lists, ...} with Q as its triangle."""
    out = {}
    for l, layer in enumerate(layers):
        for name, array in layer.items():
            if name == "Q":
                rows, columns = np.triu_indices(array.shape[-1])
                array = array[:, rows, columns]
            out[f"layers.{l}.{name}"] = array.tolist()
    return out


def draw(kind, n, m, rng):
    layer = {"W": rng.normal(size=(m, n)), "b": rng.normal(size=m)}
    if kind == "quadratic":
        Q = rng.normal(size=(m, n, n))
        layer["Q"] = (Q + Q.transpose(0, 2, 1)) / 2
    if kind == "reduced":
        layer |= {"U": rng.normal(size=(m, n)), "c": rng.normal(size=m)}
    return {name: 0.4 * array for name, array in layer.items()}


def make():
    rng = np.random.default_rng(20240101)
    cases = []
    for kind in ("linear", "quadratic", "reduced"):
        forward, gradients, train = (
            (forward_rpqnn, gradients_rpqnn, train_rpqnn)
            if kind == "reduced"
            else (forward_qnn, gradients_qnn, train_qnn)
        )
        for loss, last in LAST.items():
            for l2 in (0.0, 0.01):
                X = rng.normal(size=(SAMPLES, 3)) * (rng.random((SAMPLES, 3)) < 0.7)
                Y = np.eye(2)[rng.integers(0, 2, SAMPLES)]
                if loss == "squared_error":
                    Y = rng.normal(size=(SAMPLES, 2))
                layers = [draw(kind, 3, 4, rng), draw(kind, 4, 2, rng)]
                activations = ["tanh", last]
                caches = [forward(layers, activations, x) for x in X]
                pairs = [
                    gradients(layers, activations, x, y, loss) for x, y in zip(X, Y, strict=True)
                ]
                mean = [
                    {name: np.mean([g[l][name] for _, g in pairs], axis=0) for name in layers[l]}
                    for l in range(2)
                ]
                after = train(
                    X,
                    Y,
                    layers,
                    RATE,
                    epochs=STEPS // SAMPLES,
                    activations=activations,
                    loss=loss,
                    l2=l2,
                )
                cases.append(
                    {
                        "kind": kind,
                        "loss": loss,
                        "l2": l2,
                        "activations": activations,
                        "X": X.tolist(),
                        "Y": Y.tolist(),
                        "parameters": packed(layers),
                        "logits": [cache.z[-1].tolist() for cache in caches],
                        "outputs": [cache.a[-1].tolist() for cache in caches],
                        "mean_loss": float(np.mean([value for value, _ in pairs])),
                        "mean_gradients": packed(mean),
                        "sgd": {"rate": RATE, "steps": STEPS, "parameters": packed(after)},
                    }
                )
    return {"format": 1, "made_by": "python -m tests.support.make_parity_fixture", "cases": cases}


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(make(), indent=None, separators=(",", ":")) + "\n")
    print(f"wrote {PATH}")
