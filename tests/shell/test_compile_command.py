"""`quadric compile`, and the announcement of compilation in a terminal."""

import io
import json

import pytest
from typer.testing import CliRunner

import quadric.network
from quadric.apps.shell import app
from quadric.apps.shell.commands import _console
from quadric.kernels._announcement import announce


@pytest.fixture
def compiling(monkeypatch):
    """Run `quadric compile` with a fake compilation of so many loops."""

    def run(count, *options):
        def compile_loops(report):
            for _ in range(count):
                announce()
            report(1, 1)
            return count

        monkeypatch.setattr(quadric.network, "compile_loops", compile_loops)
        return CliRunner().invoke(app, ["compile", *options])

    return run


@pytest.mark.parametrize(
    ("count", "text"),
    [(13, "Compiled 13 loops in 0 s.\n"), (0, "All loops were compiled before.\n")],
)
def test_compile_says_what_it_did(compiling, count, text):
    result = compiling(count)
    assert (result.exit_code, result.stdout, result.stderr) == (0, text, "")


def test_compile_prints_json_and_nothing_else(compiling, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    result = compiling(13, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["compiled"] == 13
    assert result.stderr == ""


def test_an_error_of_the_compiler_is_one_line(compiling, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")

    def refuse(report):
        raise RuntimeError("numba must compile this function, but NUMBA_DISABLE_JIT is set.")

    monkeypatch.setattr(quadric.network, "compile_loops", refuse)
    result = CliRunner().invoke(app, ["compile"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: numba must compile this function")


@pytest.mark.parametrize(
    ("terminal", "disabled", "lines"),
    [(True, False, [1, 2]), (False, False, []), (True, True, [])],
    ids=["terminal", "pipe", "JSON"],
)
def test_compilation_is_counted_on_a_terminal(monkeypatch, terminal, disabled, lines):
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(stderr, "isatty", lambda: terminal, raising=False)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with _console.compilation_announced(disabled=disabled):
        announce()
        announce()
    announce()  # outside
    expected = "".join(f"Compiling once for this machine: loop {k} ...\n" for k in lines)
    assert stderr.getvalue() == expected
