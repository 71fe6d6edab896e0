"""Kill processes with SIGKILL while they save a model.

    python -m tests.support.processes killed_saves COUNT SEED

A child process alternately saves two models to the same file as fast as it can. It is killed at a
random moment or, in about half of the runs, just after it has reached a stage, because the rename
is so short that random moments would miss it. The file must then be a complete copy of one of the
two models. The command prints, as JSON, how often each model was found, in which stages the child
was killed, and how many temporary files remain.
"""

import mmap
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import quadric
from quadric import Network
from tests.support.killing import killed

STAGES = ("making", "writing", "renaming")
PATIENCE = 60  # seconds, for a busy machine


def keep_saving(models, path, stage):
    """Save in a loop; audit events of open and rename set `stage`, which is shared memory."""

    def hook(event, arguments):
        if event == "open" and str(arguments[0]).endswith(".part"):
            stage[0] = STAGES.index("writing")
        elif event == "os.rename":
            stage[0] = STAGES.index("renaming")

    sys.addaudithook(hook)
    while True:
        for model in models:
            stage[0] = STAGES.index("making")
            quadric.save(model, path)


def wait(rng, stage):
    """Wait until it is time to kill the child."""
    time.sleep(0.005 + 0.05 * rng.random())
    if rng.random() < 0.5:
        return
    wanted, end = rng.randrange(len(STAGES)), time.monotonic() + PATIENCE
    while stage[0] != wanted and time.monotonic() < end:
        pass
    time.sleep(rng.choice((0, 0, 1e-5, 1e-4, 1e-3, 5e-3)))


def run(count, seed):
    rng = random.Random(seed)
    layers = [("quadratic", 8, "logistic")]
    models = [Network.create(200, layers, init="normal", rng=i) for i in range(2)]
    with tempfile.TemporaryDirectory() as directory, mmap.mmap(-1, 1) as stage:
        path = Path(directory) / "model.quadric"
        whole = []
        for model in models:
            quadric.save(model, path)
            whole.append(path.read_bytes())
        found, stages, halfway = [0, 0], Counter(), 0
        for _ in range(count):
            killed(lambda: keep_saving(models, path, stage), lambda: wait(rng, stage))
            stages[STAGES[stage[0]]] += 1
            found[whole.index(path.read_bytes())] += 1  # raises an error if it is neither
            assert quadric.load(path).n_inputs == 200
            left = [other for other in path.parent.iterdir() if other != path]
            assert all(re.fullmatch(r"\..*\.part", other.name) for other in left), left
            halfway += len(left)
            for other in left:
                other.unlink()
    return {"first": found[0], "second": found[1], **stages, "caught halfway": halfway}
