"""The tutorial about bilinear MLPs runs and reaches the results that it states."""

import json
from pathlib import Path

import matplotlib as mpl
import pytest

PATH = Path(__file__).parents[2] / "docs/tutorials/06_fold_and_read_a_bilinear_mlp.ipynb"


def code_cells():
    cells = json.loads(PATH.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_is_stored_without_outputs():
    assert code_cells()
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code_cells())


@pytest.mark.slow
def test_the_notebook_runs(capsys):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    mpl.use("agg")
    from matplotlib import pyplot

    threads, values = torch.get_num_threads(), {}
    try:
        with torch.random.fork_rng(devices=[]):
            for cell in code_cells():
                exec("".join(cell["source"]), values)
    finally:
        torch.set_num_threads(threads)
        pyplot.close("all")
    assert values["after"] > 0.88
    assert values["after"] > values["before"] + 0.05
    assert values["small"].n_parameters < values["folded"].n_parameters / 3
    assert "largest difference of the logits" in capsys.readouterr().out
