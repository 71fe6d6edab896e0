"""The memory limit set by the user is respected."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import quadric
from quadric import Network, QuadraticClassifier
from quadric.errors import MemoryLimitError
from tests.support import processes
from tests.support.memory import FEW_CASES, MORE_CASES, random_cases

MB = 2**20


@pytest.fixture
def limit():
    yield lambda size: quadric.set_config(max_memory=size)
    quadric.set_config(max_memory=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(FEW_CASES, id="few"),
        pytest.param(MORE_CASES, id="more", marks=pytest.mark.full),
        pytest.param(random_cases(200), id="random", marks=pytest.mark.full),
    ],
)
def test_a_limit_set_by_the_user_is_respected(cases):
    """A call is refused before it allocates, or exceeds the limit by at most a fifth."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not report how much a process has grown")
    run = processes.run(["-m", "tests.support.memory"], text=json.dumps(cases))
    assert run.returncode == 0, run.stderr
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(results) == len(cases)
    spare = 2 * MB  # Python's objects and the caches of libraries
    broken = [
        (result["case"], [(limit // MB, grown // MB) for limit, grown in result["steps"]])
        for result in results
        if any(grown > 1.2 * limit + spare for limit, grown in result["steps"])
    ]
    assert not broken, "\n".join(map(str, broken))
    # the estimate is not many times too large
    over = [steps[-1][0] / (steps[-1][1] + spare) for steps in (r["steps"] for r in results)]
    assert np.median(over) < 2.5
    assert all(len(r["steps"]) > 1 for r in results if "limit" not in r["case"])


@pytest.mark.slow
def test_classes_count_toward_the_limit(limit):
    """Five thousand classes have few parameters, but many targets."""
    X, y = np.zeros((20_000, 2)), np.arange(20_000) % 5000
    limit("300 MB")
    for options in ({"solver": "adam"}, {"solver": "lbfgs"}, {"solver": "sgd", "batch_size": 1}):
        model = QuadraticClassifier((), layer_kinds="linear", **options)
        with pytest.raises(MemoryLimitError, match=r"20,000 samples of 2 inputs and 5,000 outputs"):
            model.fit(X, y)
    with pytest.raises(MemoryLimitError, match="partial_fit"):
        model.fit(X, y)
    small = QuadraticClassifier((), layer_kinds="linear", solver="adam", max_iter=1, tol=1e9)
    small.partial_fit(X[:500], y[:500] % 100, classes=np.arange(5000))
    with pytest.raises(MemoryLimitError, match="20,000 samples"):
        small.partial_fit(X, y)
    with pytest.raises(MemoryLimitError, match="predictions for 20,000 samples, 40,000 bytes each"):
        small.predict_proba(X)
    assert small.predict(X).shape == (20_000,)  # predictions without probabilities are small


@pytest.mark.parametrize("batch_size", [1, 32])
def test_an_offset_of_sparse_data_needs_no_dense_copy(batch_size, limit):
    """A dense copy would take 153 MB; L-BFGS makes one, and SGD does not."""
    X, Y = sparse.csr_array((1000, 20_000)), np.eye(2)[np.arange(1000) % 2]
    net = Network.create(20_000, [("linear", 2, "softmax")], rng=0)
    limit("120 MB")
    net.fit(X, Y, offset=0.5, epochs=1, batch_size=batch_size)
    with pytest.raises(MemoryLimitError):
        net.fit(X, Y, offset=0.5, epochs=1, solver="lbfgs")


def test_the_error_has_attributes_and_can_be_pickled(limit):
    limit("1 MB")
    with pytest.raises(MemoryError) as caught:
        QuadraticClassifier((), alpha=1.0).fit(np.ones((10, 200)), [0, 1] * 5)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert error.limit == MB < error.needed
    assert "layer 0 (quadratic, 200 inputs, 1 neurons)" in error.fact
    assert "set_config(max_memory=...)" in error.ways


# ---- categories in the command line ----------------------------------------------------------


def write_table(path, rows, categories):
    rng = np.random.default_rng(0)
    names = rng.permutation(np.arange(rows) % categories)
    values = rng.normal(size=rows).round(3).tolist()
    lines = [f"name{k},{x},{'ab'[x > 0]}\n" for k, x in zip(names, values, strict=True)]
    path.write_text("name,x,y\n" + "".join(lines))
    return path


MEASURED = """
import resource, sys, warnings
from quadric.apps.shell import app
import quadric
sys.argv[1:2] = []
if sys.argv[1].isdigit():
    quadric.set_config(max_memory=int(sys.argv.pop(1)))
code = 0
try:
    app()
except SystemExit as end:
    code = end.code
print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB", file=sys.stderr)
sys.exit(code)
"""


def command(*arguments):
    """Return the exit code, stderr and the peak memory of the process in megabytes."""
    run = subprocess.run(  # not a warm one, whose memory is partly that of another process
        [sys.executable, "-c", MEASURED, "-", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    *said, last = run.stderr.splitlines()
    return run.returncode, said, int(last.split()[1])


@pytest.mark.slow
@pytest.mark.parametrize("count", [4000, pytest.param(100_000, marks=pytest.mark.full)])
def test_many_categories_stay_sparse(count, tmp_path):
    """Dense inputs would take 0.13 GB (75 GB for the full count)."""
    table, model = write_table(tmp_path / "t.csv", count, count), tmp_path / "m.quadric"
    train = ["train", table, "-t", "y", "-o", model, "--max-categories", 2 * count]
    code, _, usual = command(
        "train", write_table(tmp_path / "s.csv", 300, 3), "-t", "y", "-o", tmp_path / "s.quadric"
    )
    assert code == 0
    most = usual + (200 if count < 10_000 else 1500)
    code, said, peak = command(200 * MB, *train, "--hidden", "none")
    assert code == 1
    assert peak < most
    assert len(said) == 1
    assert "inputs, 1 neurons) has" in said[0]
    assert "Use --kind reduced, --hidden 30, or fewer columns (--drop)." in said[0]
    assert not model.exists()
    code, said, peak = command(*train, "--kind", "reduced")
    assert code == 0, said
    assert peak < most
    code, said, peak = command("predict", model, table, "-o", tmp_path / "out.csv", "--proba")
    assert code == 0, said
    assert peak < most
    assert len((tmp_path / "out.csv").read_text().splitlines()) == count + 1
    code, said, peak = command(200 * MB, "explain", model)
    assert (code, len(said)) == (1, 1)
    assert "would need about" in said[0]
    assert peak < most


@pytest.mark.slow
def test_a_dense_model_of_many_categories_predicts_in_small_batches(tmp_path):
    """A program may have chosen dense encoding; then a batch has fewer rows."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    from quadric import save
    from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train

    table = write_table(tmp_path / "t.csv", 4000, 4000)
    options = ColumnOptions("y", most_categories=5000)
    trained = train(open_table(table), options, Settings(kind="reduced"))
    columns = next(step for step in trained.model if isinstance(step, ColumnTransformer))
    encoder = columns.named_transformers_["categories"][-1]
    assert isinstance(encoder, OneHotEncoder)
    columns.sparse_output_ = encoder.sparse_output = False
    extra = {"table": trained.schema.to_dict()}
    save(trained.model, tmp_path / "m.quadric", extra=extra)
    _, _, usual = command("predict", tmp_path / "m.quadric", write_table(tmp_path / "s.csv", 9, 3))
    wide = write_table(tmp_path / "w.csv", 16_000, 4000)  # 0.5 GB if encoded at once
    code, said, peak = command("predict", tmp_path / "m.quadric", wide, "-o", tmp_path / "o.csv")
    assert code == 0, said
    assert peak < usual + 250
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 16_001
