"""Schema inference: decide which columns a model uses, and how, from their profiles.

A second pass over the rows is needed if a column turns out to have dates, or numbers that are not
plain (`profile_again`). Findings are what the profiles suggest that the user should check.
"""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from quadric.apps.shell.tables._column_profile import (
    TWO_READINGS,
    ColumnProfile,
)
from quadric.apps.shell.tables._options import (
    DECIMAL_POINT,
    ColumnOptions,
    TableFormat,
    check_columns,
    given_orders,
    refuse,
)
from quadric.apps.shell.tables._ordinals import ordered
from quadric.apps.shell.tables._schema import (
    CATEGORIES,
    Column,
    Finding,
    Schema,
)
from quadric.errors import TableError
from quadric.models import (
    FORMS,
    ORDERS,
    NumberForm,
)
from quadric.utils import counted, first_applying, listed

MOST_CLASSES = 100_000
MANY_CLASSES = 200  # more distinct texts than this are classes only if they occur several times
TOO_MANY_CLASSES = 1000  # are not trained unless the user asks for classes
NEARLY_UNIQUE = 2  # text with fewer rows per value is an identifier
MOST_CATEGORIES = 10_000  # that are encoded by the target
ROWS_PER_CATEGORY = 4  # text with fewer rows per value, on average, is an identifier or free text
MOST_ENCODED_CLASSES = 50  # each class has its own encoding of every category
LONGEST_CATEGORY = 100_000  # characters; model files store all categories
FEW_INTEGERS = 20  # a target with at most this many distinct integers is treated as classes
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")
MOSTLY = 0.9  # above this share of numbers, the other values are considered mistakes, not text
ROWS_PER_CLASS = 5  # values that occur this often, on average, may be classes
MOST_INTEGER_CLASSES = 200
MOST_NAMED = 8
MARKS = {",": "comma", ".": "point"}
CHOICES = {",": "--decimal , or --thousands ,", ".": "--thousands , or --decimal , --thousands ."}
FEWEST_GROUPED = 10  # numbers such as 1.234 in a column whose points may separate thousands
FEW_ROWS = 20  # fewer numbers may count up by chance
IDENTIFIER = re.compile(
    r"(?i:(^|[ _.-])(id|ids|uid|uuid|guid|idx|index|key|code|zip|zipcode|postcode|plz|iban|sku|"
    r"(card|account|phone|row|order)[ _.-]?(nr|no|number)|phone|serial|ssn|isbn|unnamed: ?\d+))$"
    r"|[a-z](Id|ID)$"  # such as customerId
)


def new_profiles(
    options: ColumnOptions,
    columns: Sequence[str],
    table_format: TableFormat | None = None,
    *,
    stream: bool = False,
) -> list[ColumnProfile]:
    """Return empty profiles for a table's columns; raise TableError for an unknown name.

    In a `stream`, columns with many categories are not used, and their values are not counted.
    """
    check_columns((options.target, *options.drop, *options.categorical), columns)
    orders = given_orders(options.ordinal, columns)
    both = [name for name in orders if name in (*options.drop, *options.categorical)]
    refuse(
        {
            f"{options.target!r} is the target and cannot be dropped.": (
                options.target in options.drop
            ),
            f"{options.target!r} is the target and cannot be ordinal.": options.target in orders,
            f"--ordinal {(both or [''])[0]} cannot be combined with --drop or --categorical for "
            "the same column.": both,
        }
    )
    given, missing = table_format or TableFormat(), missing_values(options, columns)
    few = options.most_categories
    many = few if stream else max(few, MOST_CATEGORIES)
    most = dict.fromkeys((*options.categorical, *orders), (many, many))  # even of numbers
    most[options.target] = (MOST_CLASSES, MOST_CLASSES)
    return [
        ColumnProfile(
            name,
            *most.get(name, (many, few)),
            form=(given.decimal, given.thousands, ""),
            missing_values=missing[name],
        )
        for name in columns
    ]


