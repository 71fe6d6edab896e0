"""Time that a new process takes to import quadric, to train XOR and to report an error."""

from __future__ import annotations

import subprocess
import sys
import time

XOR = """
from quadric import Network, datasets
X, y = datasets.xor()
net = Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)
net.fit(X, y, learning_rate=0.1, epochs=200)
assert (net.predict(X) == y).all()
"""

COMMAND = """
import contextlib, os, sys
sys.argv = ["quadric", *{}]
sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")
from quadric.__main__ import main
with contextlib.suppress(SystemExit):
    main()
"""


def seconds(script: str, rounds: int = 5) -> float:
    """Return the median time of several new processes, after a first one that fills the caches."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", script], check=True)
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[rounds // 2]


def main() -> None:
    print("new process, warm caches, median of 5")
    nothing = seconds("pass")
    print(f"  python itself            {nothing:5.2f} s")
    print(f"  import quadric           {seconds('import quadric'):5.2f} s (target: less than 0.3)")
    print(f"  XOR trained by Network   {seconds(XOR):5.2f} s (target: at most 1.5)")
    print(f"  quadric --help           {seconds(COMMAND.format(['--help'])):5.2f} s (target: 0.6)")
    missing = COMMAND.format(["train", "none.csv", "-t", "y"])
    print(f"  quadric train none.csv   {seconds(missing):5.2f} s (target: 0.6)")


if __name__ == "__main__":
    main()
