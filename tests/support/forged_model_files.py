"""Load and use thousands of forged model files, and detect any harm.

    python -m tests.support.processes forged_model_files.run COUNT SEED DAMAGED

This command prints, as JSON, how many were refused, how many loaded as a working model, and an
example for each cause of failure, with its traceback. A file that does anything else, ends the
process or takes too long is a failure. So is a file that was damaged without a valid hash and loads
as another model; DAMAGED such files are tried, too. Expensive uses (fit, plot, commands) are tried
on only some of the files; see `forging.uses`. SEED 0 uses only a few models. The bytes of a file
are ``forged(seed, originals(seed))[1]``, with the seed of an example.
"""

import warnings
from collections import Counter

from tests.support.damage import TRACE
from tests.support.forging.files import ATTACKS, FOR_TABLES, SMALL_SEEDS, originals
from tests.support.forging.workers import outcomes, warm_up


def run(count, seed, damaged=0, for_tables=0):
    """Examine the attacks, `count` forged files and files with damaged bytes.

    With `for_tables`, only of models that read tables and encode categories.
    """
    warnings.simplefilter("ignore")
    files = originals(seed * SMALL_SEEDS)
    files = [file for file in files if not for_tables or file.name in FOR_TABLES]
    there = {file.name for file in files}
    attacks = [attack for attack, (name, _) in ATTACKS.items() if name in there]
    warm_up(files)
    first = seed * SMALL_SEEDS
    result = {"files": 0, "refused": 0, "works": 0, "failed": 0, "memory": 0.0}
    uses, told, causes, kinds = Counter(), Counter(), {}, {}
    seeds = [*range(first, first + count), *(f"damaged {first + i}" for i in range(damaged))]
    for outcome in outcomes([*attacks, *seeds], files):
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
