"""A trained model for the tests of commands."""

import pytest

from tests.support.commands import command, write_iris


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A directory with iris.csv and the model trained on it."""
    directory = tmp_path_factory.mktemp("place")
    write_iris(directory / "iris.csv")
    result = command(
        "train",
        "iris.csv",
        "-t",
        "species",
        "--hidden",
        "none",
        "-o",
        "iris.quadric",
        cwd=directory,
    )
    assert result.returncode == 0, result.stderr
    (directory / "said.txt").write_text(result.stdout)
    return directory
