"""Schema of a table: the columns that a model uses, their kinds, and the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from quadric.tables._state_checks import (
    check_fields,
    expect,
    is_count,
    is_distinct_texts,
    is_list,
    is_number,
    is_text,
    one_of,
)
from quadric.tables._values import LARGEST
from quadric.tables._wording import counted, listed


def _is_mean(value: Any) -> bool:
    return is_number(value, 2 * LARGEST)


def _is_std(value: Any) -> bool:
    return is_number(value, 2 * LARGEST) and value >= 0


@dataclass(frozen=True)
class Column:
    """One input of a model.

    Attributes
    ----------
    name : str
    kind : {'number', 'boolean', 'category'}
    categories : tuple of str
        The categories in sorted order; empty for other kinds.
    missing : int
        The number of missing values in the training table.
    mean, std : float
        The mean and the standard deviation of the numbers.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    missing: int = 0
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def from_dict(cls, state: Any) -> Column:
        """Return one of the columns of `Schema.to_dict`; raise ValueError if it is not valid."""
        check_fields(state, COLUMN_FIELDS, "a column")
        is_category = state["kind"] == "category"
        expect(bool(state["categories"]) == is_category, f"column {state['name'][:80]!r}")
        return cls(**(state | {"categories": tuple(state["categories"])}))


COLUMN_FIELDS = {
    "name": is_text,
    "kind": one_of("number", "boolean", "category"),
    "categories": is_distinct_texts,
    "missing": is_count,
    "mean": _is_mean,
    "std": _is_std,
}


@dataclass(frozen=True)
class Schema:
    """The columns that a model uses, and what it predicts.

    Attributes
    ----------
    columns : tuple of Column
        The inputs, in the model's order.
    target : str
        The name of the column to predict.
    task : {'classification', 'regression'}
    classes : tuple
        The sorted classes, strings or integers; empty for regression.
    class_counts : tuple of int
        The number of rows of each class.
    left_out : dict
        Each column that is not used, and the reason.
    rows, missing_targets : int
        The number of rows, and of those without a target, which are not used.
    target_mean, target_std : float
        The moments of the target, for regression.
    order : tuple of str
        All columns except the target in the order of the table; empty in older model files.
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
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [column.name for column in self.columns]

    @property
    def places(self) -> list[int]:
        """The positions of the inputs among all columns except the target."""
        return [self.order.index(name) for name in self.names] if self.order else []

    @property
    def all_numbers(self) -> bool:
        """Whether no input is a category."""
        return all(column.kind != "category" for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        state = asdict(self)
        for column in state["columns"]:
            column["categories"] = list(column["categories"])
        lists = ("columns", "classes", "class_counts", "order")
        return state | {name: list(state[name]) for name in lists}

    @classmethod
    def from_dict(cls, state: Any) -> Schema:
        """Return the schema of a `to_dict`; raise ValueError if the values are not consistent."""
        check_fields(state, SCHEMA_FIELDS, "the schema", optional=("order",))
        columns = tuple(map(Column.from_dict, state["columns"]))
        names, order = [column.name for column in columns], state.get("order", [])
        classes, counts = state["classes"], state["class_counts"]
        expect(is_distinct_texts([*names, state["target"]]), "the list of column names")
        expect(not order or set(names) <= set(order), "the order of the columns")
        if state["task"] == "regression":
            expect(not classes and not counts, "the list of classes")
        else:
            types = {type(label) for label in classes}
            expect(types in ({str}, {int}) and len(classes) > 1, "the list of classes")
            expect(classes == sorted(set(classes)), "the list of classes")
            expect(len(counts) == len(classes) and 0 not in counts, "the list of class counts")
            expect(sum(counts) == state["rows"] - state["missing_targets"], "the number of rows")
        expect(state["missing_targets"] <= state["rows"], "the number of rows")
        lists = {"classes": classes, "class_counts": counts, "order": order}
        tuples = {name: tuple(values) for name, values in lists.items()}
        return cls(**(state | tuples | {"columns": columns}))

    def notes(self) -> list[str]:
        """Return sentences about columns that are left out, ignored rows and imputed values."""
        notes = [f"Column {name!r} is not used: {why}." for name, why in self.left_out.items()]
        if len(notes) > 12:
            notes = [*notes[:10], f"{len(notes) - 10} more columns are not used."]
        if self.missing_targets:
            rows = counted(self.missing_targets, "row")
            notes.append(f"Ignored {rows} without a value of {self.target!r}.")
        missing = [f"{one.name!r} ({one.missing})" for one in self.columns if one.missing]
        if missing:
            notes.append(
                f"Imputed missing values in {listed(missing, 8)}: numbers by the column's mean, "
                "categories by a category of their own, 'missing'."
            )
        return notes


SCHEMA_FIELDS = {
    "columns": lambda value: is_list(value) and bool(value),
    "target": lambda value: is_text(value) and bool(value),
    "task": one_of("classification", "regression"),
    "classes": is_list,
    "class_counts": lambda value: is_list(value) and all(map(is_count, value)),
    "left_out": lambda value: isinstance(value, dict) and all(map(is_text, value.values())),
    "rows": is_count,
    "missing_targets": is_count,
    "target_mean": _is_mean,
    "target_std": _is_std,
    "order": is_distinct_texts,
}
