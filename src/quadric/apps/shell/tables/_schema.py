"""Schema of a table: the columns that a model uses, their kinds, and the target.

Schemas and other stored states are read from files as JSON values, whose fields are checked.

The second part converts tables as a schema says: missing values, numbers, categories and targets.
`features` converts a batch of rows to numbers and text, which the steps of `_preprocessing` encode.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._options import DECIMAL_COMMA, applying
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted, listed

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in lowercase
TRUTH = {"true": 1.0, "false": 0.0}
LARGEST = 1e100  # maximum absolute value in a table, so that sums of squares do not overflow
Check = type | Callable[[Any], bool]


def expect(checks: Mapping[str, bool]) -> None:
    """Raise ValueError with the name of the first check whose condition does not hold."""
    for what, valid in checks.items():
        if not valid:
            raise ValueError(f"{what} is not valid")


def check_fields(state: Any, fields: Mapping[str, Check], what: str) -> None:
    """Raise ValueError unless `state` is a dict with exactly these fields and valid values.

    A field is checked against a type or by a function.
    """
    expect({what: isinstance(state, dict)})
    if wrong := set(fields) ^ set(state):
        raise ValueError(f"{what} has missing or unknown fields: {', '.join(sorted(wrong))[:200]}")
    for name, value in state.items():
        check = fields[name]
        valid = type(value) is check if isinstance(check, type) else check(value)
        expect({f"{name!r} in {what}": valid})


def is_count(value: Any) -> bool:
    """Whether the value is a whole number from 0 to 2**53."""
    return type(value) is int and 0 <= value <= 2**53


def is_distinct_texts(value: Any) -> bool:
    """Whether the value is a list of distinct strings."""
    return (
        isinstance(value, list)
        and all(isinstance(text, str) for text in value)
        and len(set(value)) == len(value)
    )


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
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a schema from its `to_dict`; raise ValueError if the values are inconsistent."""
        check_fields(state, SCHEMA_FIELDS, "the schema")
        columns = tuple(_restored(Column, one, COLUMN_FIELDS) for one in state["columns"])
        findings = tuple(_restored(Finding, one, FINDING_FIELDS) for one in state["findings"])
        lists = {name: tuple(state[name]) for name in ("classes", "class_counts", "order")}
        schema = cls(**(state | lists | {"columns": columns, "findings": findings}))
        names, counts = schema.names, schema.class_counts
        rows = schema.rows - schema.missing_targets
        expect(
            {
                **{
                    f"column {one.name[:80]!r}": bool(one.categories) == (one.kind == "category")
                    for one in columns
                },
                "the list of column names": is_distinct_texts([*names, schema.target]),
                "the order of the columns": not schema.order or set(names) <= set(schema.order),
                "the list of classes": _are_classes(schema.classes, schema.task),
                "the list of class counts": len(counts) == len(schema.classes) and 0 not in counts,
                "the number of rows": rows == sum(counts) if counts else rows >= 0,
            }
        )
        return schema

    def notes(self) -> list[str]:
        """Return sentences about findings, unused columns, ignored rows and imputed values."""
        notes = [f"Column {name!r} is not used: {why}." for name, why in self.left_out.items()]
        if len(notes) > 12:
            notes = [*notes[:10], f"{len(notes) - 10} more columns are not used."]
        missing = [f"{c.name!r} ({c.missing})" for c in self.columns if c.missing]
        return applying(
            {
                **dict.fromkeys([finding.sentence for finding in self.findings] + notes, True),
                f"Ignored {counted(self.missing_targets, 'row')} without a value for "
                f"{self.target!r}.": self.missing_targets,
                f"Imputed missing values in {listed(missing, 8)}: numbers with the column's mean, "
                "categories with a separate category, 'missing'.": missing,
            }
        )


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


def _restored(make: type[Any], state: Any, fields: Mapping[str, Check]) -> Any:
    """Return a Column or a Finding from its fields, in which tuples are lists."""
    check_fields(state, fields, f"a {make.__name__.lower()}")
    return make(**{k: tuple(v) if isinstance(v, list) else v for k, v in state.items()})


def _are_classes(labels: Sequence[Any], task: str) -> bool:
    """Whether these are two or more sorted strings or integers, or none for regression."""
    if task == "regression":
        return not labels
    one_type = {type(label) for label in labels} in ({str}, {int})
    return one_type and len(labels) > 1 and list(labels) == sorted(set(labels))


# ------------------------------------------------------------------------------- conversion


