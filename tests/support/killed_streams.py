"""Kill streaming runs repeatedly with SIGKILL.

    python -m tests.support.processes killed_streams COUNT SEED ROWS

A run is started, killed at a random moment, and resumed until it is done. The model must be
byte-identical to that of an uninterrupted run. This is repeated until COUNT processes have been
killed. The command prints, as JSON, the numbers of runs and kills, and the stages at which the
processes were killed.
"""

import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from quadric.apps.shell.tables._streaming import FORM
from quadric.files import _safetensors as container
from quadric.utils import leftovers
from tests.support.streams import start, write_table

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
    return (
        "third pass"
        if state.get("buffers") == EPOCHS * rows // BUFFER
        else f"{state['stage']} pass"
    )


def run(count, seed, rows):
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
            # a process killed while it saves the model may leave this behind (docs/model_files.md)
            saving = {path for path, _ in leftovers(output)}
            left = sorted(path.name for path in set(directory.iterdir()) - saving)
            assert left == ["model", *tables, "whole"], left
    return result
