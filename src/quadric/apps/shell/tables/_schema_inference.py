"""Schema inference: decide from the columns' profiles which ones a model uses, and how."""

import re
from collections.abc import Sequence
from typing import Any

from quadric.apps.shell.tables._column_profile import ColumnProfile
from quadric.apps.shell.tables._findings import MOSTLY, ROWS_PER_CLASS, find, how_to_read
from quadric.apps.shell.tables._options import MOST_CLASSES, ColumnOptions
from quadric.apps.shell.tables._schema import Column, Schema
from quadric.errors import TableError
from quadric.utils import counted, first_applying

MANY_CLASSES = 200  # more distinct texts than this are classes only if they occur several times
LONGEST_CATEGORY = 100_000  # characters; model files store all categories
FEW_INTEGERS = 20  # a target with at most this many distinct integers is treated as classes
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")


def infer_schema(
    profiles: Sequence[ColumnProfile], options: ColumnOptions, unnamed: Sequence[str] = ()
) -> Schema:
    """Determine the inputs, their kinds and the task from the profiles."""
    by_name = {profile.name: profile for profile in profiles}
    target = by_name.pop(options.target)
    if not target.rows:
        raise TableError("the table has column names but no rows.")
    task, counts = _task_and_classes(target, options.task)
    kinds = {name: _kind(profile, options, unnamed) for name, profile in by_name.items()}
    left_out = {name: why for name, (_, why) in kinds.items() if why}
    columns = [_column(by_name[name], kind) for name, (kind, why) in kinds.items() if not why]
    if not columns:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(left_out.items())[:5])
        reasons = reasons or f"the table has only the target {options.target!r}"
        advice = next(filter(None, map(how_to_read, by_name.values())), "")
        raise TableError(f"no column is left to learn from ({reasons}). {advice}".strip())
    moments = (target.mean, target.std) if task == "regression" else (0.0, 1.0)
    chosen = {*options.drop, *options.categorical, *unnamed}
    findings = find(
        {name: profile for name, profile in by_name.items() if name not in chosen},
        {column.name: column.kind for column in columns},
        target if options.task is None and task == "regression" else None,
    )
    return Schema(
        tuple(columns),
        target.name,
        task,
        tuple(sorted(counts)),
        tuple(counts[label] for label in sorted(counts)),
        left_out,
        target.rows,
        target.missing,
        *moments,
        order=tuple(by_name),
        findings=tuple(findings),
    )


def _column(profile: ColumnProfile, kind: str) -> Column:
    categories = tuple(sorted(profile.values or ())) if kind == "category" else ()
    return Column(profile.name, kind, categories, profile.missing, profile.mean, profile.std)


def _kind(
    profile: ColumnProfile, options: ColumnOptions, unnamed: Sequence[str]
) -> tuple[str, str]:
    """Return an input's kind and "", or "" and the reason why the column is not used."""
    name, present = profile.name, profile.present
    forced = name in options.categorical
    numeric = profile.numeric == present and not forced
    distinct = None if profile.values is None else len(profile.values)
    constant = not profile.varies if numeric else distinct == 1 and not profile.missing
    longest = 0 if numeric else _longest(profile)
    reasons = {
        "it has no name": name in unnamed,
        "dropped on request": name in options.drop,
        "all its values are missing": not present,
        "it contains dates (convert them to numbers of days)": profile.dates > MOSTLY * present,
        "its values are neither numbers nor text": profile.type == "other",
        "it has only one value": constant,
        f"it contains text of {longest:,} characters": longest > LONGEST_CATEGORY,
    }
    if why := first_applying(reasons):
        return "", why
    if numeric:
        return ("boolean" if profile.booleans == present else "number"), ""
    if distinct is not None:
        return "category", ""
    if profile.numeric > MOSTLY * present and not forced:
        row, value = profile.odd or (0, "")
        raise TableError(
            f"column {name!r} contains numbers except for "
            f"{counted(present - profile.numeric, 'value')}; the first is {value!r} in row {row}. "
            f"{how_to_read(profile) or 'Correct them, or drop the column with --drop.'}"
        )
    return "", (
        f"it is text with more than {profile.most_values} distinct values; "
        "--max-categories raises the limit"
    )


def _task_and_classes(profile: ColumnProfile, task: str | None) -> tuple[str, dict[Any, int]]:
    """Return the task and the number of rows in each class."""
    target, present = f"the target {profile.name!r}", profile.present
    numeric = profile.numeric == present and profile.booleans < present
    counts: dict[Any, int] | None = profile.values
    # labels such as 007, and integers too large for a float, remain strings
    if counts is not None and numeric and profile.whole and all(map(_is_plain_integer, counts)):
        texts, counts = counts, {}
        for text, count in texts.items():
            counts[int(float(text))] = counts.get(int(float(text)), 0) + count
    given = task
    if task is None:
        few = counts is not None and len(counts) <= FEW_INTEGERS and profile.whole
        task = "regression" if numeric and not few else "classification"
    regression, classes = task == "regression", list(counts or ())
    longest = 0 if regression else _longest(profile)
    row, value = profile.odd or (0, "")
    problems = {
        f"all values of {target} are missing.": not present,
        f"{target} contains neither numbers nor text.": profile.type == "other",
        f"regression needs a numeric target, but {profile.name!r} contains {value!r} in "
        f"row {row}. {how_to_read(profile)}".strip(): regression and profile.numeric < present,
        f"{target} has only one value, so there is nothing to learn.": (
            regression and not profile.varies
        ),
        f"{target} contains numbers with commas, such as {value!r}. {how_to_read(profile)}": (
            not regression and given is None and how_to_read(profile)
        ),
        f"{target} has more than {MOST_CLASSES:,} distinct values. Check that it is the right "
        "column; for numbers, use --task regression.": not regression and counts is None,
        f"{target} is text with {len(classes):,} distinct values in {present:,} rows. Check that "
        "it is the right column. If it is, use --task classification.": (
            not regression
            and given is None
            and len(classes) > MANY_CLASSES
            and present < ROWS_PER_CLASS * len(classes)
        ),
        f"{target} has a class of {longest:,} characters. Check that it is the right column, or "
        "use shorter names.": longest > LONGEST_CATEGORY,
        f"{target} has only one class, {', '.join(map(repr, classes))}, so there is nothing to "
        "learn.": not regression and len(classes) == 1,
    }
    if problem := first_applying(problems):
        raise TableError(problem)
    return task, {} if regression else counts or {}


def _longest(profile: ColumnProfile) -> int:
    """The number of characters of the longest category."""
    return max(map(len, profile.values or ()), default=0)


def _is_plain_integer(text: str) -> bool:
    return WHOLE.fullmatch(text) is not None and abs(float(text)) < 2**53
