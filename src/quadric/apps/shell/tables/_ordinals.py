"""Ordered categories: the usual scales of surveys, sizes and levels, in their order."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

LEAST_LEVELS = 3  # two categories have no order that matters
MOST_LEVELS = 20  # stars or points

# Levels are separated by <, and words for the same level by |.
SCALES = """
completely disagree | totally disagree | strongly disagree < disagree | mostly disagree
  < somewhat disagree | slightly disagree | tend to disagree
  < neutral | neither | neither agree nor disagree | neither disagree nor agree | undecided
  < somewhat agree | slightly agree | tend to agree < agree | mostly agree
  < strongly agree | totally agree | completely agree

extremely dissatisfied | completely dissatisfied < very dissatisfied | very unsatisfied
  < dissatisfied | unsatisfied | not satisfied
  < somewhat dissatisfied | slightly dissatisfied | somewhat unsatisfied
  < neutral | neither | neither satisfied nor dissatisfied
  < somewhat satisfied | slightly satisfied < satisfied | mostly satisfied
  < very satisfied < extremely satisfied | completely satisfied

never < almost never | hardly ever < rarely | seldom < occasionally < sometimes
  < often | frequently < very often | usually | very frequently
  < almost always | nearly always < always

never < yearly | annually < quarterly < monthly < weekly < daily < hourly

very poor | very bad | terrible | awful < poor | bad < below average < fair
  < average | ok | okay | acceptable | adequate < above average < good
  < very good < excellent | outstanding | exceptional

po < fa < ta < gd < ex

none | no | not at all < minimal | very low < low < medium low
  < medium | mid | middle | moderate | normal | average < medium high < high
  < very high < extreme | critical

none | no < mild < moderate < severe < very severe | critical
none | no < trivial < minor < moderate < major < critical | catastrophic | blocker

not at all < a little | slightly | a little bit < somewhat | moderately
  < quite a bit | quite a lot | very | a lot < extremely | a great deal | very much

not at all important | not important | unimportant < slightly important | of little importance
  < somewhat important < moderately important < important < very important
  < extremely important | essential

not at all likely | extremely unlikely < very unlikely < unlikely < somewhat unlikely
  < neutral | neither likely nor unlikely | possible < somewhat likely < likely
  < very likely < extremely likely

much worse < worse < somewhat worse | slightly worse < same | the same | about the same | no change
  < somewhat better | slightly better < better < much better

very unhappy < unhappy < neutral < happy < very happy
very negative < negative < neutral < positive < very positive
very difficult | very hard < difficult | hard < neutral | medium | moderate < easy < very easy

xxxs < xxs < xs < s < m < l < xl < xxl | 2xl < xxxl | 3xl < xxxxl | 4xl
tiny | extra small | very small < small < medium | mid | normal | regular < large | big
  < extra large | very large | huge

very cold | freezing < cold < cool < mild < warm < hot < very hot
very slow < slow < medium | moderate | normal < fast < very fast
beginner | novice < intermediate < advanced < expert
trainee | intern < junior < mid | middle | intermediate < senior < lead | principal
freshman < sophomore < junior < senior
bronze < silver < gold < platinum < diamond

no formal education | none < primary | primary school | elementary | elementary school
  < secondary | secondary school | high school < some college
  < associate | associates | associate's | associate degree
  < bachelor | bachelors | bachelor's | bachelor's degree | bachelor degree
  < master | masters | master's | master's degree | master degree
  < doctorate | phd | ph.d. | doctoral
"""
NO_ANSWER = frozenset(
    {
        *("don't know", "dont know", "do not know", "not sure", "unsure", "no answer"),
        *("not applicable", "no opinion", "prefer not to say", "refused", "unknown"),
    }
)
NUMBERED = re.compile(r"^\(?\d+\)?\s*[-.:=)]\s*(?=[^\d\s])")  # such as '1 - strongly disagree'
POINTS = re.compile(r"^(\d+(?:\.5)?)\s*(?:stars?|points?|/\s*(?:5|10))$")
STARS = re.compile(r"^★+☆*$")


def _ranks(scale: str) -> dict[str, float]:
    """The rank of each word of a scale."""
    levels = enumerate(scale.split("<"))
    return {word.strip(): float(rank) for rank, level in levels for word in level.split("|")}


# a scale ends at an empty line, or if the next line does not continue it
RANKS = [_ranks(scale) for scale in re.sub(r"\n+  ", " ", SCALES).split("\n") if scale.strip()]


def ordered(values: Iterable[str]) -> tuple[str, ...]:
    """Return the categories of a column in their order, or nothing if they are not ordinal.

    All values must be different levels of one scale, in any case; answers such as "don't know" are
    left out. There must be at least three. Two spellings of a level, such as "Low" and "low", would
    get different numbers, so these are not ordinal.

    Examples
    --------
    >>> ordered(["Agree", "Neutral", "Disagree"])
    ('Disagree', 'Neutral', 'Agree')
    >>> ordered(["1 star", "10 stars", "5 stars"])
    ('1 star', '5 stars', '10 stars')
    >>> ordered(["red", "green", "blue"])
    ()
    >>> ordered(["Low", "low", "Medium", "High"])
    ()
    """
    words = {value: _plain(value) for value in values}
    words = {value: word for value, word in words.items() if word not in NO_ANSWER}
    if not LEAST_LEVELS <= len(words) <= MOST_LEVELS:
        return ()
    points = {value: _points(word) for value, word in words.items()}
    scales = ({value: scale.get(word) for value, word in words.items()} for scale in RANKS)
    for ranks in (points, *scales):
        found = {value: rank for value, rank in ranks.items() if rank is not None}
        if len(found) == len(words) == len(set(found.values())):
            return tuple(sorted(found, key=found.__getitem__))
    return ()


def spellings(categories: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of categories that differ only in their case."""
    by_case = sorted(categories, key=str.casefold)
    return [(a, b) for a, b in pairwise(by_case) if a.casefold() == b.casefold()]


def _plain(value: str) -> str:
    """A value in lowercase with single spaces, without the number of its level."""
    text = re.sub(r"[\s_–—-]+", " ", NUMBERED.sub("", value.lower().replace("’", "'")))
    return text.strip()


def _points(word: str) -> float | None:
    """The number of stars or points, or None."""
    if STARS.match(word):
        return float(word.count("★"))
    found = POINTS.match(word)
    return float(found[1]) if found else None
