"""Damaged caches of compiled code are repaired."""

import os
import subprocess
import sys

import pytest

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
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        )
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
