"""Compare the hashes of all results with those of another version of the code.

python -m benchmarks.identity --write before.json      with the old code
python -m benchmarks.identity --compare before.json    with the new code; exit code 1 if any differs
python -m benchmarks.identity --compare before.json --only certify,explain   some groups
python -m benchmarks.identity --show certify/softmax/radius      what is hashed, for a diff

PYTHONPATH selects the code. The hashes depend on the processor and on the versions of the
libraries, so only files that were written on the same machine can be compared.
"""

import argparse
import json
import sys
import time
import traceback
from pathlib import Path

import quadric
from benchmarks.identity import _analyses, _commands, _mistakes, _torch_and_plots, _training
from benchmarks.identity._hashes import canonical, sha256

GROUPS = {
    "network": _training.networks,
    "estimators": _training.estimators,
    "pipelines": _training.pipelines,
    "certify": _analyses.certificates,
    "explain": _analyses.explanations,
    "convert": _analyses.conversions,
    "geometry": _analyses.surfaces,
    "reference": _analyses.references,
    "torch": _torch_and_plots.modules,
    "plots": _torch_and_plots.plots,
    "mistakes": _mistakes.mistakes,
    "commands": _commands.commands,
}


def results(groups: list[str]) -> dict[str, str]:
    """Return the text of every result. After an error, the rest of its group is missing."""
    found = {}
    for group in groups:
        start = time.perf_counter()
        before = len(found)
        try:
            for name, value in GROUPS[group]():
                if f"{group}/{name}" in found:
                    raise ValueError(f"two results are named {group}/{name}")
                found[f"{group}/{name}"] = canonical(value)
        except Exception:
            traceback.print_exc()
        seconds = time.perf_counter() - start
        print(f"{group}: {len(found) - before} results, {seconds:.0f} s", file=sys.stderr)
    return found


def compare(expected: dict[str, str], found: dict[str, str]) -> bool:
    """Print the names that differ or are missing, and return whether there are none."""
    differing = [name for name in expected if name in found and found[name] != expected[name]]
    missing = [name for name in expected if name not in found]
    print(f"{len(expected) - len(differing) - len(missing)} of {len(expected)} results agree.")
    for title, names in {"Different": differing, "Missing": missing}.items():
        print("".join(f"{title}: {name}\n" for name in names), end="")
    new = len(found.keys() - expected.keys())
    if new:
        print(f"{new} results are new.")
    return not differing and not missing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identity")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", type=Path, help="write the hashes to this file")
    task.add_argument("--compare", type=Path, help="compare the hashes with those in this file")
    task.add_argument("--show", help="print the text of the results whose names start like this")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, separated by commas")
    parser.add_argument("--about", help="with --write: an entry that describes the file")
    options = parser.parse_args()
    groups = [options.show.split("/")[0]] if options.show else options.only.split(",")
    print(f"quadric from {Path(quadric.__file__).parent}", file=sys.stderr)
    texts = results(groups)
    found = {name: sha256(text.encode()) for name, text in texts.items()}
    if options.write:
        about = {"about": options.about} if options.about else {}
        options.write.write_text(
            json.dumps(about | found, indent=0, ensure_ascii=True) + "\n", encoding="utf-8"
        )
        print(f"{len(found)} results.")
    elif options.compare:
        stored = json.loads(options.compare.read_text(encoding="utf-8"))
        expected = {name: text for name, text in stored.items() if name.split("/")[0] in groups}
        sys.exit(not compare(expected, found))
    else:
        shown = {name: text for name, text in texts.items() if name.startswith(options.show)}
        print("\n".join(f"{name}\n{text}" for name, text in shown.items()))


if __name__ == "__main__":
    main()
