"""Contenders take turns, and their times are compared round by round."""

import itertools

import pytest

from benchmarks import timing
from benchmarks.compare._result import Case, Timing, case_of, from_json, to_json


class Clock:
    """A clock that only moves when a contender runs."""

    def __init__(self):
        self.now, self.calls = 0.0, []

    def contender(self, name, seconds):
        def run():
            self.calls.append(name)
            self.now += next(seconds) if hasattr(seconds, "__next__") else seconds

        return run


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.now)
    return clock


def test_contenders_take_turns_and_another_one_begins_each_round(clock):
    runs = {name: clock.contender(name, 0.5) for name in "abc"}
    timing.seconds_by_round(runs, rounds=3)
    assert "".join(clock.calls) == "aabbcc" + "abc" + "bca" + "cab"


def test_a_long_call_is_not_repeated_to_estimate_its_time(clock):
    timing.seconds_by_round({"a": clock.contender("a", 60.0)}, rounds=3)
    assert len(clock.calls) == 1 + 3


def test_short_calls_are_repeated_and_divided_by_their_number(clock):
    found = timing.seconds_by_round({"a": clock.contender("a", 0.25)}, rounds=2, at_least=1.0)
    assert found == {"a": [0.25, 0.25]}
    assert len(clock.calls) == (2 + 2 + 4) + 2 * 4


def test_slow_first_calls_do_not_suggest_too_few(clock):
    seconds = itertools.chain([0.75, 0.75], itertools.repeat(0.25))
    timing.seconds_by_round({"a": clock.contender("a", seconds)}, rounds=2, at_least=1.0)
    assert len(clock.calls) == (2 + 2 + 4) + 2 * 4


def test_a_first_call_that_compiles_does_not_suggest_a_single_call(clock):
    seconds = itertools.chain([2.0], itertools.repeat(0.25))
    timing.seconds_by_round({"a": clock.contender("a", seconds)}, rounds=2, at_least=1.0)
    assert len(clock.calls) == (2 + 2 + 4) + 2 * 4


def test_a_slow_contender_runs_in_fewer_rounds_but_at_least_in_three(clock):
    runs = {"slow": clock.contender("slow", 100.0), "fast": clock.contender("fast", 1.0)}
    found = timing.seconds_by_round(runs, rounds=20, budget=40.0)
    assert {name: len(seconds) for name, seconds in found.items()} == {"slow": 3, "fast": 20}


def test_another_clock_can_measure(clock):
    ticks = itertools.count()
    found = timing.seconds_by_round(
        {"a": clock.contender("a", 0.5)}, rounds=3, clock=lambda: next(ticks)
    )
    assert found == {"a": [1.0, 1.0, 1.0]}  # from tick to tick, not 0.5 seconds


def test_best_seconds_is_the_minimum_over_the_rounds(clock):
    seconds = itertools.chain([0.9, 0.9], [3.0, 2.0, 4.0])
    assert timing.best_seconds({"a": clock.contender("a", seconds)}, rounds=3) == {"a": 2.0}


def test_ratios_are_medians_over_rounds_that_both_ran_in():
    rounds = {"quadric": [1.0, 2.0, 4.0, 4.0], "other": [3.0, 4.0, 40.0]}
    case = case_of("a case", rounds, units={"quadric": 1, "other": 2})
    ours, other = case.timings
    assert (ours.seconds, ours.ratio) == (3.0, 1.0)
    assert (other.seconds, other.low, other.high) == (2.0, 1.75, 11.0)
    assert other.ratio == 1.5  # the median of 1.5, 1 and 5


def timing_of(contender, ratio):
    return Timing(contender, ratio, ratio, ratio, ratio)


def test_a_case_says_who_is_faster():
    timings = [timing_of("quadric", 1), timing_of("JAX", 0.5), timing_of("torch", 2)]
    case = Case("a case", [*timings, timing_of("quadric, NumPy", 0.1)])
    assert case.verdict() == "2 of 3: JAX takes 0.50×"


def test_variants_of_quadric_are_not_peers():
    case = Case("a case", [timing_of("quadric", 1), timing_of("quadric, NumPy", 0.1)])
    assert (case.peers, case.verdict()) == ([], "no peer")


def test_cases_survive_json():
    case = Case("a case", [timing_of("quadric", 1.0)], {"torch": "too slow"})
    assert from_json(to_json([case])) == [case]
