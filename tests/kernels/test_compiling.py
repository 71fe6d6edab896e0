"""Damaged caches of compiled code are repaired."""

from pathlib import Path

import numba
import pytest
from numba.core.caching import FunctionCache

from quadric.kernels import _compiling, _sgd
from tests.support.processes import output_of

pytestmark = pytest.mark.slow

# the functions that compile fastest: an entry point and a shared loop
COUNT = """
import numpy as np
from quadric.kernels import _sgd as rows
counts = np.zeros(2, dtype=np.int64)
rows.count_nonzeros(np.array([0.0, 1.0, 2.0, 3.0]), 2, counts)
print(counts.tolist())
"""
APPLY = """
import numpy as np
from quadric.kernels._activations_and_losses import apply_elementwise as apply
print(apply("logistic", np.zeros(3)).tolist())
"""


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("script", [COUNT, APPLY], ids=["entry point", "shared loop"])
def test_faults_R10_a_damaged_cache_is_repaired(script, suffix, tmp_path):
    def run():
        output_of(script, NUMBA_CACHE_DIR=str(tmp_path))
        return {path: path.stat().st_size for path in tmp_path.rglob("*.nb*")}

    sizes = run()
    damaged = [path for path in sizes if path.suffix == suffix]
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:20])
    run()  # notices the damage
    repaired = run()
    assert repaired.keys() == sizes.keys()
    assert all(repaired[path] > sizes[path] / 2 for path in sizes)
    written = {path: path.stat().st_mtime_ns for path in sizes}
    run()
    assert {path: path.stat().st_mtime_ns for path in sizes} == written  # nothing is compiled


WATCHED = """
from quadric.kernels import watch_compilation
compiled = []
with watch_compilation(lambda: compiled.append(None)):
    {}
print(len(compiled))
"""


@pytest.mark.parametrize("script", [COUNT, APPLY], ids=["entry point", "shared loop"])
def test_compilation_is_announced_once(script, tmp_path):
    lines = script.strip().replace("\n", "\n    ")

    def announced():
        return output_of(WATCHED.format(lines), NUMBA_CACHE_DIR=str(tmp_path)).split()[-1]

    assert [announced(), announced()] == ["1", "0"]


def test_functions_of_a_file_are_announced_one_by_one(monkeypatch, tmp_path):
    """Their names in the cache end with the same digest."""
    announced = []
    monkeypatch.setattr(_compiling, "announce", lambda: announced.append(None))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    one, other = (
        _compiling.for_cache(loop.function, "(float64,)")
        for loop in (_sgd.count_nonzeros, _sgd.compress_rows)
    )
    directory = Path(FunctionCache(one).cache_path)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"_sgd.{one.__qualname__}-98.py311.1.nbc").touch()
    _compiling.announce_unless_cached(one)
    assert not announced
    _compiling.announce_unless_cached(other)
    assert len(announced) == 1
