"""Size, speed and start-up of generated code, ONNX runtime, scikit-learn and m2cgen.

python -m benchmarks.generated_code     needs gcc, node, onnxruntime and m2cgen

All programs compute the probabilities of one row at a time; times are CPU times of one thread.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.codegen import generate

C_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"
int main(int count, char **arguments) {{
  static {real} rows[200][{n}];
  {real} p[{m}];
  double sum = 0;
  int rounds = count > 1 ? atoi(arguments[1]) : 0;
  FILE *file = fopen("rows.bin", "rb");
  static double row[{n}];
  for (int r = 0; r < 200; r++) {{
    if (fread(row, sizeof(double), {n}, file) != {n}) return 1;
    for (int i = 0; i < {n}; i++) rows[r][i] = {convert};
  }}
  clock_t start = clock();
  for (int k = 0; k < rounds; k++)
    for (int r = 0; r < 200; r++) {{ {call} sum += (double)p[0]; }}
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  printf("%.9f %g\\n", rounds ? seconds / rounds / 200 * 1e6 : 0, sum);
  return 0;
}}
"""
JS_MAIN = """
import { readFileSync } from "node:fs";
import * as model from "./model.mjs";
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
const f = model.probabilities ?? model.values;
const rounds = Number(process.argv[2] ?? 0);
for (let k = 0; k < rounds; k++) for (const row of rows) f(row);
const start = process.cpuUsage();
for (let k = 0; k < rounds; k++) for (const row of rows) f(row);
const used = process.cpuUsage(start);
console.log(rounds ? (used.user + used.system) / rounds / rows.length : 0);
"""


def models():
    """Return the name, the model, logistic regression in its place, and rows."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(max_iter=50))
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        yield name, model.fit(X, y), plain.fit(X, y), np.resize(X, (200, X.shape[1])), X
    layers = [("linear", 30, "logistic"), ("quadratic", 10, "logistic")]
    net = Network.create(784, layers, init="normal", scale=0.05, rng=0)
    X = np.random.default_rng(0).uniform(size=(200, 784)).round(3)
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5))
    yield "784-30-10", net, plain.fit(X, np.arange(200) % 10), X, None


def start_up(command, folder):
    """Return the shortest of five times of a process that scores nothing, in milliseconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def in_c(text, folder, n, m, call, real="double", convert="row[i]"):
    """Return bytes of object code, microseconds per row, and start-up in milliseconds."""
    (folder / "model.h").write_text(text, encoding="utf-8")
    main = C_MAIN.format(n=n, m=m, call=call, real=real, convert=convert)
    (folder / "main.c").write_text(main, encoding="utf-8")
    compile_ = ["gcc", "-std=c99", "-O2", "-w", "main.c", "-o", "main", "-lm"]
    subprocess.run(compile_, cwd=folder, check=True)
    empty = '#include "model.h"\n'
    (folder / "only.c").write_text(empty, encoding="utf-8")
    api = ["-DMODEL_API="] if "MODEL_API" in text else []
    only = ["gcc", "-std=c99", "-O2", "-w", *api, "-c", "only.c"]
    subprocess.run(only, cwd=folder, check=True)
    sizes = subprocess.run(["size", "only.o"], cwd=folder, capture_output=True, text=True)
    size = sum(map(int, sizes.stdout.splitlines()[1].split()[:3]))
    rounds = 1
    while True:
        out = subprocess.run([folder / "main", str(rounds)], cwd=folder, capture_output=True)
        each = float(out.stdout.split()[0])
        if each * rounds * 200 > 2e5:
            return size, each, start_up([folder / "main"], folder)
        rounds *= 4


def in_javascript(text, folder):
    (folder / "model.mjs").write_text(text, encoding="utf-8")
    (folder / "main.mjs").write_text(JS_MAIN, encoding="utf-8")
    run = ["node", "main.mjs", "20"]
    out = subprocess.run(run, cwd=folder, capture_output=True, check=True)
    return len(text), float(out.stdout), start_up(["node", "main.mjs"], folder)


def per_row(function, rows):
    """Return CPU microseconds per row in this process."""
    function(rows[0])
    rounds, start = 0, time.process_time()
    while time.process_time() - start < 0.2:
        for row in rows[:20]:
            function(row)
        rounds += 20
    return (time.process_time() - start) / rounds * 1e6


def in_python(text, folder, X):
    (folder / "model.py").write_text(text, encoding="utf-8")
    module = {}
    exec(text, module)
    each = per_row(module.get("probabilities", module.get("values")), X.tolist())
    return len(text), each, start_up([sys.executable, "-S", "model.py"], folder)


def in_onnx(model, folder, X):
    import onnxruntime

    from quadric.onnx import export

    path = folder / "model.onnx"
    export(model, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rows = [row[None].astype(np.float32) for row in X]
    each = per_row(lambda row: session.run(None, {"X": row}), rows)
    script = f"import onnxruntime as o; o.InferenceSession({str(path)!r})"
    return path.stat().st_size, each, start_up([sys.executable, "-c", script], folder)


def report(name, what, found):
    size, each, start = found
    started = "" if start is None else f"{start:.0f}"
    print(f"| {name} | {what} | {size:,} | {each:.3g} | {started} |".replace(",", " "), flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    print("| model | program | bytes | µs per row | start-up, ms |\n|---|---|---|---|---|")
    for name, model, plain, rows, X in models():
        with tempfile.TemporaryDirectory() as temporary:
            folder, (n, m) = Path(temporary), (rows.shape[1], len(np.unique(plain.classes_)))
            measure(name, model, plain, rows, X, folder, n, m)


def measure(name, model, plain, rows, X, folder, n, m):
    rows.astype(float).tofile(folder / "rows.bin")
    (folder / "rows.json").write_text(str(rows.tolist()), encoding="utf-8")
    kind = "values" if isinstance(model, Network) else "probabilities"
    call = f"model_{kind}(rows[r], p);"
    text = generate(model, "c")
    report(name, "C, double", in_c(text, folder, n, m, call))
    text = generate(model, "c", arithmetic="float")
    report(name, "C, float", in_c(text, folder, n, m, call, "float", "(float)row[i]"))
    if X is not None:
        text = generate(model, "c", arithmetic="int32", X=X)
        call = "p[0] = model_label(rows[r]);"
        found = in_c(text, folder, n, m, call, "int32_t", "model_fixed(i, row[i])")
        report(name, "C, int32 (labels)", found)
    report(name, "JavaScript", in_javascript(generate(model, "javascript"), folder))
    report(name, "Python", in_python(generate(model, "python"), folder, rows))
    report(name, "ONNX runtime, float32", in_onnx(model, folder, rows))
    proba = model.forward if isinstance(model, Network) else model.predict_proba
    report(name, "quadric in Python", (0, per_row(lambda r: proba(r[None]), rows), None))
    each = per_row(lambda r: plain.predict_proba(r[None]), rows)
    report(name, "logistic regression, scikit-learn", (0, each, None))
    try:
        import m2cgen
    except ImportError:
        return
    text = "#include <math.h>\n" + m2cgen.export_to_c(plain[-1])
    found = in_c(text, folder, n, m, "score(rows[r], p);")
    report(name, "logistic regression, m2cgen, without scaling", found)


if __name__ == "__main__":
    if not (shutil.which("gcc") and shutil.which("node")):
        sys.exit("needs gcc and node")
    main()
