"""Check that a change of the code leaves every result bit-identical.

`_hashes.py` turns a result into text that determines it to the last bit. `_training.py`,
`_analyses.py`, `_torch_and_plots.py`, `_mistakes.py` and `_commands.py` compute the results, in
functions that yield names and values; `__main__.py` compares their hashes. Only public names of
quadric are used, so the same files run before and after modules are moved.
"""

import os

from benchmarks.two_checkouts import THREAD_VARIABLES

# Sums of BLAS depend on the number of threads. Set it before NumPy is imported.
for variable in THREAD_VARIABLES:
    os.environ[variable] = "1"
