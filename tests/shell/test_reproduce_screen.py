"""The screen of `quadric reproduce`: one line per experiment, and what does not hold."""

import io

import pytest
from rich.console import Console

from quadric.apps.paper import EXPERIMENTS, Outcome, Table, Verdict, judge, statements
from quadric.apps.paper._experiment import NEEDS_FULL, Claim, Headline
from quadric.apps.shell.commands import _reproduce_screen as screen


def full_screen(verdict, note):
    """Return the screen of a run in which every claim of an experiment has this verdict."""
    outcomes = []
    for name in EXPERIMENTS:
        mine = [one for one in statements().values() if one.experiment == name]
        claims = [Claim(one.id, "said", note, verdict) for one in mine]
        longest = Headline("w" * 34, "p" * 16, "o" * 16, verdict, mine[0].id)
        outcomes.append(Outcome(name, name, "", claims=claims, headline=longest))
    rows = [
        (size, epochs, *[99.99] * 6, 15, 15)
        for size in (600, 1200, 6000, 60000)[: None if verdict is Verdict.FAILS else 3]
        for epochs in (5, 10, 20)
    ]
    outcomes[2].tables.append(Table("mnist_summary", "", ("",) * 10, rows))
    judged = judge(claim for outcome in outcomes for claim in outcome.claims)
    return [str(line) for line in screen._lines(outcomes, judged)]


def test_a_run_of_everything_fits_on_one_screen():
    lines = full_screen(Verdict.UNKNOWN, f"seen; {NEEDS_FULL}")
    assert len(lines) <= 43  # and a line before and after them
    assert max(map(len, lines)) <= 80
    assert lines[1].endswith("o*holds")  # recorded
    assert "* recorded from the committed full run, not judged by this run" in lines
    assert "Needs --full; verdicts recorded from the committed full run:" in lines
    assert "  6000      5  99.99  99.99   99.99  99.99   99.99  99.99   15 of 15" in lines
    assert lines[-1].startswith("Not run: the studies (--studies); recorded:")


def test_what_does_not_hold_is_listed_and_misprints_are_counted():
    lines = full_screen(Verdict.FAILS, "seen")
    assert len(lines) <= 43
    assert max(map(len, lines)) <= 80
    assert "- A single linear neuron cannot learn XOR." in lines  # the first ones are listed
    counted = " ".join(" ".join(lines).split()).partition("- also ")[2]
    misprints = [one for one in statements().values() if one.kind == "misprint"]
    failing = sum(one.finding.verdict is Verdict.FAILS for one in misprints)
    assert f"{failing} misprints" in counted
    assert ": see --details" in counted
    assert not any(line.startswith("Needs") for line in lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_there_is_a_live_line_per_experiment_or_a_plain_one_in_a_log(monkeypatch, terminal):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=80, color_system=None)
    monkeypatch.setattr(screen, "make_console", lambda **options: console)
    live = screen.LiveLines({"xor": 2.0, "mnist": 40.0})
    with live.bars:
        with live.running("xor") as update:
            update(1, 4, "xor: 1 of 4")
            live.bars.refresh()
        with live.running("mnist"):
            live.bars.refresh()
    text = stream.getvalue()
    if not terminal:
        assert text == "xor ...\nmnist ...\n"
        return
    assert " 25% " in text
    assert "left:" in text
    assert "1 of 4" in text
    assert "about 40 s" in text
    assert "done" in text
    assert "..." not in text