def clean(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip whitespace from text, and replace missing values, including NaN, with null."""
    text = pl.col(pl.String)
    return frame.with_columns(
        text.str.strip_chars(), pl.col(pl.Float64).fill_nan(None)
    ).with_columns(pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text))


def to_numbers(cleaned: pl.DataFrame) -> dict[str, pl.Series]:
    """Convert columns of text, booleans and numbers to Float64.

    The strings "true" and "false", regardless of case, become 1 and 0. Other text that is not a
    number becomes null. Columns of other types, such as lists, are omitted.
    """
    usable = [
        name
        for name, dtype in cleaned.schema.items()
        if dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null)
    ]
    numbers = cleaned.select(pl.col(usable).cast(pl.Float64, strict=False)).to_dict()
    for name, number in numbers.items():
        text = cleaned[name]
        if text.dtype == pl.String and number.null_count() > text.null_count():
            truth = text.str.to_lowercase().replace_strict(
                TRUTH, default=None, return_dtype=pl.Float64
            )
            numbers[name] = number.fill_null(truth)
    return numbers


def to_text(column: pl.Series) -> pl.Series:
    """Convert a cleaned column to text; the number 3.0 becomes '3'."""
    if column.dtype == pl.Float64:
        texts = {
            value: str(int(value)) if value.is_integer() else str(value)
            for value in column.drop_nulls().unique()
        }
        return column.replace_strict(texts, return_dtype=pl.String)
    return column.cast(pl.String)


def check_size(name: str, values: Array, start: int) -> None:
    """Raise TableError for infinite or huge numbers; `start` is the first row, counted from 0."""
    bad = np.abs(values) > LARGEST
    if bad.any():
        row = int(bad.argmax())
        raise TableError(
            f"column {name!r} contains {values[row]:g} in row {start + row + 1}: numbers must be "
            f"finite and at most {LARGEST:g} in absolute value. Correct it, or leave it empty."
        )


def check_inputs(schema: Schema, columns: Sequence[str]) -> None:
    """Raise TableError if a column that the model needs is missing."""
    missing = [name for name in schema.names if name not in columns]
    if missing:
        columns = f"column{'s' if len(missing) > 1 else ''} {listed(map(repr, missing), 10)}"
        raise TableError(f"the table lacks the {columns}, which the model needs.")


def features(schema: Schema, frame: pl.DataFrame, start: int = 0) -> pl.DataFrame:
    """Return the inputs in the model's order: Float64 for numbers, String for categories."""
    cleaned = clean(frame.select(schema.names))
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    converted = _to_numbers(cleaned.select(numbers), start)
    return pl.DataFrame(
        [converted[name] if name in converted else to_text(cleaned[name]) for name in schema.names]
    )


def labels(schema: Schema, frame: pl.DataFrame, start: int = 0) -> tuple[Array, Array]:
    """Return the targets and a mask of the rows that have one.

    Raises TableError for a fraction in a target whose classes are integers.
    """
    cleaned = clean(frame.select(schema.target))
    if schema.classes and isinstance(schema.classes[0], str):
        values, dtype = to_text(cleaned[schema.target]), "U"
    else:
        values, dtype = _to_numbers(cleaned, start)[schema.target], "f8"
        if schema.classes:
            fractions, dtype = values != values.floor(), "i8"
            if fractions.any():
                row = int(fractions.arg_max() or 0)
                raise TableError(
                    f"column {values.name!r} must contain integers, like the model's classes, but "
                    f"row {start + row + 1} contains {values[row]:g}."
                )
    present = values.is_not_null()
    return values.filter(present).to_numpy().astype(dtype), present.to_numpy()


def labeled_rows(
    schema: Schema, frame: pl.DataFrame, start: int = 0
) -> tuple[pl.DataFrame, Array, Array]:
    """Return the inputs and targets of the rows that have a target, and a mask of these rows."""
    X = features(schema, frame, start)
    y, present = labels(schema, frame, start)
    return (X if present.all() else X.filter(present)), y, present


def complete_rows(X: pl.DataFrame) -> Array:
    """Return a mask of the rows without missing numbers; missing categories are allowed."""
    masks = [column.is_not_null().to_numpy() for column in X if column.dtype == pl.Float64]
    return np.all([np.ones(len(X), dtype=bool), *masks], axis=0)


def predictable_rows(X: pl.DataFrame, *, imputes: bool) -> Array:
    """Return a mask of the rows for which a model makes a prediction.

    A model that imputes missing values needs at least one value; others need all numbers.
    """
    if not imputes:
        return complete_rows(X)
    return X.select(pl.any_horizontal(pl.all().is_not_null()))[:, 0].to_numpy()


def _to_numbers(cleaned: pl.DataFrame, start: int) -> dict[str, pl.Series]:
    """Convert all columns to numbers; raise TableError for the first value that is not one."""
    converted = to_numbers(cleaned)
    for column in cleaned:
        name = column.name
        problem = f"column {name!r} must contain numbers, but "
        if name not in converted:
            raise TableError(f"{problem}its type is {column.dtype}.")
        if converted[name].null_count() > column.null_count():
            row = int((converted[name].is_null() & column.is_not_null()).arg_max() or 0)
            comma = re.match(DECIMAL_COMMA, column[row])
            advice = " If commas are decimal marks, use --decimal ,." if comma else ""
            raise TableError(f"{problem}row {start + row + 1} contains {column[row]!r}.{advice}")
        check_size(name, converted[name].to_numpy(), start)
    return converted


def typical_rows(schema: Schema, rows: int = 200) -> pl.DataFrame:
    """Rows with independent inputs: normal numbers with the column's mean and standard deviation.

    Every category is equally frequent. The rows only show where a model's inputs lie; they say
    nothing about how the inputs are related.
    """
    rng = np.random.default_rng(0)
    columns = {}
    for column in schema.columns:
        if column.kind == "category":
            columns[column.name] = pl.Series((column.categories * rows)[:rows])
        elif column.kind == "boolean":
            columns[column.name] = pl.Series(np.arange(rows) % 2, dtype=pl.Float64)
        else:
            columns[column.name] = pl.Series(column.mean + column.std * rng.normal(size=rows))
    return pl.DataFrame(columns)
