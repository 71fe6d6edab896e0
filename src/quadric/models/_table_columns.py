"""`TableColumns`: the first step of a model for tables, which reads numbers, text and dates."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from quadric.checks import Array
from quadric.errors import TableError
from quadric.models._facts import Facts, Known, Rules, all_different, is_vector
from quadric.models._operations import Operation, Read
from quadric.models._reading import (
    LARGEST,
    ORDERS,
    PARTS,
    PLAIN,
    SEPARATORS,
    UNITS,
    NumberForm,
    Values,
    check_all,
    check_size,
    clean,
    dates,
    expanded,
    numbers,
    read_objects,
    texts,
    without,
)
from quadric.utils import listed

Column = Mapping[str, Any]


class TableColumns(TransformerMixin, BaseEstimator):
    """Read the columns of a table as declared: numbers, categories and dates.

    The table may contain text, as in a file, or numbers. Whitespace around text is removed, and
    texts such as "N/A" are missing values. Dates are expanded to their parts.

    Parameters
    ----------
    columns : list of dict
        The columns, in the order of the model, each with its "name" and "kind":

        - 'number': "form" is the decimal mark, the character between thousands, and a unit, such
          as ``[".", ",", "$"]``. The result is a number, NaN if it is missing.
        - 'category': the result is text, None if it is missing. "numbers" says whether the column
          also takes numbers. They would otherwise be refused, because the text "01" may have been
          read as 1.
        - 'date': "order" is 'ymd', 'dmy', 'mdy', 'name' (of the month) or 'time' (without a date).
          "parts" has the range of each part in training: 'year', 'month', 'weekday', 'hour' and
          'days' since 1970-01-01. The results are these parts, limited to their ranges. If "local"
          is given and true, the texts are local times with their difference from UTC, and a frame
          of times in UTC is refused, because their hours are others.

        Optionally, "missing" has the texts that stand for missing values, such as ``["-999"]``;
        numbers equal to them are missing, too.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str
        The names of the columns.

    Examples
    --------
    >>> price = {"name": "price", "kind": "number", "form": [".", ",", "$"]}
    >>> color = {"name": "color", "kind": "category", "numbers": False}
    >>> step = TableColumns([price, color]).fit()
    >>> step.transform([["$1,200.50", "red "], ["N/A", None]])
    array([[1200.5, 'red'],
           [nan, None]], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"columns": [list]}

    def __init__(self, columns: list[Any]) -> None:
        self.columns = columns

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the columns; nothing is learned from X, which may be None."""
        self.n_features_in_ = len(self.columns)
        self.feature_names_in_ = np.array([column["name"] for column in self.columns], dtype=object)
        if X is not None:
            self._columns_of(X)
        return self

    def read(self, X: Any, start: int = 0) -> dict[str, Any]:
        """Return the columns by name: arrays of numbers, or lists of text.

        Dates remain text. Reading the result again does not change it.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_features)
            A pandas, Polars or PyArrow table, whose columns are found by name, or an array or list
            with the columns in their order.
        start : int
            The number of the first row in error messages, counted from 0.

        Raises
        ------
        TableError
            If a column is missing or has a value that cannot be read. This includes values that
            have lost information.
        """
        check_is_fitted(self)
        return {
            column["name"]: READERS[column["kind"]](column, _present(column, values), start)
            for column, values in self._columns_of(X)
        }

    def transform(self, X: Any) -> Array:
        """Return the columns as an array of numbers, or of objects if some are text.

        Raises TableError as `read` does.
        """
        found = self.read(X)
        results: list[Any] = []
        for column in self.columns:
            values = found[column["name"]]
            results += _parts(column, values) if column["kind"] == "date" else [values]
        text = any(column["kind"] == "category" for column in self.columns)
        Z = np.empty((len(results[0]) if results else 0, len(results)), object if text else float)
        for j, values in enumerate(results):
            Z[:, j] = values
        return Z

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns; the parts of a date are 'name year' and so on."""
        return np.array(list(chain(*output_names(self.columns))), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _columns_of(self, X: Any) -> Iterable[tuple[Column, Any]]:
        """The columns, each with its values in X."""
        names = [column["name"] for column in self.columns]
        there = getattr(X, "column_names", getattr(X, "columns", None))  # PyArrow's have values
        if there is not None:
            there = list(there)
            if lacking := [name for name in names if name not in there]:
                which = f"column{'s' if len(lacking) > 1 else ''} {listed(map(repr, lacking), 10)}"
                raise TableError(f"the table lacks the {which}, which the model needs.")
            if double := [name for name in names if there.count(name) > 1]:
                raise TableError(f"the table has several columns named {double[0]!r}.")
            return [(column, X[column["name"]]) for column in self.columns]
        if hasattr(X, "toarray"):
            raise TypeError("X must be a table or an array, but is a sparse matrix.")
        Z = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        if Z.ndim != 2 or Z.shape[1] != len(names):
            raise ValueError(f"X must have shape (n_samples, {len(names)}). Got shape {Z.shape}.")
        return list(zip(self.columns, Z.T, strict=True))


def output_names(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    """Return the names of each column's results; those of date parts differ from all others."""
    has_parts = any("parts" in column for column in columns)
    taken = {column["name"] for column in columns} if has_parts else set()
    found: list[tuple[str, ...]] = []
    for column in columns:
        if "parts" not in column:
            found.append((column["name"],))
            continue
        names = []
        for part in column["parts"]:
            name = f"{column['name']} {part}"
            while name in taken:
                name += "'"
            taken.add(name)
            names.append(name)
        found.append(tuple(names))
    return found


# --------------------------------------------------------------------- kinds of columns


def _present(column: Column, values: Any) -> Any:
    """Return the values of a column, without those that are declared as missing."""
    found, missing = read_objects(column["name"], values), column.get("missing", ())
    if missing and not isinstance(found, np.ndarray):
        found = clean(found)
    return without(found, missing, NumberForm(*column.get("form", PLAIN)))


def _numbers(column: Column, values: Any, start: int) -> Array:
    name = column["name"]
    if not isinstance(values, np.ndarray):
        values = clean(values)
    found = numbers(values, NumberForm(*column["form"]))
    if not isinstance(values, np.ndarray):
        check_all(name, values, lambda row: found[row] == found[row], "numbers", "", start)
    check_size(name, found, start)
    return found


def _texts(column: Column, values: Any, start: int) -> Values:
    name, of_numbers = column["name"], column["numbers"]
    found = texts(clean(values), of_numbers=of_numbers)
    advice = (
        f" Read it as text, for example with dtype={{{name!r}: str}} in pandas: numbers do not "
        "tell '01' from '1'."
    )
    check_all(name, found, lambda row: isinstance(found[row], str), "text", advice, start)
    return found


def _dates(column: Column, values: Any, start: int) -> Values:
    if column.get("local") and any(str(getattr(one, "tzinfo", "")) == "UTC" for one in values):
        raise TableError(
            f"column {column['name']!r} contains times in UTC, but the model was trained with "
            "local times such as 07:30+02:00, whose hours are others. Read it as text, or convert "
            "it to local time."
        )
    found = dates(clean(values))
    known = expanded(found, column["order"])
    hour = PARTS.index("hour")
    what = "times" if column["order"] == "time" else "dates"
    advice = f" It is read in the order {column['order']!r}, as in training."
    place = hour if what == "times" else 0
    good = known[:, place] == known[:, place]
    check_all(column["name"], found, good.__getitem__, what, advice, start)
    return found


READERS = {"number": _numbers, "category": _texts, "date": _dates}


def _parts(column: Column, values: Values) -> list[Array]:
    every = expanded(values, column["order"])
    return [
        np.clip(every[:, PARTS.index(part)], *limits) for part, limits in column["parts"].items()
    ]


# ------------------------------------------------------------------------ model files


def _is_form(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(PLAIN)
        and all(isinstance(one, str) for one in value)
        and value[0] in (".", ",")
        and value[1] in SEPARATORS
        and value[0] != value[1]
        and value[2] in ("", *UNITS)
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


def _are_parts(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            name in PARTS
            and isinstance(limits, list)
            and len(limits) == 2
            and all(map(_is_number, limits))
            and limits[0] <= limits[1]
            for name, limits in value.items()
        )
    )


OPTIONAL: dict[str, dict[str, Any]] = {"date": {"local": lambda value: value is True}}
FIELDS = {
    "number": {"form": _is_form},
    "category": {"numbers": lambda value: isinstance(value, bool)},
    "date": {"order": lambda value: value in ORDERS, "parts": _are_parts},
}


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_declaration(value: Any) -> bool:
    """Whether these are the valid fields of a column besides its name."""
    kind = value.get("kind") if isinstance(value, dict) else None
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    optional = {"missing": _are_texts} | OPTIONAL.get(str(kind), {})
    return (
        fields is not None
        and set(value) - set(optional) == {"kind", *fields}
        and all(holds(value[name]) for name, holds in optional.items() if name in value)
        and all(holds(value[name]) for name, holds in fields.items())
    )


NAMES: Rules = {
    "the names of the columns": lambda names: (
        is_vector(names, "O") and len(names) and all(isinstance(name, str) for name in names)
    ),
    "the distinct names of the columns": all_different,
}
DECLARATIONS: Rules = {
    "a list of columns": lambda value: isinstance(value, list),
    "a list of columns with valid fields": lambda value: all(map(_is_declaration, value)),
}


def _facts(step: TableColumns) -> dict[str, Any]:
    """Each distinct declaration once, because most columns of a large table have the same."""
    places: dict[str, int] = {}
    declarations: list[dict[str, Any]] = []
    declared_by = []
    for column in step.columns:
        fields = {field: value for field, value in column.items() if field != "name"}
        place = places.setdefault(repr(fields), len(places))
        declared_by.append(place)
        if place == len(declarations):
            declarations.append(fields)
    return {"declarations": declarations, "declared_by": np.array(declared_by, dtype=np.int64)}


def _restore(step: TableColumns, facts: Facts) -> int:
    names = facts.require("feature_names_in_", NAMES)
    n, most = len(names), facts.limits.declared
    facts.expect("feature_names_in_", n <= most, f"at most {most:,} names in a file of this size")
    declarations = facts.require("declarations", DECLARATIONS)
    every = np.arange(len(declarations))
    declared_by = facts.require(
        "declared_by",
        {
            f"a vector of {n} integers": lambda v: is_vector(v, "i") and len(v) == n,
            "the places of all declarations": lambda v: np.array_equal(np.unique(v), every),
        },
    )
    step.columns = [
        {"name": name, **declarations[place]}
        for name, place in zip(names, declared_by, strict=True)
    ]
    return n


def _read(step: TableColumns) -> list[Operation]:
    return [Read(tuple(output_names(step.columns)))]


TABLE_COLUMNS = Known(
    "quadric.models:TableColumns",
    (),
    facts=_facts,
    restore=_restore,
    absent={"columns": []},
    operations=_read,
)
