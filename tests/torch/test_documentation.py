"""The examples of docs/torch.md print what the page says, and the shell takes what they save."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.support.networks import output_of

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"


@pytest.mark.slow
def test_the_code_of_the_page_prints_what_it_shows(tmp_path):
    text = PAGE.read_text()
    examples, outputs = (
        re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) for language in ("python", "text")
    )
    assert len(examples) == len(outputs) == 2
    for example, output in zip(examples, outputs, strict=True):
        assert output_of(example, tmp_path) == output
    subprocess.run(
        [sys.executable, "-m", "quadric", "predict", "iris.quadric", "iris.csv", "-o", "out.csv"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    from sklearn.datasets import load_iris

    predicted = pl.read_csv(tmp_path / "out.csv")["species"].to_numpy()
    iris = load_iris()
    assert np.mean(predicted == iris.target_names[iris.target]) > 0.97
