"""Write the model files of format 1 that every version from the first release on must read.

    python -m tests.support.make_model_fixture

After the first release, these files stay as they are, and every new format adds files of its own.
"""

import json
from pathlib import Path

import numpy as np

from quadric import Network, save
from tests.support.model_file_models import make

FIXTURES = Path(__file__).parents[1] / "fixtures"


def main():
    model, frame = make("columns, rest scaled")
    rows = frame.head(12)
    save(model, FIXTURES / "format1_pipeline.quadric", extra={"target": "kind"})
    layers = [("linear", 4, "tanh"), ("reduced", 3, "relu"), ("quadratic", 2, "softmax")]
    network = Network.create(3, layers, init="normal", scale=0.8, rng=5, dtype="float32")
    save(network, FIXTURES / "format1_network.quadric")
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    expected = {
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
    (FIXTURES / "format1.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