def missing_values(options: ColumnOptions, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each column that stand for missing ones.

    The options are values such as '-999', for all columns, or 'temp=-1' for one column.
    """
    found: dict[str, list[str]] = {name: [] for name in columns}
    for text in options.missing_values:
        name, given, value = text.rpartition("=")
        refuse(
            {
                f"--missing-values must be a value such as -999, or COLUMN=-999. Got {text!r}.": (
                    not value.strip() or (given and not name.strip())
                )
            }
        )
        check_columns([name] if name else [], columns)
        for values in [found[name]] if name else found.values():
            if value.strip() not in values:
                values.append(value.strip())
    return found


def profile_again(
    profiles: Sequence[ColumnProfile],
    options: ColumnOptions,
    table_format: TableFormat | None = None,
) -> list[ColumnProfile]:
    """Return profiles for a second pass over the rows; empty if none is needed.

    A column with dates, or with numbers that are not plain, is read in its own form. The others
    start again, too, because all profiles have the same rows.
    """
    given = table_format or TableFormat()
    if any(profile.decided for profile in profiles):
        return []
    again = []
    orders = given_orders(options.ordinal, [profile.name for profile in profiles])
    chosen = {*options.drop, *options.categorical, *orders}
    for old in profiles:
        new = ColumnProfile(
            old.name,
            old.most_values,
            old.most_numbers,
            decided=True,
            form=old.form,
            missing_values=old.missing_values,
        )
        if old.name not in chosen:
            new.form = _form_of(old, given, is_target=old.name == options.target)
            new.order = _order_of(old) if new.form == old.form else ""
        again.append(new)
    pairs = zip(again, profiles, strict=True)
    return again if any(new.order or new.form != old.form for new, old in pairs) else []


def _form_of(profile: ColumnProfile, given: TableFormat, *, is_target: bool) -> Sequence[str]:
    """Return the form in which most values of a column are numbers.

    Raises TableError if this could be one of two forms, and for a decimal point in a table with
    decimal commas, because the number could be 1000 times too small.
    """
    name, (row, value) = profile.name, profile.odd or (0, "")
    if given.decimal == "," and re.match(DECIMAL_POINT, value):
        raise TableError(
            f"column {name!r} contains {value!r} in row {row}, which is not a number with a "
            "decimal comma. If the point separates thousands, add --thousands '.'; otherwise, "
            "write all numbers with the same mark."
        )
    counts = {form: _count_of(profile, form, given) for form in FORMS}
    best = max(counts.values())
    units = {unit for unit in profile.units if unit}
    mixed = len(units) > 1 or ("%" in units and profile.units["%"] < best)
    if best <= max(profile.numeric, MOSTLY * profile.present) or mixed:
        return profile.form
    fitting = [form for form, count in counts.items() if count == best]
    for mark, text in profile.odd_numbers.items():
        if {form[:2] for form in fitting} >= set(TWO_READINGS[mark]):
            raise TableError(
                f"column {name!r} contains numbers such as {text!r}, whose {MARKS[mark]} may be "
                f"a decimal mark or separate thousands. Use {CHOICES[mark]} to choose"
                + ("." if is_target else " (or --drop or --categorical for this column).")
            )
    return (*fitting[0][:2], *(units or ("",)))


def _count_of(profile: ColumnProfile, form: NumberForm, given: TableFormat) -> int:
    """The number of values that fit a form, plain numbers included."""
    if given.is_given:
        if (given.decimal, given.thousands) != form[:2]:
            return 0
        return profile.numeric + profile.forms.get(form.decimal + form.thousands, 0)
    plain = profile.numeric
    if form.decimal == ",":
        plain += (profile.grouped if form.thousands == "." else 0) - profile.pointed
    return plain + profile.forms.get(form.decimal + form.thousands, 0)


def _order_of(profile: ColumnProfile) -> str:
    """Return the order of the dates of a column; empty if it does not follow or has few dates."""
    best = max(profile.orders.values(), default=0)
    fitting = [name for name in ORDERS if profile.orders.get(name) == best]
    if best <= MOSTLY * profile.present or profile.is_ambiguous:
        return ""
    return fitting[0]


def infer_schema(
    profiles: Sequence[ColumnProfile],
    options: ColumnOptions,
    unnamed: Sequence[str] = (),
    *,
    stream: bool = False,
) -> Schema:
    """Determine the inputs, their kinds and the task from the profiles."""
    by_name = {profile.name: profile for profile in profiles}
    target = by_name.pop(options.target)
    if not target.rows:
        raise TableError("the table has column names but no rows.")
    task, counts = _task_and_classes(target, options.task)
    orders = given_orders(options.ordinal, list(by_name))
    most = 0 if stream or len(counts) > MOST_ENCODED_CLASSES else MOST_CATEGORIES
    found = {
        name: _column_or_reason(one, options, unnamed, orders.get(name), most)
        for name, one in by_name.items()
    }
    left_out = {name: why for name, why in found.items() if isinstance(why, str)}
    columns = tuple(column for column in found.values() if isinstance(column, Column))
    if not columns:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(left_out.items())[:5])
        reasons = reasons or f"the table has only the target {options.target!r}"
        raise TableError(f"no column is left to learn from ({reasons}).")
    chosen = {*options.drop, *options.categorical, *orders, *unnamed}
    findings = _findings(
        {name: profile for name, profile in by_name.items() if name not in chosen},
        {column.name: column.kind for column in columns},
        target,
        is_open=options.task is None and task == "regression",
        classes=len(counts),
    )
    return Schema(
        columns,
        target.name,
        task,
        tuple(sorted(counts)),
        tuple(counts[label] for label in sorted(counts)),
        left_out,
        target.rows,
        target.missing,
        *((target.mean, target.std) if task == "regression" else (0.0, 1.0)),
        order=tuple(by_name),
        findings=findings,
        target_form=tuple(target.form),
        target_missing=tuple(target.missing_values),
    )


def _column_or_reason(
    profile: ColumnProfile,
    options: ColumnOptions,
    unnamed: Sequence[str],
    order: tuple[str, ...] | None,
    most: int,
) -> Column | str:
    """Return an input, or the reason why the column is not used.

    `order` is the order of its categories if the user gave one. Columns with up to `most`
    categories can be encoded by the target.
    """
    name, present, values = profile.name, profile.present, profile.values
    forced = name in options.categorical or order is not None
    numeric = profile.numeric == present and not forced
    constant = not profile.varies if numeric else len(values or ()) == 1 and not profile.missing
    longest = 0 if numeric or profile.order else profile.longest
    several = order is None and (values is None or len(values) > options.most_categories)
    many = "it has many categories"
    reason = first_applying(
        {
            "it has no name": name in unnamed,
            "dropped on request": name in options.drop,
            "all its values are missing": not present,
            f"it contains dates such as {profile.odd_date!r}, whose day and month may be exchanged "
            "(write them as 2024-12-31)": (
                not forced
                and max(profile.orders.values(), default=0) > MOSTLY * present
                and profile.is_ambiguous
            ),
            f"it contains dates except for {counted(present - profile.dated, 'value')}; the first "
            f"is {profile.first_odd}": profile.order and profile.dated < present,
            "its values are neither numbers nor text": profile.type == "other",
            "it has only one value": constant,
            f"it contains text of {longest:,} characters": longest > LONGEST_CATEGORY,
            many: not numeric and several and not profile.order,
        }
    )
    if reason == many and profile.numeric > MOSTLY * present and not forced:
        raise TableError(
            f"column {name!r} contains numbers except for "
            f"{counted(present - profile.numeric, 'value')}; the first is {profile.first_odd}. "
            f"Correct them, or use --drop, or {profile.option_for_odd} if this is a missing value."
        )
    reason = _why_too_many(profile, options.most_categories, most) if reason == many else reason
    if reason:
        return reason
    common: dict[str, Any] = {
        "missing": profile.missing,
        "missing_values": tuple(profile.missing_values),
    }
    form, of_numbers = tuple(profile.form), profile.type != "text"
    if profile.order:
        parts = {name: four for name, four in profile.limits_of_parts.items() if four[0] < four[1]}
        if not parts:
            return "it has only one value"
        return Column(name, "date", order=profile.order, local=profile.local, parts=parts, **common)
    if numeric:
        kind = "boolean" if profile.booleans == present else "number"
        common |= {"mean": profile.mean, "std": profile.std}
        return Column(name, kind, form=form, low=profile.low, high=profile.high, **common)
    values = values or {}
    order = order or (() if name in options.categorical else ordered(values))
    if order:
        found = _ordinal(profile, values, order, given=forced)
        return replace(found, missing_values=common["missing_values"])
    kind, categories = "target-encoded" if several else "category", tuple(sorted(values))
    return Column(name, kind, categories, of_numbers=of_numbers, **common)


def _why_too_many(profile: ColumnProfile, one_hot: int, most: int) -> str:
    """Return why the categories of a column are not encoded; empty if they can be.

    Up to `one_hot` categories are one-hot encoded, and up to `most` are encoded by the target.
    """
    count, present = len(profile.values or ()), profile.present
    values = f"{count:,}" if count and most else f"more than {max(one_hot, most):,}"
    text = f"it is text with {values} distinct values"
    return first_applying(
        {
            f"{text}; --max-categories raises the limit": not most,
            f"{text} in {present:,} rows, probably an identifier or free text; --max-categories "
            "one-hot encodes it": not count or present < ROWS_PER_CATEGORY * count,
            "": True,
        }
    )


def _ordinal(
    profile: ColumnProfile, values: Mapping[str, int], order: tuple[str, ...], *, given: bool
) -> Column:
    """Return an ordinal input; raise TableError if values are missing in the `given` order."""
    name, unknown = profile.name, [value for value in values if value not in order]
    others = listed(map(repr, unknown), 5) if values else "too many other values"
    if given and (unknown or not values):
        raise TableError(
            f"column {name!r} contains {others}, which --ordinal does not list. Add these values "
            "where they belong, or leave them empty in the table."
        )
    ranks = np.arange(len(order), dtype=float)
    counts = np.array([values.get(value, 0) for value in order], dtype=float)
    mean = float(counts @ ranks / counts.sum())
    std = float(np.sqrt(counts @ np.square(ranks - mean) / counts.sum()))
    missing = profile.missing + sum(values[value] for value in unknown)
    of_numbers = profile.type != "text"
    return Column(name, "ordinal", order, missing, mean, std, of_numbers=of_numbers)


def _task_and_classes(profile: ColumnProfile, task: str | None) -> tuple[str, dict[Any, int]]:
    """Return the task and the number of rows in each class; `task` is None if not given."""
    target, present = f"the target {profile.name!r}", profile.present
    refuse(
        {
            f"all values of {target} are missing.": not present,
            f"{target} contains neither numbers nor text.": profile.type == "other",
            f"{target} contains dates, such as {next(iter(profile.values or ['']), '')!r}, which "
            "cannot be predicted. Choose another target, or replace the dates with a number, such "
            "as the days until then.": task is None and _has_dates(profile),
            f"{target} contains row numbers, from {profile.first or 0:.0f} to "
            f"{profile.last or 0:.0f}, which cannot be predicted. Choose another target; if it is "
            "the right one, use --task regression.": task is None and _counts_up(profile),
        }
    )
    numeric = profile.numeric == present and profile.booleans < present
    counts: dict[Any, int] | None = profile.values
    # labels such as 007, and integers too large for a float, remain strings
    plain = all(WHOLE.fullmatch(text) and abs(float(text)) < 2**53 for text in counts or ())
    if counts is not None and numeric and profile.whole and plain:
        texts, counts = counts, Counter()
        for text, count in texts.items():
            counts[int(float(text))] += count
    few = counts is not None and len(counts) <= FEW_INTEGERS and profile.whole
    if task == "regression" or (task is None and numeric and not few):
        refuse(
            {
                f"regression needs a numeric target, but {profile.name!r} contains "
                f"{profile.first_odd}.": profile.numeric < present,
                f"{target} has only one value, so there is nothing to learn.": not profile.varies,
            }
        )
        return "regression", {}
    _check_classes(profile, counts, inferred=task is None)
    return "classification", counts or {}


def _check_classes(profile: ColumnProfile, counts: dict[Any, int] | None, inferred: bool) -> None:
    """Raise TableError for a target that is not suitable as a class.

    If the task is `inferred`, too many different texts are also refused.
    """
    target = f"the target {profile.name!r}"
    classes = list(counts or ())
    count, rows = f"{len(classes):,} distinct values", f"{profile.present:,} rows"
    unique = len(classes) >= FEW_ROWS and profile.present < NEARLY_UNIQUE * len(classes)
    many = len(classes) > MANY_CLASSES and profile.present < ROWS_PER_CLASS * len(classes)
    right = "Check that it is the right column. If it is, use --task classification"
    refuse(
        {
            f"{target} has more than {MOST_CLASSES:,} distinct values. Check that it is the right "
            "column; for numbers, use --task regression.": counts is None,
            f"{target} is text with {count} in {rows}, probably an identifier, which cannot be "
            f"predicted. {right}.": inferred and unique,
            f"{target} is text with {count} in {rows}. {right}.": inferred and many,
            f"{target} has {len(classes):,} classes in {rows}, for which training takes long. "
            f"{right}, and group rare classes first.": (
                inferred and len(classes) > TOO_MANY_CLASSES
            ),
            f"{target} has a class of {profile.longest:,} characters. Check that it is the right "
            "column, or use shorter names.": profile.longest > LONGEST_CATEGORY,
            f"{target} has only one class, {next(iter(classes), '')!r}, so there is nothing to "
            "learn.": len(classes) == 1,
        }
    )


def _findings(
    inputs: Mapping[str, ColumnProfile],
    kinds: Mapping[str, str],
    target: ColumnProfile,
    *,
    is_open: bool,
    classes: int,
) -> tuple[Finding, ...]:
    """Return at most one finding of each kind.

    Parameters
    ----------
    inputs : mapping of str to ColumnProfile
        The profiles of the columns for which the user made no choice, except the target.
    kinds : mapping of str to str
        The kind of each column that the model uses.
    target : ColumnProfile
    is_open : bool
        Whether the target's values suggest a regression and the user did not choose the task.
    classes : int
        The number of classes of the target.
    """
    texts = {
        name: profile for name, profile in inputs.items() if kinds.get(name) in (None, *CATEGORIES)
    }
    mixed = {
        name: f"{name!r} ({_exceptions(profile)})"
        for name, profile in texts.items()
        if name in kinds and MOSTLY * profile.present < profile.numeric < profile.present
    }
    identifiers = [
        name
        for name, profile in inputs.items()
        if kinds.get(name) == "number" and _is_identifier(profile)
    ]
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in identifiers[:MOST_NAMED])
    numeric = [name for name in inputs if kinds.get(name) == "number"]
    totals = [
        one.name
        for one in (*map(inputs.__getitem__, numeric), *[target] * (not classes))
        if one.ends_with_total
    ]
    grouped = [name for name in numeric if _may_be_grouped(inputs[name])]
    words = [
        one
        for one in (*texts.values(), target)
        if one.words and _hides_a_category(one, kinds.get(one.name, "target"))
    ]
    hidden = [
        f"{listed(map(repr, one.words), 2)} in {one.name!r} "
        f"({counted(sum(one.words.values()), 'value')})"
        for one in words
    ]
    found = [
        Finding(
            "total",
            tuple(totals),
            f"The last number of {listed(map(repr, totals), MOST_NAMED)} is the sum of the others, "
            "so its row is probably a total. Remove this row from the table.",
        ),
        Finding(
            "thousands",
            tuple(grouped),
            f"The points in {listed(map(repr, grouped), MOST_NAMED)} are read as decimal marks, "
            "but may separate thousands: all have three digits behind them. If so, use --decimal , "
            "--thousands . for the table.",
        ),
        Finding(
            "word",
            tuple(one.name for one in words),
            f"Read as missing values: {listed(hidden, MOST_NAMED)}. If this is a category, write "
            "it in another way, such as 'no'.",
        ),
        Finding(
            "mixed",
            tuple(mixed),
            f"Numbers with a few other values are used as categories: "
            f"{listed(mixed.values(), MOST_NAMED)}. Correct these values or leave them empty, so "
            "that the column is numeric; if they stand for missing values, use "
            f"{' '.join(inputs[name].option_for_odd for name in list(mixed)[:MOST_NAMED])}.",
        ),
        Finding(
            "identifier",
            tuple(identifiers),
            f"Used as numbers, but probably identifiers or codes: "
            f"{listed(map(repr, identifiers), MOST_NAMED)}. If so, use {drop}, or --categorical "
            "for a code with few values.",
        ),
        Finding(
            "identifier target",
            (target.name,) if is_open and _is_identifier(target) else (),
            f"The target {target.name!r} is probably an identifier or a code, to judge by its "
            "name. Identifiers cannot be predicted. Check that it is the right column.",
        ),
        Finding(
            "many classes",
            (target.name,) if classes > TOO_MANY_CLASSES else (),
            f"The target {target.name!r} has {classes:,} classes in {target.present:,} rows. "
            "Training takes long and rare classes are not learned; group them, or predict a number "
            "with --task regression.",
        ),
        Finding(
            "integer target",
            (target.name,) if is_open and _may_be_classes(target) else (),
            f"The target {target.name!r} has {len(target.values or ())} distinct integers and is "
            "predicted as a number. If they are classes, use --task classification.",
        ),
    ]
    return tuple(finding for finding in found if finding.columns)


def _exceptions(profile: ColumnProfile) -> str:
    """Describe the few values of a column that are not numbers."""
    count = profile.present - profile.numeric
    which = "" if count == 1 else "the first is "
    return f"{counted(count, 'value')}; {which}{profile.first_odd}"


def _may_be_grouped(profile: ColumnProfile) -> bool:
    """Whether points may separate thousands: all have three digits behind, and some are missing."""
    low, high = profile.low or 0.0, profile.high or 0.0
    some = FEWEST_GROUPED <= profile.grouped == profile.pointed < profile.numeric
    return some and max(-low, high) < 1000  # larger numbers would have points


def _hides_a_category(profile: ColumnProfile, kind: str) -> bool:
    """Whether "None" or "NA" may be a category that is lost.

    If all missing values of a nominal column are this word, they are a category anyway.
    """
    one_word = len(profile.words) == 1 and sum(profile.words.values()) == profile.missing
    return profile.numeric < profile.present and (kind in ("ordinal", "target") or not one_word)


def _is_identifier(profile: ColumnProfile) -> bool:
    """Whether the name is that of an identifier, or the numbers are row numbers."""
    return profile.whole and (_counts_up(profile) or bool(IDENTIFIER.search(profile.name)))


def _counts_up(profile: ColumnProfile) -> bool:
    """Whether the values are row numbers: every number is the previous one plus 1."""
    return profile.whole and profile.counts_up and profile.numeric == profile.rows >= FEW_ROWS


def _has_dates(profile: ColumnProfile) -> bool:
    """Whether most values are dates, even if day and month may be exchanged."""
    dated = max([profile.dated, *profile.orders.values()])
    return dated > MOSTLY * profile.present


def _may_be_classes(profile: ColumnProfile) -> bool:
    """Whether a target that is predicted as a number has integers that occur several times."""
    distinct, present = len(profile.values or ()), profile.present
    return (
        profile.whole
        and profile.numeric == present
        and present >= ROWS_PER_CLASS * distinct
        and 0 < distinct <= MOST_INTEGER_CLASSES
    )
