"""What the commands print and write, in processes of their own."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import quadric
from benchmarks.identity._hashes import FORMAT, Results, model_file
from benchmarks.identity._training import IRIS, SPECIES

# Commands in one list run one after the other in one directory. A line may name a file to compare.
CHAINS: dict[str, list[str]] = {
    "classes": [
        "train shop.csv -t kind -o auto.quadric --json > auto.quadric",
        "train shop.csv -t kind -o one.quadric --hidden none --drop id > one.quadric",
        "train shop.csv -t kind -o kind.quadric --kind reduced --cv 3 --alpha 0.1 > kind.quadric",
        "evaluate one.quadric shop.csv --json",
        "evaluate auto.quadric shop.csv",
        "predict one.quadric shop.csv --proba --keep id -o predicted.csv > predicted.csv",
        "predict auto.quadric shop.csv -o predicted.tsv --json > predicted.tsv",
        "predict auto.quadric shop.csv",
        "explain one.quadric shop.csv",
        "explain one.quadric --json",
        "explain auto.quadric shop.csv --permutation --all",
        "explain one.quadric --spectrum",
        "explain one.quadric shop.csv --row 3",
        "explain one.quadric shop.csv --row 40 --json",
        "certify one.quadric shop.csv -o radii.csv --keep id > radii.csv",
        "certify one.quadric shop.csv --units scaled --fixed size --min-radius 0.1 --json",
        "info one.quadric --json",
        "export one.quadric one.onnx > one.onnx",
        "report one.quadric shop.csv -o report.html > report.html",
    ],
    "numbers": [
        "train houses.csv -t price -o price.quadric --decimal , --json > price.quadric",
        "train houses.csv.gz -t price -o small.quadric --hidden 4 --decimal , --test-size 0.4",
        "evaluate price.quadric houses.csv --decimal , --json",
        "predict price.quadric houses.csv --decimal , -o prices.csv > prices.csv",
        "explain price.quadric houses.csv --decimal , --json",
        "explain small.quadric houses.csv --decimal ,",
        "certify price.quadric houses.csv --decimal ,",
        "info small.quadric --json",
        "export price.quadric price.onnx > price.onnx",
        "report price.quadric houses.csv --decimal , -o report.html > report.html",
    ],
    "streams": [
        "train iris.parquet -t species --stream --epochs 2 -o s.quadric --json > s.quadric",
        "train parts -t species --stream --hidden 3 --buffer 40 -o p.quadric > p.quadric",
        "train iris.parquet -t width --stream --epochs 3 -o w.quadric > w.quadric",
        "evaluate s.quadric iris.parquet --json",
        "predict s.quadric parts --proba",
        "info w.quadric --json",
        "train iris.parquet -t species --categorical width --class-weight balanced --json",
        "predict net.quadric iris.parquet --proba",
        "explain net.quadric iris.parquet",
        "info net.quadric --json",
        "evaluate net.quadric iris.parquet --json",
        "reproduce xor --seeds 2 --out xor --json > xor/xor.csv",
        "reproduce theorem --out theorem --json",
    ],
    "mistakes": [
        "train missing.csv -t kind",
        "train shop.csv -t size of",
        "train shop.csv -t nothing",
        "train shop.csv -t kind --hidden x",
        "train shop.csv -t kind --stream --cv 3",
        "train shop.csv -t kind --task regression",
        "predict shop.csv shop.csv",
        "predict missing.quadric shop.csv",
        "info shop.csv",
        "explain net.quadric iris.parquet --row 1000",
        "predict net.quadric shop.csv",
        "certify net.quadric shop.csv",
        "evaluate net.quadric shop.csv",
        "complexity 4 x",
        "unknown",
        "--help",
        "train --help",
        "explain --help",
        "certify --help",
    ],
}


def write_tables(directory: Path) -> None:
    """Write tables with categories, missing values, decimal commas and several parts."""
    rng = np.random.default_rng(11)
    shop = pl.DataFrame(
        {
            "id": range(90),
            "size": rng.normal(10, 2, 90).round(2),
            "weight": rng.normal(0, 1, 90).round(3),
            "colour": rng.choice(["red", "blue", "gr\u00fcn"], 90),
        }
    )
    price = pl.col("size") ** 2 + 3 * pl.col("weight")
    houses = shop.drop("id").with_columns(price=price.round(2)).write_csv(separator=";")
    directory.joinpath("houses.csv").write_text(houses.replace(".", ","), encoding="utf-8")
    packed = gzip.compress(houses.replace(".", ",").encode(), mtime=0)
    directory.joinpath("houses.csv.gz").write_bytes(packed)
    far = pl.col("weight") ** 2 + (pl.col("colour") == "red") > 1
    gaps = pl.when(pl.col("size") < 12).then("size").alias("size")
    kind = pl.when(far).then(pl.lit("far")).otherwise(pl.lit("near"))
    shop.with_columns(gaps, kind=kind).write_csv(directory / "shop.csv")
    names = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
    order = rng.permutation(len(IRIS))
    iris = pl.DataFrame(IRIS, schema=["a", "b", "c", "width"]).with_columns(species=names)[order]
    iris.write_parquet(directory / "iris.parquet")
    directory.joinpath("parts").mkdir()
    iris[:70].write_parquet(directory / "parts" / "1.parquet")
    iris[70:].write_parquet(directory / "parts" / "2.parquet")
    net = quadric.Network.create(4, [("quadratic", 3, "softmax")], rng=0)
    extra = {"columns": iris.columns[:4], "classes": np.unique(names).tolist(), "target": "species"}
    quadric.save(net, directory / "net.quadric", extra=extra)


def page(path: Path) -> str:
    """Return a report without images, modules, versions and the hash of the model file."""
    text = path.read_text(encoding="utf-8").partition("<h2>Versions</h2>")[0]
    text = re.sub("base64,[^\"']*", "", text)
    return re.sub(r"from quadric\S* import", "from quadric import", text)


def without_times(value: Any) -> Any:
    """Return JSON without durations and without the format and hash of a model file."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        left_out = {"seconds", *FORMAT}
        return {key: without_times(item) for key, item in value.items() if key not in left_out}
    return value


CONTENTS: dict[str, Callable[[Path], Any]] = {".quadric": model_file, ".html": page}


def run(line: str, directory: Path) -> Any:
    """Return the exit code and the output of a command, and the content of the file it writes."""
    arguments, _, file = line.partition(" > ")
    source = str(Path(quadric.__file__).parents[1])
    paths = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": paths, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "quadric", *shlex.split(arguments)],
        cwd=directory,
        env=os.environ | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    output: Any = done.stdout
    if "--json" in arguments and done.returncode == 0:
        output = without_times(json.loads(done.stdout))
    path = directory / file
    content = CONTENTS.get(path.suffix, Path.read_bytes)(path) if path.is_file() else None
    return [done.returncode, output, done.stderr, content]


def run_chain(lines: list[str]) -> list[Any]:
    with tempfile.TemporaryDirectory() as directory:
        write_tables(Path(directory))
        return [run(line, Path(directory)) for line in lines]


def commands() -> Results:
    with ThreadPoolExecutor(2) as pool:
        for name, found in zip(CHAINS, pool.map(run_chain, CHAINS.values()), strict=True):
            for line, value in zip(CHAINS[name], found, strict=True):
                yield f"{name}/{line}", value
