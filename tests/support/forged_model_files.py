"""Load and use thousands of forged model files, and detect any harm.

    python -m tests.support.forged_model_files COUNT SEED [DAMAGED]
    python -m tests.support.forged_model_files --replay SEED [FILE]

The first command prints, as JSON, how many were refused, how many loaded as a working model, and an
example for each cause of failure. A file that does anything else, ends the process or takes too
long is a failure. So is a file that was damaged without a valid hash and loads as another model;
DAMAGED such files are tried, too. Expensive uses (fit, plot, commands) are tried on only some of
the files; see `forging.uses`. SEED 0 uses only a few models.

The second command repeats the checks of one file and prints the tracebacks. Here, SEED is a seed
from the summary (such as 'damaged 7') or the name of an attack in `forging.files`. The forged
file is written to FILE.
"""

import json
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

if __name__ == "__main__":  # before NumPy starts threads, which make a fork unsafe
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
    os.environ.update({f"{name}_NUM_THREADS": "1" for name in threads})
    os.environ.update(POLARS_MAX_THREADS="1", MPLBACKEND="Agg")

from tests.support.damage import TRACE
from tests.support.forging.files import ATTACKS, SMALL_SEEDS, forged, originals
from tests.support.forging.workers import outcomes, warm_up


def run(count, seed, damaged=0):
    """Examine the attacks, `count` forged files and files with damaged bytes."""
    files = originals(seed * SMALL_SEEDS)
    warm_up(files)
    first = seed * SMALL_SEEDS
    result = {"files": 0, "refused": 0, "works": 0, "failed": 0, "memory": 0.0}
    uses, told, causes, kinds = Counter(), Counter(), {}, {}
    seeds = [*range(first, first + count), *(f"damaged {first + i}" for i in range(damaged))]
    for outcome in outcomes([*ATTACKS, *seeds], files):
        result["files"] += 1
        result["memory"] = max(result["memory"], outcome["memory"])
        uses.update(outcome["uses"])
        told.update(outcome["told"])
        kind = "failed" if outcome["failures"] else "refused" if "refused" in outcome else "works"
        result[kind] += 1
        if outcome["said"][0].startswith("damage"):
            kinds.setdefault(outcome["said"][0], Counter())[kind] += 1
        for cause, trace in outcome["failures"]:
            _add(causes.setdefault(cause, {"count": 0, "seeds": []}), outcome, trace)
    causes = dict(sorted(causes.items(), key=lambda item: -item[1]["count"]))
    assert not TRACE.exists(), "a command in a pickle was run"
    return {**result, "uses": dict(uses), "told": dict(told), "damage": kinds, "causes": causes}


def _add(found, outcome, trace):
    """Record, for each cause, its frequency, some seeds, and the example with fewest changes."""
    found["count"] += 1
    found["seeds"] = [*found["seeds"], outcome["seed"]][:5]
    if "said" not in found or len(outcome["said"]) < len(found["said"]):
        found.update({key: outcome[key] for key in ("seed", "name", "said")}, trace=trace)


def replay(seed, keep=None):
    """Repeat the checks of one file and print the details."""
    seed = int(seed) if seed.isdigit() else seed
    files = originals(int(str(seed).split()[-1]) if seed not in ATTACKS else 0)
    if keep is not None:
        Path(keep).write_bytes(forged(seed, files)[1])
    warm_up(files)
    for outcome in outcomes([seed], files):
        failures = outcome.pop("failures")
        print(json.dumps(outcome, indent=1))
        for cause, trace in failures:
            print(cause, trace, sep="\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--replay":
        replay(*sys.argv[2:])
    else:
        print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
