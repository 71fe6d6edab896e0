"""Which columns a model takes, as what, and what it predicts; decided from the profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from quadric.errors import TableError
from quadric.tables._profile import LARGEST, ColumnProfile
from quadric.tables._state_checks import (
    check_fields,
    check_names,
    check_number,
    check_whole,
    require,
)

MOST_CATEGORIES = 50
MOST_CLASSES = 200
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")
FEW_INTEGERS = 20  # a target of so many distinct whole numbers is taken as classes
MOSTLY = 0.9  # of the values are numbers: the others are then mistakes, not text


@dataclass(frozen=True)
class Column:
    """An input: its name, 'number', 'boolean' or 'category', and how many values were missing."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    missing: int = 0
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def from_dict(cls, state: Any) -> Column:
        """The column of `Schema.to_dict`; ValueError if these are not the values of one."""
        check_fields(state, cls.__dataclass_fields__, "a column")
        what = f"column {str(state['name'])[:80]!r}"
        require(type(state["name"]) is str, what)
        require(state["kind"] in ("number", "boolean", "category"), what)
        check_names(state["categories"], what)
        require(bool(state["categories"]) == (state["kind"] == "category"), what)
        check_whole(state["missing"], what)
        check_number(state["mean"], what, most=2 * LARGEST)
        check_number(state["std"], what, most=2 * LARGEST)
        require(state["std"] >= 0, what)
        return cls(**(state | {"categories": tuple(state["categories"])}))


@dataclass(frozen=True)
class Schema:
    """What a model takes from a table.

    Attributes
    ----------
    columns : tuple of Column
        The inputs, in the model's order.
    target : str
    task : {'classification', 'regression'}
    classes : tuple
        Strings or integers, sorted; empty for regression.
    class_counts : tuple of int
    left_out : dict
        Why each other column is not used.
    rows, missing_targets : int
        How many rows were read, and how many of them have no target and are not used.
    target_mean, target_std : float
        Of the target, for regression.
    order : tuple of str
        All columns but the target as they stand in the table; empty in older files.
    """

    columns: tuple[Column, ...]
    target: str
    task: str
    classes: tuple[Any, ...] = ()
    class_counts: tuple[int, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    missing_targets: int = 0
    target_mean: float = 0.0
    target_std: float = 1.0
    order: tuple[str, ...] = ()

    @property
    def places(self) -> list[int]:
        """Where the inputs stand among all columns but the target."""
        return [self.order.index(name) for name in self.names] if self.order else []

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def all_numbers(self) -> bool:
        return all(column.kind != "category" for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        state = asdict(self)
        state["columns"] = [column | {"categories": list(column["categories"])}
                            for column in state["columns"]]  # fmt: skip
        lists = {name: list(state[name]) for name in ("classes", "class_counts", "order")}
        return state | lists

    @classmethod
    def from_dict(cls, state: Any) -> Schema:
        """The schema of `to_dict`; ValueError if these are not the values of one."""
        check_fields(state, cls.__dataclass_fields__, "the schema", optional=("order",))
        require(isinstance(state["columns"], list) and bool(state["columns"]), "the columns")
        columns = tuple(Column.from_dict(column) for column in state["columns"])
        target, order = state["target"], state.get("order", [])
        names = [column.name for column in columns]
        check_names([*names, target], "the names of the columns")
        check_names(order, "the order of the columns")
        require(not order or set(names) <= set(order), "the order of the columns")
        left_out = state["left_out"]
        require(isinstance(left_out, dict), "what is left out")
        check_names(list(left_out), "what is left out")
        require(all(type(why) is str for why in left_out.values()), "what is left out")
        check_whole(state["rows"], "the number of rows")
        check_whole(state["missing_targets"], "the number of rows", most=state["rows"])
        _check_classes(state, state["rows"] - state["missing_targets"])
        for moment in ("target_mean", "target_std"):
            check_number(state[moment], "the target's moments", most=2 * LARGEST)
        require(state["target_std"] >= 0, "the target's moments")
        return cls(
            **(
                state
                | {
                    "columns": columns,
                    "classes": tuple(state["classes"]),
                    "class_counts": tuple(state["class_counts"]),
                    "order": tuple(order),
                }
            )
        )

    def notes(self) -> list[str]:
        """What was done to the table, in sentences."""
        said = [f"{name!r} is left out: {why}." for name, why in self.left_out.items()]
        if len(said) > 12:
            said = [*said[:10], f"{len(said) - 10} more columns are left out."]
        if self.missing_targets:
            said.append(
                f"{self.missing_targets} rows without {self.target!r} are not used."
                if self.missing_targets > 1
                else f"1 row without {self.target!r} is not used."
            )
        holes = {column.name: column.missing for column in self.columns if column.missing}
        if holes:
            names = ", ".join(f"{name!r} ({count})" for name, count in list(holes.items())[:8])
            more = "" if len(holes) <= 8 else f" and {len(holes) - 8} more columns"
            said.append(
                f"Missing values in {names}{more} are imputed: a number by the column's mean, a "
                "category by one of its own, 'missing'."
            )
        return said


def _check_classes(state: dict[str, Any], rows: int) -> None:
    classes, counts, what = state["classes"], state["class_counts"], "the list of classes"
    require(isinstance(classes, list) and isinstance(counts, list), what)
    if state["task"] == "regression":
        require(not classes and not counts, what)
        return
    require(state["task"] == "classification" and len(classes) > 1, "the task")
    require(len({type(label) for label in classes}) == 1, what)
    require(type(classes[0]) in (str, int), what)
    require(classes == sorted(set(classes)) and len(counts) == len(classes), what)
    for count in counts:
        check_whole(count, "the count of a class", least=1)
    require(sum(counts) == rows, "the number of rows")


@dataclass(frozen=True)
class Wishes:
    """What the user asks for; None and () leave it to the data."""

    target: str
    task: str | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    most_categories: int = MOST_CATEGORIES

    def new_profiles(self, columns: Sequence[str]) -> list[ColumnProfile]:
        """Empty profiles of a table's columns; TableError for a name that it does not have."""
        for name in (self.target, *self.drop, *self.categorical):
            if name not in columns:
                raise TableError(f"there is no column {name!r}. {_columns_are(columns)}")
        if self.target in self.drop:
            raise TableError(f"{self.target!r} is the target and cannot be dropped.")
        return [
            ColumnProfile(name, MOST_CLASSES if name == self.target else self.most_categories)
            for name in columns
        ]


def _columns_are(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:12]))
    return f"The columns are {shown}" + (
        "." if len(columns) <= 12 else f" and {len(columns) - 12} more."
    )


