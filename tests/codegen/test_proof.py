"""Where labels are proven, generated C code and the model agree."""

import re

import numpy as np
import pytest

from quadric.codegen import generate
from tests.codegen.conftest import fitted
from tests.support.generated_code import compile_c, packed_rows

PROVEN = ["iris", "wine", "breast cancer"]
BODY = """int out[2] = {model_label(ARGS), model_proven(ARGS)};
    fwrite(out, sizeof(int), 2, stdout);
    (void)z;"""


def labels_and_proofs(text, X, folder, real, texts=()):
    import subprocess

    body = BODY.replace("ARGS", "x, text" if texts else "x")
    program = compile_c(text, folder, body, real=real, texts=bool(texts))
    done = subprocess.run([program], input=packed_rows(X, texts), capture_output=True)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.int32).reshape(-1, 2).T


def near_boundaries(model, low, high, count, rng):
    """Rows of a box, half of which are moved to a tie of two scores by bisection."""
    X = rng.uniform(low, high, size=(count, len(low)))
    a, b = X[: count // 2].copy(), rng.uniform(low, high, size=(count // 2, len(low)))
    wanted = model.predict(a)
    moved = wanted != model.predict(b)
    for _ in range(60):
        middle = (a + b) / 2
        same = (model.predict(middle) == wanted)[:, None]
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    X[: count // 2][moved] = np.where(rng.uniform(size=(moved.sum(), 1)) < 0.5, a[moved], b[moved])
    return X


def covered(text):
    found, rows = re.search(r"Covered: (\d+) of (\d+) rows", text).groups()
    return int(found) / int(rows)


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("name", PROVEN)
def test_proven_labels_are_those_of_the_model(name, real, tmp_path):
    model, X = fitted(name)
    text = generate(model, "c", X=X, arithmetic=real)
    assert covered(text) >= 0.99
    attack = near_boundaries(model, X.min(axis=0), X.max(axis=0), 1000, np.random.default_rng(0))
    label, proven = labels_and_proofs(text, attack, tmp_path, real)
    assert (label == model.predict(attack))[proven == 1].all()
    assert 0.3 < proven.mean() < 1
