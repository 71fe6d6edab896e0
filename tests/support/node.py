"""Run Node.js, if it is installed."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
SCRIPTS = Path(__file__).parents[1] / "playground" / "js"

needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def run_script(name: str, *arguments: str) -> str:
    """Run a script of `tests/playground/js`; return what it prints."""
    assert NODE is not None
    command = [NODE, str(SCRIPTS / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def export(settings: dict[str, Any], folder: Path) -> None:
    """Write what the page exports after training with these settings."""
    run_script("export.js", json.dumps(settings), str(folder))


def imported(path: Path, points: Any) -> dict[str, Any]:
    """Return what the page reads from a model file, with the outputs for some points."""
    answer: dict[str, Any] = json.loads(run_script("import.js", str(path), json.dumps(points)))
    return answer