def decide(
    profiles: Sequence[ColumnProfile], wishes: Wishes, unnamed: Sequence[str] = ()
) -> Schema:
    """What to take from a table."""
    by_name = {profile.name: profile for profile in profiles}
    target = by_name[wishes.target]
    if not target.rows:
        raise TableError("there are no rows, only column names.")
    task, counts = _target(target, wishes.task)
    classes = sorted(counts)
    columns, left_out = [], {}
    for profile in profiles:
        name = profile.name
        if name == wishes.target:
            continue
        kind, why = "", ""
        if name in unnamed:
            why = "it has no name"
        elif name in wishes.drop:
            why = "as you asked"
        else:
            kind, why = _kind(profile, name in wishes.categorical)
        if why:
            left_out[name] = why
            continue
        categories = tuple(sorted(profile.values or ())) if kind == "category" else ()
        columns.append(Column(name, kind, categories, profile.missing, profile.mean, profile.std))
    if not columns:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(left_out.items())[:5])
        raise TableError(
            "no column is left to learn from" + (f" ({reasons})." if reasons else
            f": the table has only {wishes.target!r}.")
        )  # fmt: skip
    return Schema(
        tuple(columns), wishes.target, task, tuple(classes),
        tuple(counts[label] for label in classes), left_out, target.rows, target.missing,
        *((target.mean, target.std) if task == "regression" else (0.0, 1.0)),
        tuple(profile.name for profile in profiles if profile.name != wishes.target),
    )  # fmt: skip


def _kind(profile: ColumnProfile, forced: bool) -> tuple[str, str]:
    """The kind of an input, or why it is left out."""
    if not profile.present:
        return "", "all its values are missing"
    if profile.dates > MOSTLY * profile.present:
        return "", "it holds dates; turn them into numbers that mean something, such as days"
    if profile.type == "other":
        return "", "its values are neither numbers nor text"
    distinct = None if profile.values is None else len(profile.values)
    numeric = profile.numeric == profile.present and not forced
    if numeric and profile.least == profile.most:
        return "", "it has only one value"
    if numeric:
        return ("boolean" if profile.booleans == profile.present else "number"), ""
    if distinct is None and not forced and profile.numeric > MOSTLY * profile.present:
        row, value = profile.odd or (0, "")
        raise TableError(
            f"column {profile.name!r} holds numbers but for "
            f"{profile.present - profile.numeric} values, the first {value!r} in row {row}. "
            f"Correct them, or leave the column out with --drop."
        )
    if distinct is None:
        return "", (
            f"it is text with more than {profile.most_values} distinct values "
            "(--max-categories takes more)"
        )
    if distinct == 1 and not profile.missing:
        return "", "it has only one value"
    return "category", ""


def _target(profile: ColumnProfile, task: str | None) -> tuple[str, dict[Any, int]]:
    """The task, and the count of each class."""
    name = profile.name
    if not profile.present:
        raise TableError(f"all values of the target {name!r} are missing.")
    if profile.type == "other":
        raise TableError(f"the target {name!r} holds neither numbers nor text.")
    boolean = profile.booleans == profile.present
    numeric = profile.numeric == profile.present and not boolean
    counts: dict[Any, int] | None = None
    if profile.values is not None:
        counts = dict(profile.values)
        # labels such as 007, or too large for a float, are names: they stay as they are written
        plain = all(WHOLE.fullmatch(text) and abs(float(text)) < 2**53 for text in profile.values)
        if numeric and profile.whole and plain:
            counts = {}
            for text, n in profile.values.items():
                counts[int(float(text))] = counts.get(int(float(text)), 0) + n
    if task is None:
        few = counts is not None and len(counts) <= FEW_INTEGERS and profile.whole
        task = "regression" if numeric and not few else "classification"
    if task == "regression":
        if profile.numeric < profile.present:
            row, value = profile.odd or (0, "")
            raise TableError(
                f"regression needs a target of numbers; {name!r} holds {value!r} in row {row}."
            )
        if profile.least == profile.most:
            raise TableError(f"the target {name!r} has only one value: there is nothing to learn.")
        return task, {}
    if counts is None:
        raise TableError(
            f"the target {name!r} has more than {MOST_CLASSES} distinct values: is it the right "
            "column? Numbers can be learned with --task regression."
        )
    if len(counts) == 1:
        raise TableError(
            f"the target {name!r} has only one class, {next(iter(counts))!r}: there is nothing to "
            "learn."
        )
    return task, counts
