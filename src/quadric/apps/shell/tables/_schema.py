"""Schema of a table: the columns that a model uses, their kinds, and the target.

Schemas and other stored states are read from files as JSON values, whose fields are checked.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from quadric.utils import counted, listed

LARGEST = 1e100  # maximum absolute value in a table, so that sums of squares do not overflow
Check = type | Callable[[Any], bool]


def expect(condition: bool, what: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} is not valid")


def check_fields(state: Any, fields: Mapping[str, Check], what: str) -> None:
    """Raise ValueError unless `state` is a dict with exactly these fields and valid values.

    A field is checked against a type or by a function.
    """
    expect(isinstance(state, dict), what)
    if wrong := set(fields) ^ set(state):
        raise ValueError(f"{what} has missing or unknown fields: {', '.join(sorted(wrong))[:200]}")
    for name, value in state.items():
        check = fields[name]
        valid = type(value) is check if isinstance(check, type) else check(value)
        expect(valid, f"{name!r} in {what}")


def is_count(value: Any) -> bool:
    """Whether the value is a whole number from 0 to 2**53."""
    return type(value) is int and 0 <= value <= 2**53


def is_distinct_texts(value: Any) -> bool:
    """Whether the value is a list of distinct strings."""
    texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return texts and len(set(value)) == len(value)


def in_range(least: float, most: float) -> Check:
    """Return a check for a number in this range."""
    return lambda value: type(value) in (int, float) and least <= value <= most


def one_of(*choices: str) -> Check:
    """Return a check for one of these strings."""
    return lambda value: value in choices


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


COLUMN_FIELDS: dict[str, Check] = {
    "name": str,
    "kind": one_of("number", "boolean", "category"),
    "categories": is_distinct_texts,
    "missing": is_count,
    "mean": in_range(-2 * LARGEST, 2 * LARGEST),
    "std": in_range(0, 2 * LARGEST),
}


@dataclass(frozen=True)
class Finding:
    """Something about the columns of a table that the user should check.

    Attributes
    ----------
    kind : {'identifier', 'mixed', 'decimal comma', 'thousands', 'integer target'}
        Likely identifiers among the inputs, numbers with a few other values, numbers with decimal
        commas or thousands separators that are read as text, or integers that may be classes.
    columns : tuple of str
        The columns concerned.
    sentence : str
        A description for the user, with the next step.
    """

    kind: str
    columns: tuple[str, ...]
    sentence: str


FINDING_FIELDS: dict[str, Check] = {
    "kind": one_of("identifier", "mixed", "decimal comma", "thousands", "integer target"),
    "columns": is_distinct_texts,
    "sentence": str,
}


@dataclass(frozen=True)
class Schema:
    """The columns that a model uses and what it predicts.

    Attributes
    ----------
    columns : tuple of Column
        The inputs, in the model's order.
    target : str
        The name of the column to predict.
    task : {'classification', 'regression'}
    classes : tuple
        The classes in sorted order, either strings or integers; empty for regression.
    class_counts : tuple of int
        The number of rows in each class.
    left_out : dict
        The unused columns, each with the reason why it is not used.
    rows, missing_targets : int
        The number of rows, and the number of rows without a target, which are not used.
    target_mean, target_std : float
        The mean and the standard deviation of the target, for regression.
    order : tuple of str
        All columns except the target, in the order of the table; empty if
        the table is unknown.
    findings : tuple of Finding
        What the user should check.
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
    findings: tuple[Finding, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [column.name for column in self.columns]

    @property
    def places(self) -> list[int]:
        """The positions of the inputs among all columns except the target."""
        return [self.order.index(name) for name in self.names] if self.order else []

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        state: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return state

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a schema from its `to_dict`; raise ValueError if the values are inconsistent."""
        check_fields(state, SCHEMA_FIELDS, "the schema")
        for column in state["columns"]:
            check_fields(column, COLUMN_FIELDS, "a column")
            has_categories = column["kind"] == "category"
            expect(bool(column["categories"]) == has_categories, f"column {column['name'][:80]!r}")
        for finding in state["findings"]:
            check_fields(finding, FINDING_FIELDS, "a finding")
        columns = tuple(
            Column(**c | {"categories": tuple(c["categories"])}) for c in state["columns"]
        )
        findings = tuple(Finding(**f | {"columns": tuple(f["columns"])}) for f in state["findings"])
        lists = {name: tuple(state[name]) for name in ("classes", "class_counts", "order")}
        schema = cls(**(state | lists | {"columns": columns, "findings": findings}))
        names, counts = schema.names, schema.class_counts
        used = schema.rows - schema.missing_targets
        checks = {
            "the list of column names": is_distinct_texts([*names, schema.target]),
            "the order of the columns": not schema.order or set(names) <= set(schema.order),
            "the list of classes": _are_classes(schema.classes, schema.task),
            "the list of class counts": len(counts) == len(schema.classes) and 0 not in counts,
            "the number of rows": used == sum(counts) if counts else used >= 0,
        }
        for what, valid in checks.items():
            expect(valid, what)
        return schema

    def notes(self) -> list[str]:
        """Return sentences about findings, unused columns, ignored rows and imputed values."""
        notes = [f"Column {name!r} is not used: {why}." for name, why in self.left_out.items()]
        if len(notes) > 12:
            notes = [*notes[:10], f"{len(notes) - 10} more columns are not used."]
        ignored = counted(self.missing_targets, "row")
        missing = [f"{c.name!r} ({c.missing})" for c in self.columns if c.missing]
        sentences = {
            f"Ignored {ignored} without a value for {self.target!r}.": self.missing_targets,
            f"Imputed missing values in {listed(missing, 8)}: numbers with the column's mean, "
            "categories with a separate category, 'missing'.": missing,
        }
        notes += [sentence for sentence, applies in sentences.items() if applies]
        return [finding.sentence for finding in self.findings] + notes


SCHEMA_FIELDS: dict[str, Check] = {
    "columns": lambda value: isinstance(value, list) and bool(value),
    "target": lambda value: isinstance(value, str) and bool(value),
    "task": one_of("classification", "regression"),
    "classes": list,
    "class_counts": lambda value: isinstance(value, list) and all(map(is_count, value)),
    "left_out": lambda value: (
        isinstance(value, dict) and all(isinstance(why, str) for why in value.values())
    ),
    "rows": is_count,
    "missing_targets": is_count,
    "target_mean": in_range(-2 * LARGEST, 2 * LARGEST),
    "target_std": in_range(0, 2 * LARGEST),
    "order": is_distinct_texts,
    "findings": list,
}


def _are_classes(labels: Sequence[Any], task: str) -> bool:
    """Whether these are two or more sorted strings or integers, or none for regression."""
    if task == "regression":
        return not labels
    one_type = {type(label) for label in labels} in ({str}, {int})
    return one_type and len(labels) > 1 and list(labels) == sorted(set(labels))
