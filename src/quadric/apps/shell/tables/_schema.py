"""Schema of a table: the columns that a model uses, their kinds, and the target.

Schemas and other stored states are read from files as JSON values, whose fields are checked.

The second part reads tables as a schema says. `features` reads a batch of rows with the first step
of the model, `TableColumns`, and `labels` reads the target with the same functions.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._cleaning import cleaned, plain_numbers
from quadric.apps.shell.tables._options import DECIMAL_COMMA, TableFormat, applying
from quadric.apps.shell.tables._ordinals import spellings
from quadric.checks import Array
from quadric.errors import TableError
from quadric.models import (
    LARGEST,
    ORDERS,
    PARTS,
    PLAIN,
    TableColumns,
    clean,
    expanded,
    number_as_text,
)
from quadric.utils import counted, listed, rounded

CATEGORIES = ("category", "ordinal", "target-encoded")  # kinds of columns that contain text
FINDINGS = (
    *("identifier", "mixed", "integer target", "identifier target", "many classes"),
    *("total", "thousands", "word", "leak", "sentinel", "code"),
)
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


def is_form(value: Any) -> bool:
    """Whether the value is a number form: a decimal mark, a thousands separator and a unit."""
    return (
        isinstance(value, list)
        and len(value) == len(PLAIN)
        and all(isinstance(one, str) for one in value)
        and value[0] in (".", ",")
    )


def are_parts(value: Any) -> bool:
    """Whether the value has a minimum, a maximum, a mean and a deviation of parts of dates."""
    number = in_range(-LARGEST, LARGEST)
    return isinstance(value, dict) and all(
        name in PARTS and isinstance(four, list) and len(four) == 4 and all(map(number, four))
        for name, four in value.items()
    )


def form_in_words(form: Sequence[str]) -> str:
    """Describe how numbers are written, apart from plain ones."""
    decimal, thousands, unit = form
    words = {
        f"decimal mark {decimal!r}": decimal != ".",
        f"thousands separator {thousands!r}": thousands,
        f"unit {unit}": unit,
    }
    return ", ".join(applying(words))


@dataclass(frozen=True)
class Column:
    """One input of a model.

    Attributes
    ----------
    name : str
    kind : {'number', 'boolean', 'category', 'ordinal', 'target-encoded', 'date'}
        A category is one-hot encoded, an ordinal is the rank of its category, and categories of a
        column with many are encoded by the target.
    categories : tuple of str
        The categories of an ordinal in their order, and others in sorted order; empty for other
        kinds.
    missing : int
        The number of missing values in the training table.
    mean, std : float
        The mean and the standard deviation of the numbers, or of the ranks of an ordinal.
    form : tuple of str
        How numbers are written: the decimal mark, the thousands separator and the unit.
    of_numbers : bool
        Whether the categories are numbers in the training table, not text.
    order, local : str and bool
        Of dates: the order of day, month and year, and whether times differ from UTC.
    parts : dict
        Minimum, maximum, mean and standard deviation of each part of a date that varies.
    missing_values : tuple of str
        The values that stand for missing ones, as given by the user.
    low, high : float or None
        The range of the numbers in the training table; None for other kinds, and if it is unknown.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    missing: int = 0
    mean: float = 0.0
    std: float = 1.0
    form: tuple[str, ...] = PLAIN
    of_numbers: bool = False
    order: str = ""
    local: bool = False
    parts: dict[str, list[float]] = field(default_factory=dict)
    missing_values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def outside(self, values: pl.Series) -> Array:
        """Return which values, as `features` returns them, are outside the training range."""
        ranges: list[tuple[Array, float, float]] = []
        if self.kind == "date":
            every = expanded(values.to_list(), self.order)
            for name, (low, high, *_) in self.parts.items():
                ranges.append((every[:, PARTS.index(name)], low, high))
        elif self.kind == "number" and self.low is not None and self.high is not None:
            ranges.append((values.to_numpy(), self.low, self.high))
        outside = np.zeros(len(values), dtype=bool)
        for numbers, low, high in ranges:  # comparisons with NaN are false
            outside |= (numbers < low) | (numbers > high)
        return outside

    @property
    def range_in_words(self) -> str:
        """The training range of numbers as the end of a sentence; empty for other kinds."""
        if self.low is None or self.high is None:
            return ""
        return f" outside {rounded(self.low)} to {rounded(self.high)}"

    @property
    def declared(self) -> dict[str, Any]:
        """The column as `TableColumns` declares it."""
        missing = {"missing": list(self.missing_values)} if self.missing_values else {}
        if self.kind in CATEGORIES:
            return {"name": self.name, "kind": "category", "numbers": self.of_numbers} | missing
        if self.kind == "date":
            parts = {name: [values[0], values[1]] for name, values in self.parts.items()}
            own = {"name": self.name, "kind": "date", "order": self.order, "parts": parts}
            return own | ({"local": True} if self.local else {}) | missing
        return {"name": self.name, "kind": "number", "form": list(self.form)} | missing


