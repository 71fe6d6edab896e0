"""Kill processes with SIGKILL while they save a model, store runs or train on a stream.

    python -m tests.support.processes killing.saves COUNT SEED
    python -m tests.support.processes killing.stores COUNT SEED
    python -m tests.support.processes killing.streams COUNT SEED ROWS

These commands check what is left after each of COUNT kills. They print, as JSON, what was found and
at which stages the processes were killed.
"""

import json
import mmap
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from sklearn.pipeline import make_pipeline

import quadric
from quadric import Network
from quadric.apps.paper.sweep import Result, Store, Task
from quadric.apps.shell.tables._streaming import FORM
from quadric.convert import to_classifier
from quadric.files import _safetensors as container
from quadric.models import TableColumns
from quadric.utils import leftovers
from tests.support.processes import FORK, killed
from tests.support.sweeps import HERE, RECIPE
from tests.support.tables import start, write_table

# ---- saves ---------------------------------------------------------------------------------

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
    """Wait until it is time to kill the child.

    This is a random moment or, in about half of the cases, just after the child has reached a
    stage, because the rename is so short that random moments would miss it.
    """
    time.sleep(0.005 + 0.05 * rng.random())
    if rng.random() < 0.5:
        return
    wanted, end = rng.randrange(len(STAGES)), time.monotonic() + PATIENCE
    while stage[0] != wanted and time.monotonic() < end:
        pass
    time.sleep(rng.choice((0, 0, 1e-5, 1e-4, 1e-3, 5e-3)))


def for_tables(network):
    """Return a model that reads a table and predicts with the neurons of a network, as softmax."""
    form = [".", "", ""]
    columns = [{"name": f"x{j}", "kind": "number", "form": form} for j in range(network.n_inputs)]
    classes = [f"class {k}" for k in range(network.n_outputs)]
    softmax = Network(network.layers, ["softmax"])
    return make_pipeline(TableColumns(columns).fit(), to_classifier(softmax, classes))


def saves(count, seed):
    """Kill children that alternately save two models to a file, which must contain one of them."""
    rng, found = random.Random(seed), Counter({"first": 0, "second": 0})  # a few kills may miss one
    layers = [("quadratic", 8, "logistic")]
    models = [Network.create(200, layers, init="normal", rng=i) for i in range(2)]
    models[1] = for_tables(models[1])
    with tempfile.TemporaryDirectory() as directory, mmap.mmap(-1, 1) as stage:
        path, names = Path(directory) / "model.quadric", {}
        for model, name in zip(models, ("first", "second"), strict=True):
            quadric.save(model, path)
            names[path.read_bytes()] = name
        for _ in range(count):
            killed(partial(keep_saving, models, path, stage), partial(wait, rng, stage))
            left = [other for other in path.parent.iterdir() if other != path]
            assert all(re.fullmatch(r"\..*\.part", other.name) for other in left), left
            model = names[path.read_bytes()]  # raises an error if it is neither
            found.update([STAGES[stage[0]], model, *["caught halfway"] * len(left)])
            loaded = quadric.load(path)
            assert getattr(loaded, "n_inputs", None) or loaded.n_features_in_ == 200
            for other in left:
                other.unlink()
    return found


# ---- stores --------------------------------------------------------------------------------


def store_runs(path, told):
    """Store runs, and count in shared memory those that were reported as stored."""
    while True:  # opened and closed often, so that some kills occur at these moments
        with Store(path) as opened:
            first = len(opened.runs(RECIPE, "data"))
            for seed in range(first, first + 3):
                task, result = Task(600, 10, "linear", seed), Result((0.25, 0.5, 0.75), 1.5, 600)
                opened.add(RECIPE, "data", task, result, HERE)
                told.value += 1


def stores(count, seed):
    """Kill children that store runs: there is no store, or one with every run that was reported.

    The result also has the number of files of unfinished stores that remain.
    """
    rng, outcomes = random.Random(seed), Counter({"before": 0, "after": 0})
    with tempfile.TemporaryDirectory() as directory:
        path, told = Path(directory) / "0.sqlite", FORK.RawValue("l", 0)
        for number in range(count):
            if rng.random() < 0.3:
                path, told.value = Path(directory) / f"{number}.sqlite", 0
            seconds = rng.choice((0.003, 0.01, 0.05)) * rng.random() * 2
            killed(partial(store_runs, path, told), partial(time.sleep, seconds))
            found = []
            if path.exists():
                with Store(path, read_only=True) as opened:
                    found = [row.task.seed for row in opened.runs(RECIPE, "data")]
            # the last run may have been stored but not reported
            assert found == list(range(len(found)))
            assert told.value <= len(found) <= told.value + 1, (told.value, len(found))
            told.value = len(found)
            outcomes["after" if path.exists() else "before"] += 1
        outcomes["left"] = len(list(Path(directory).glob("*.new*")))
    return outcomes


# ---- streams -------------------------------------------------------------------------------

BUFFER, EPOCHS = 500, 3
OPTIONS = (
    *("--drop", "size", "--epochs", EPOCHS, "--buffer", BUFFER),
    *("--checkpoint-every", 1, "--resume"),
)


def finish(process):
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def stage_of(checkpoint, rows):
    """Return the stage of a killed run, according to its checkpoint."""
    if not checkpoint.exists():
        return "no checkpoint yet"
    _, arrays = container.read(checkpoint, FORM)  # raises an error if it is incomplete
    state = json.loads(arrays["state"].tobytes())["state"]
    last = state.get("buffers") == EPOCHS * rows // BUFFER
    return "third pass" if last else f"{state['stage']} pass"


def streams(count, seed, rows):
    """Kill runs at random moments and resume them until they are done, with the same bytes."""
    rng = random.Random(seed)
    result = {"kills": 0, "runs": 0, "stages": Counter()}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        expected, seconds = {}, {}
        tables = ("table.csv", "table.parquet")[: 1 + count // 10]
        for data in tables:
            write_table(directory / data, rows)
            began = time.monotonic()
            finish(start(directory, data, *OPTIONS, output="whole"))
            seconds[data] = time.monotonic() - began
            expected[data] = (directory / "whole").read_bytes()
        output, checkpoint = directory / "model", directory / "model.checkpoint"
        while result["kills"] < count:
            data = tables[result["runs"] % len(tables)]
            output.unlink(missing_ok=True)
            while True:
                process = start(directory, data, *OPTIONS, output="model")
                left_alone = result["kills"] == count
                try:
                    process.wait(None if left_alone else seconds[data] * rng.uniform(0.2, 1.2))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    result["kills"] += 1
                    result["stages"][stage_of(checkpoint, rows)] += 1
                else:
                    finish(process)
                    break
            result["runs"] += 1
            assert output.read_bytes() == expected[data], "another model"
            assert not checkpoint.exists()
            # a process killed while it saves the model may leave this (docs/guide/model_files.md)
            saving = {path for path, _ in leftovers(output)}
            left = sorted(path.name for path in set(directory.iterdir()) - saving)
            assert left == ["model", *tables, "whole"], left
    return result
