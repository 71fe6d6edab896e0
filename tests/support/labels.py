"""The labels that a network computes."""

import numpy as np


def labels(network):
    """Return a function that predicts the index of the class of each row."""

    def predict(X):
        z = network.logits(np.asarray(X))
        return (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)

    return predict