@dataclass(frozen=True)
class Finding:
    """Something about the columns of a table that the user should check.

    Attributes
    ----------
    kind : str
        One of `FINDINGS`, which `_schema_inference` and `_suspicious_columns` describe.
    columns : tuple of str
        The columns concerned.
    sentence : str
        A description for the user, with the next step.
    """

    kind: str
    columns: tuple[str, ...]
    sentence: str


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
    target_form : tuple of str
        How a numeric target is written; see `Column.form`.
    target_missing : tuple of str
        The values of the target that stand for missing ones.
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
    target_form: tuple[str, ...] = PLAIN
    target_missing: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [column.name for column in self.columns]

    @property
    def categories(self) -> list[str]:
        """The names of the inputs that are categories, however they are encoded."""
        return [column.name for column in self.of_kind(*CATEGORIES)]

    def of_kind(self, *kinds: str) -> list[Column]:
        """Return the inputs of these kinds."""
        return [column for column in self.columns if column.kind in kinds]

    @property
    def width(self) -> int:
        """An upper bound for the number of inputs of the network, after the encoding."""
        widths = {"target-encoded": max(1, len(self.classes)), "ordinal": 1}
        return sum(
            widths.get(column.kind, max(1, len(column.categories), len(column.parts)))
            for column in self.columns
        )

    @property
    def reader(self) -> TableColumns:
        """The step that reads the columns, which is the first step of the model."""
        return TableColumns([column.declared for column in self.columns]).fit()

    def written_as(self, table_format: TableFormat) -> Self:
        """Return the schema of a table in which the user says how numbers are written."""
        if not table_format.is_given:
            return self
        form = (table_format.decimal, table_format.thousands)
        return replace(
            self,
            columns=tuple(replace(one, form=(*form, one.form[2])) for one in self.columns),
            target_form=(*form, self.target_form[2]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values; those of the columns are grouped by field."""
        state = vars(self) | {
            "columns": _by_field(self.columns),
            "findings": [asdict(finding) for finding in self.findings],
        }
        return json.loads(json.dumps(state))

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return a schema from its `to_dict`; raise ValueError if the values are inconsistent."""
        check_fields(state, FIELDS[Schema], "the schema")
        columns = tuple(_restored(Column, one) for one in _by_column(state["columns"]))
        findings = tuple(_restored(Finding, one) for one in state["findings"])
        tuples = ("classes", "class_counts", "order", "target_form", "target_missing")
        lists = {name: tuple(state[name]) for name in tuples}
        schema = cls(**(state | lists | {"columns": columns, "findings": findings}))
        names, counts = schema.names, schema.class_counts
        rows = schema.rows - schema.missing_targets
        expect(
            {
                **{
                    f"column {one.name[:80]!r}": bool(one.categories) == (one.kind in CATEGORIES)
                    and bool(one.parts) == bool(one.order) == (one.kind == "date")
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
        orders = [f"{one.name!r} ({' < '.join(one.categories)})" for one in self.of_kind("ordinal")]
        many = [
            f"{one.name!r} ({len(one.categories):,} values)"
            for one in self.of_kind("target-encoded")
        ]
        forms = {c.name: c.form for c in self.columns if c.kind == "number"}
        forms |= {} if self.classes else {self.target: self.target_form}
        written = [f"{name!r} ({form_in_words(form)})" for name, form in forms.items()]
        written = [
            text for text, form in zip(written, forms.values(), strict=True) if form != PLAIN
        ]
        texts = self.of_kind(*CATEGORIES)
        pairs = [(one.name, pair) for one in texts for pair in spellings(one.categories)]
        double = [f"{first!r} and {second!r} in {name!r}" for name, (first, second) in pairs]
        return applying(
            {
                **dict.fromkeys([finding.sentence for finding in self.findings] + notes, True),
                f"Ordinal, in this order: {'; '.join(orders)}. If the order has no meaning, use "
                "--categorical; for another order, use --ordinal.": orders,
                f"Many categories: {listed(many, 8)}. Each is replaced with the mean of the target "
                "in its rows (TargetEncoder, cross-fitted); --max-categories changes this.": many,
                f"Ignored {counted(self.missing_targets, 'row')} without a value for "
                f"{self.target!r}.": self.missing_targets,
                f"Imputed missing values in {listed(missing, 8)}: numbers, dates and ordinals with "
                "the column's mean, categories with a separate category, 'missing'.": missing,
                f"Read as numbers: {listed(written, 8)}.": written,
                f"Categories that differ only in their case: {listed(double, 8)}. Each is a "
                "category of its own. Correct the table if they mean the same.": double,
            }
        )


# the valid values of what is stored, as JSON values
FIELDS: dict[type, dict[str, Check]] = {
    Column: {
        "name": str,
        "kind": one_of("number", "boolean", "date", *CATEGORIES),
        "categories": is_distinct_texts,
        "missing": is_count,
        "mean": in_range(-2 * LARGEST, 2 * LARGEST),
        "std": in_range(0, 2 * LARGEST),
        "form": is_form,
        "of_numbers": bool,
        "local": bool,
        "order": one_of("", *ORDERS),
        "parts": are_parts,
        "missing_values": is_distinct_texts,
        **dict.fromkeys(
            ("low", "high"), lambda value: value is None or in_range(-LARGEST, LARGEST)(value)
        ),
    },
    Finding: {
        "kind": one_of(*FINDINGS),
        "columns": is_distinct_texts,
        "sentence": str,
    },
    Schema: {
        "columns": dict,
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
        "target_form": is_form,
        "target_missing": is_distinct_texts,
    },
}


# the usual value of each field of a column besides its name, as a JSON value
USUAL = json.loads(json.dumps(asdict(Column("", "number"))))
del USUAL["name"]
MOMENTS = ("mean", "std", "low", "high")  # rarely the usual values


def _by_field(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the fields of the columns as few JSON values, even for thousands of columns.

    The names and the moments are lists. Another field is a dict of the values that are not the
    usual one, by the number of the column.
    """
    found: dict[str, Any] = {"name": [column.name for column in columns]}
    usual = Column("", "number")
    for field_name in USUAL:
        values = [getattr(column, field_name) for column in columns]
        if field_name in MOMENTS:
            found[field_name] = values
        else:
            found[field_name] = {
                str(j): value
                for j, value in enumerate(values)
                if value != getattr(usual, field_name)
            }
    return found


def _by_column(state: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of each column; raise ValueError if `_by_field` cannot have returned them.

    The values of the fields are not checked.
    """
    check_fields(
        state,
        {"name": list, **{name: list if name in MOMENTS else dict for name in USUAL}},
        "the columns",
    )
    n = len(state["name"])
    numbers = set(map(str, range(n)))
    expect(
        {
            "the list of columns": n > 0,
            **{
                f"{name!r} of the columns": len(values) == n
                if isinstance(values, list)
                else set(values) <= numbers
                for name, values in state.items()
            },
        }
    )
    for j in range(n):
        yield {
            name: values[j] if isinstance(values, list) else values.get(str(j), USUAL[name])
            for name, values in state.items()
        }


def _restored(make: type[Any], state: Any) -> Any:
    """Return a Column or a Finding from its fields, in which tuples are lists."""
    check_fields(state, FIELDS[make], f"a {make.__name__.lower()}")
    return make(**{k: tuple(v) if isinstance(v, list) else v for k, v in state.items()})


def _are_classes(labels: Sequence[Any], task: str) -> bool:
    """Whether these are two or more sorted strings or integers, or none for regression."""
    if task == "regression":
        return not labels
    one_type = {type(label) for label in labels} in ({str}, {int})
    return one_type and len(labels) > 1 and list(labels) == sorted(set(labels))


# ------------------------------------------------------------------------------- conversion


def usable(dtype: pl.DataType) -> bool:
    """Whether values of this type can be read; lists, for instance, cannot."""
    return dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null)


def with_plain_numbers(columns: Sequence[Column], frame: pl.DataFrame) -> pl.DataFrame:
    """Replace the text of the numeric columns with plain numbers by these numbers."""
    read = {
        one.name: plain_numbers(frame[one.name], one.missing_values, one.form)
        for one in columns
        if one.declared["kind"] == "number"
    }
    return frame.with_columns(
        pl.Series(name, plain[1]) for name, plain in read.items() if plain is not None
    )


def to_text(values: Any) -> list[str | None]:
    """Return cleaned values as text; the number 3.0 becomes '3'."""
    return [
        value if value is None or isinstance(value, str) else number_as_text(value)
        for value in (clean(values) if isinstance(values, np.ndarray) else values)
    ]


def check_inputs(schema: Schema, columns: Sequence[str]) -> None:
    """Raise TableError if a column that the model needs is missing."""
    missing = [name for name in schema.names if name not in columns]
    if missing:
        columns = f"column{'s' if len(missing) > 1 else ''} {listed(map(repr, missing), 10)}"
        raise TableError(f"the table lacks the {columns}, which the model needs.")


def features(schema: Schema, frame: pl.DataFrame, start: int = 0) -> pl.DataFrame:
    """Return the inputs in the model's order: Float64 for numbers, String for other kinds."""
    types = frame.schema  # looked up once: it is made anew at each access
    for column in schema.columns:
        if not usable(types[column.name]):
            what = "text" if column.categories else f"{column.kind}s"
            raise TableError(
                f"column {column.name!r} must contain {what}, but its type is {types[column.name]}."
            )
    try:
        found = schema.reader.read(with_plain_numbers(schema.columns, frame), start)
    except TableError as error:
        if isinstance(error.value, str) and re.match(DECIMAL_COMMA, error.value):
            raise TableError(f"{error} If commas are decimal marks, use --decimal ,.") from None
        raise
    return pl.DataFrame(
        [
            pl.Series(name, values, pl.Float64, nan_to_null=True)
            if isinstance(values, np.ndarray)
            else pl.Series(name, values, pl.String)
            for name, values in found.items()
        ]
    )


def labels(schema: Schema, frame: pl.DataFrame, start: int = 0) -> tuple[Array, Array]:
    """Return the targets and a mask of the rows that have one.

    Raises TableError for a fraction in a target whose classes are integers.
    """
    name, dtype = schema.target, "f8"
    if schema.classes and isinstance(schema.classes[0], str):
        texts = to_text(cleaned(frame[name], schema.target_missing, schema.target_form))
        present = np.array([text is not None for text in texts], dtype=bool)
        return np.array([text for text in texts if text is not None], dtype="U"), present
    number = Column(name, "number", form=schema.target_form, missing_values=schema.target_missing)
    numeric = with_plain_numbers([number], frame.select(name))
    found = TableColumns([number.declared]).fit().read(numeric, start)[name]
    present = ~np.isnan(found)
    if schema.classes:
        fractions, dtype = found[present] != np.floor(found[present]), "i8"
        if fractions.any():
            row = int(np.flatnonzero(present)[fractions.argmax()])
            raise TableError(
                f"column {name!r} must contain integers, like the model's classes, but "
                f"row {start + row + 1} contains {found[row]:g}."
            )
    return found[present].astype(dtype), present


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
