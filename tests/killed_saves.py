"""Saves that are killed halfway, by the signal that no process can catch.

    python -m tests.killed_saves COUNT SEED

A child saves one of two models over the other as fast as it can; it is killed at some moment and
the file must be one of the two, whole. Prints, as JSON, how often it was which and how many saves
were caught in the middle.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import quadric
from quadric import Network


def keep_saving(models, path):
    while True:
        for model in models:
            quadric.save(model, path)


def run(count, seed):
    rng = random.Random(seed)
    layers = [("quadratic", 8, "logistic")]
    models = [Network.create(200, layers, init="normal", rng=i) for i in range(2)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.quadric"
        whole = []
        for model in models:
            quadric.save(model, path)
            whole.append(path.read_bytes())
        found, halfway = [0, 0], 0
        for _ in range(count):
            child = os.fork()
            if child == 0:
                keep_saving(models, path)
            time.sleep(0.005 + 0.05 * rng.random())
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found[whole.index(path.read_bytes())] += 1  # an error, if it is neither
            assert quadric.load(path).n_inputs == 200
            left = [other for other in path.parent.iterdir() if other != path]
            halfway += len(left)
            for other in left:
                other.unlink()
    return {"first": found[0], "second": found[1], "caught halfway": halfway}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
