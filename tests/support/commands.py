"""Run the command line in tests, in this process or in a separate one."""

import contextlib
import json
import subprocess

import polars as pl
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from quadric.apps.shell import app
from tests.support import processes

NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def write_iris(path, names=NAMES, rows=slice(None), target="species"):
    iris = load_iris()
    lines = [",".join([*names, target])]
    for x, k in zip(iris.data[rows], iris.target[rows], strict=True):
        lines.append(",".join([*map(str, x[-len(names) :]), str(iris.target_names[k])]))
    path.write_text("\n".join(lines) + "\n")
    return path


def read_iris(path):
    """Return the inputs and the labels of a file that `write_iris` wrote."""
    frame = pl.read_csv(path)
    return frame.select(NAMES), frame["species"].to_numpy()


def command(*arguments, cwd="."):
    """Run a command in this process."""
    with contextlib.chdir(cwd):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def strict_json(text):
    """Parse JSON without NaN and Infinity, which other programs do not accept."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def process(*arguments, **options):
    """Run a command in a separate process."""
    return processes.run(["-m", "quadric", *arguments], **options)


def assert_error(result, part):
    """Check that a command failed with a one-line error that contains this part."""
    assert result.returncode == 1, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert part in result.stderr


def assert_one_screen(text):
    """Check that a text has at most 45 lines of at most 80 characters."""
    lines = text.splitlines()
    assert len(lines) <= 45
    assert max(len(line) for line in lines if not line.startswith("Report: ")) <= 80
