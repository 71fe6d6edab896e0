"""The drawings in docs/figures/ are those that their scripts make."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "docs" / "figures").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_committed_drawing_is_up_to_date(script, tmp_path):
    drawn = tmp_path / "drawing.svg"
    runpy.run_path(str(script))["main"](drawn)
    committed = script.with_suffix(".svg").read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == committed


def test_there_is_a_script():
    assert SCRIPTS
