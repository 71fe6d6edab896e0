"""The examples of generated code in use."""

import functools
import http.server
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from quadric.codegen import generate
from tests.codegen.conftest import fitted
from tests.support.generated_code import WARNINGS

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.slow


def test_a_c_program_scores_a_csv_file(tmp_path):
    gcc = shutil.which("gcc") or pytest.skip("gcc is not installed")
    model, X = fitted("iris")
    (tmp_path / "model.h").write_text(generate(model, "c"), "utf-8")
    shutil.copy(EXAMPLES / "score_csv.c", tmp_path)
    command = [gcc, *WARNINGS, "-O2", "score_csv.c", "-o", "score_csv", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = ["a,b,c,d", *(",".join(map(repr, row)) for row in X.tolist()), "5.1,,1.4,0.2"]
    done = subprocess.run(
        [tmp_path / "score_csv"], input="\n".join(lines), capture_output=True, text=True
    )
    labels = [line.split(",")[0] for line in done.stdout.splitlines()]
    assert labels == [*map(str, model.predict(X)), "?"]


def test_duckdb_scores_a_parquet_file(tmp_path, monkeypatch):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    model, X = fitted("mixed")
    color = [value if isinstance(value, str) else None for value in X["color"]]
    columns = {**X.to_dict("list"), "color": color, "row": range(len(X))}
    polars.DataFrame(columns, strict=False).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    text = generate(model, "duckdb", table="rows.parquet", keep=["row"])
    found = sorted(duckdb.sql(text).fetchall())
    assert [row[1] for row in found] == model.predict(X).tolist()


def test_integers_compile_for_a_microcontroller_without_floating_point(tmp_path):
    compiler = shutil.which("arm-none-eabi-gcc") or pytest.skip(
        "arm-none-eabi-gcc is not installed"
    )
    model, X = fitted("iris")
    text = generate(model, "c", X=X, arithmetic="int32")
    (tmp_path / "model.h").write_text(text, "utf-8")
    shutil.copy(EXAMPLES / "score_cortex_m0.c", tmp_path)
    options = [*WARNINGS, "-Os", "-mcpu=cortex-m0", "-mthumb", "-c", "score_cortex_m0.c"]
    subprocess.run([compiler, *options], cwd=tmp_path, check=True)
    objects = [tmp_path / "score_cortex_m0.o"]
    names = subprocess.run(
        ["arm-none-eabi-nm", "-u", *objects], capture_output=True, text=True, check=True
    ).stdout
    floating = ("adddf", "dadd", "dmul", "fadd", "fmul", "ldexp", "d2iz")
    assert not [name for name in names.split() if any(part in name for part in floating)]
    size = subprocess.run(
        ["arm-none-eabi-size", *objects], capture_output=True, text=True, check=True
    )
    code_and_constants, data = map(int, size.stdout.splitlines()[1].split()[:2])
    assert (code_and_constants < 1500, data) == (True, 0)


def test_a_page_computes_labels(tmp_path):
    chromium = shutil.which("chromium") or pytest.skip("chromium is not installed")
    model, _ = fitted("iris")
    (tmp_path / "model.js").write_text(generate(model, "javascript"), "utf-8")
    shutil.copy(EXAMPLES / "score_page.html", tmp_path)
    handler = functools.partial(Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/score_page.html"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
        options += ["--disable-background-networking", "--disable-component-update"]
        done = subprocess.run(
            [chromium, *options, "--dump-dom", address], capture_output=True, text=True
        )
        server.shutdown()
        thread.join()
    (label,) = model.predict(np.ones((1, 4)))
    p = model.predict_proba(np.ones((1, 4)))[0, label]
    assert f"<output>{label} ({100 * p:.1f} %)</output>" in done.stdout


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass
