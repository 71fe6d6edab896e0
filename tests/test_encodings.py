"""Files are opened with a named encoding, because the default differs between systems."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path for name in ("src", "benchmarks", "examples") for path in (ROOT / name).rglob("*.py")
]


def is_binary(call):
    """Return whether a mode such as "rb" is among the arguments."""
    modes = [*call.args, *(keyword.value for keyword in call.keywords)]
    values = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    return any(
        isinstance(value, str) and set(value) <= set("rwxab+") and "b" in value for value in values
    )


def unnamed(source):
    """Return the lines that read or write text without naming an encoding."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        on = getattr(getattr(function, "value", None), "id", "")  # os.open is binary, for instance
        has_encoding = any(keyword.arg == "encoding" for keyword in node.keywords)
        opens = (
            name == "open"
            and on not in {"os", "gzip", "tarfile", "webbrowser"}
            and not is_binary(node)
        )
        if (opens or name in {"read_text", "write_text"}) and not has_encoding:
            lines.append(node.lineno)
    return lines


def test_every_file_is_opened_with_an_encoding():
    assert len(SOURCES) > 150
    found = {str(path.relative_to(ROOT)): unnamed(path.read_text("utf-8")) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "open(p)",
        "open(p, 'w')",
        "p.read_text()",
        "p.write_text(t)",
        "p.open()",
        "open(p, mode='a')",
    ],
)
def test_a_missing_encoding_is_detected(line):
    assert unnamed(line) == [1]


@pytest.mark.parametrize(
    "line",
    [
        "open(p, 'rb')",
        "open(p, encoding='utf-8')",
        "p.open('wb')",
        "os.open(p, 0)",
        "p.read_bytes()",
    ],
)
def test_bytes_need_no_encoding(line):
    assert unnamed(line) == []
