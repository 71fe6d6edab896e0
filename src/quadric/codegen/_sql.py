"""SQL: one statement that scores the rows of a table, for SQLite, DuckDB or PostgreSQL.

Scalars that depend on each other are computed in successive common table expressions, each of which
passes on only the columns that are needed later. Sums are balanced trees, because databases limit
the depth of expressions. NULL stands for a missing number. A row that the model would reject has
NULL as label, scores and probabilities.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from quadric.codegen._description import Description
from quadric.codegen._expressions import (
    NAN,
    ONE,
    ZERO,
    Expression,
    Program,
    Scalar,
    apply,
    cases,
    choose,
    number,
)
from quadric.codegen._spelling import (
    Spelling,
    encodable,
    label_literal,
    shortest,
    sql_condition,
)

LARGEST = float(np.finfo(np.float64).max)
MOST_BYTES = 63  # PostgreSQL cuts longer names
CALLS = {
    "same": "{0} = {1}",
    "missing": "{0} IS NULL",
    "infinite": f"abs({{0}}) > {shortest(LARGEST)}",
    "missing text": "{0} IS NULL",
    "exp": "exp({0})",
    "log": "ln({0})",
    "tanh": "tanh({0})",
    "power": "power({0}, {1})",
    "abs": "abs({0})",
    "largest": "greatest({0}, {1})",
    "and": "({0} AND {1})",
}


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database.

    Parameters
    ----------
    calls : dict
        The functions that differ from the others'.
    number, text : str
        How a column is read as a number or as text.
    words : tuple of str
        True and false.
    fence : str
        What keeps the database from repeating an expression wherever its name occurs.
    folds_case : bool
        Whether names that differ only in case are equal.
    """

    calls: dict[str, str]
    number: str
    text: str
    words: tuple[str, str] = ("TRUE", "FALSE")
    fence: str = "MATERIALIZED "
    folds_case: bool = True


DIALECTS = {
    # a text in a column of numbers becomes infinite, so that the row gets no label
    "sqlite": Dialect(
        {"largest": "max({0}, {1})", "same": "{0} COLLATE BINARY = {1}"},
        "CASE typeof({0}) WHEN 'real' THEN {0} WHEN 'integer' THEN {0} * 1e0 "
        "WHEN 'null' THEN NULL ELSE 9e999 END",
        "CAST({0} AS TEXT)",
        words=("1", "0"),
    ),
    "duckdb": Dialect(
        {},
        # as text, because DuckDB takes isnan as false where the statistics of Parquet omit NaN
        "CASE CAST({0} AS VARCHAR) WHEN 'nan' THEN NULL ELSE CAST({0} AS DOUBLE) END",
        "CAST({0} AS VARCHAR)",
        fence="",
    ),
    # PostgreSQL raises an error if an exponential underflows
    "postgresql": Dialect(
        {"exp": "CASE WHEN {0} < -7e2 THEN 0e0 ELSE exp({0}) END"},
        "nullif(CAST({0} AS double precision), CAST('NaN' AS double precision))",
        "CAST({0} AS text)",
        folds_case=False,
    ),
}


def sql_number(value: float) -> str:
    """A constant with an exponent, which all databases read as a double; NULL for NaN."""
    if value != value:
        return "NULL"
    text = shortest(value)
    return text if "e" in text else f"{text}e0"


def sql_string(text: str) -> str:
    """A string literal."""
    return "'" + encodable(text, "the text").replace("'", "''") + "'"


def postgresql_string(text: str) -> str:
    """A string literal that does not depend on the setting standard_conforming_strings."""
    plain = sql_string(text)
    return " E" + plain.replace("\\", "\\\\") if "\\" in plain else plain


def quoted(name: str) -> str:
    """A name of a table or column."""
    if not name:
        raise ValueError("a column has an empty name, which SQL does not allow. Rename it.")
    return '"' + encodable(name, "the name").replace('"', '""') + '"'


@dataclass(frozen=True)
class Query:
    """Writes the statement for a model in a dialect."""

    description: Description
    dialect: str
    table: tuple[str, ...]
    keep: tuple[str, ...]

    @property
    def own(self) -> Dialect:
        return DIALECTS[self.dialect]

    @property
    def string(self) -> Callable[[str], str]:
        return postgresql_string if self.dialect == "postgresql" else sql_string

    @property
    def spelling(self) -> Spelling:
        return Spelling(
            calls=CALLS | self.own.calls,
            leaf=lambda one: str(one.value) if one.operator == "variable" else f"x_{one.value}",
            number=sql_number,
            string=self.string,
            condition=sql_condition,
            equal="=",
            balanced=True,
        )

    def write(self) -> str:
        program, z = self.description.flat
        results = self._results(program, z)
        levels = _levels(program)
        needed = [_used(e for e, _ in results)]
        for level in reversed(levels):
            before = (needed[0] - {one.name for one in level}) | _used(
                one.expression for one in level
            )
            needed.insert(0, before)
        names = _names_unlike(self.table[-1])
        source = next(names)
        text = "/*\n" + "\n".join(self.description.heading()) + "\n*/\n"
        text += f"WITH {source} AS {self.own.fence}(\n  SELECT {self._inputs(needed[0])}\n  FROM "
        text += ".".join(map(quoted, self.table)) + " AS rows\n)"
        kept = [f"keep_{i}" for i in range(len(self.keep))]
        for level, after in zip(levels, needed[1:], strict=True):
            own = {one.name for one in level}
            columns = [*kept, *sorted(after - own)]
            columns += [
                f"{self.spelling.write(one.expression)} AS {one.name}"
                for one in level
                if one.name in after
            ]
            previous, source = source, next(names)
            text += f", {source} AS {self.own.fence}(\n  SELECT " + ",\n    ".join(columns)
            text += f"\n  FROM {previous}\n)"
        columns = [f"keep_{i} AS {quoted(name)}" for i, name in enumerate(self.keep)]
        outputs = self._unique([name for _, name in results])
        columns += [
            f"{self.spelling.write(value)} AS {quoted(name)}"
            for (value, _), name in zip(results, outputs, strict=True)
        ]
        return f"{text}\nSELECT " + ",\n  ".join(columns) + f"\nFROM {source};\n"

    def _inputs(self, needed: set[str]) -> str:
        """The columns of the table that the model needs, and those that are kept.

        They are qualified, because SQLite reads an unknown name in quotes as a text.
        """
        columns = [f"rows.{quoted(name)} AS keep_{i}" for i, name in enumerate(self.keep)]
        seen: set[str] = set()
        for i, column in enumerate(self.description.program.columns):
            if f"x_{i}" not in needed:
                continue
            same = column.name.lower() if self.own.folds_case else column.name
            if same in seen:
                raise ValueError(
                    f"two columns are called {column.name!r} if case is ignored, as in "
                    f"{self.dialect}. Rename one before fitting."
                )
            seen.add(same)
            form = self.own.text if column.kind == "text" else self.own.number
            columns.append(f"{form.format(f'rows.{quoted(column.name)}')} AS x_{i}")
        return ",\n    ".join(columns)

    def _results(self, program: Program, z: Sequence[Expression]) -> list[tuple[Expression, str]]:
        """The expressions of the result, and their names; adds scalars to the program."""
        description, view = self.description, self.description.view
        valid = [apply(">=", number(LARGEST), apply("abs", one)) for one in (*program.required, *z)]
        ok = Expression("variable", value=program.unique("valid"))
        program.statements.append(Scalar(ok.value, choose(_all(valid), ONE, NAN)))
        scores = [program.bind(choose(apply("==", ok, ONE), one, NAN), "score") for one in z]
        labels = [str(label) for label in description.labels]
        found: list[tuple[Expression, str]] = []
        if description.has_label:
            found.append((self._label(program, scores, ok), "label"))
        elif view.is_multilabel:
            found += [
                (_sign(one), f"label {name}") for one, name in zip(scores, labels, strict=True)
            ]
        values = description.answers(scores, program)
        of = labels if len(labels) == len(scores) else list(map(str, range(len(scores))))
        found += [
            (z_k, f"score {k}" if len(scores) > 1 else "score")
            for z_k, k in zip(scores, of, strict=True)
        ]
        if description.has_probabilities:
            found += [(v, f"probability {k}") for v, k in zip(values, labels, strict=True)]
        else:
            many = len(values) > 1
            found += [(v, f"value {k}" if many else "value") for k, v in enumerate(values)]
        return found

    def _label(self, program: Program, scores: Sequence[Expression], ok: Expression) -> Expression:
        """The class of the first of the largest scores; NULL if there are no scores."""
        texts = [label_literal(v, self.string, self.own.words) for v in self.description.labels]
        label = [Expression("literal", value=text) for text in texts]
        if len(label) == 1:
            return cases([(apply("==", ok, ONE), label[0])], NAN)
        if len(scores) == 1:
            pairs = [
                (apply("<", ZERO, scores[0]), label[1]),
                (apply(">=", ZERO, scores[0]), label[0]),
            ]
            return cases(pairs, NAN)
        top = program.bind(apply("largest", *scores), "top")
        pairs = [(apply("==", one, top), name) for one, name in zip(scores, label, strict=True)]
        return cases(pairs, NAN)

    def _unique(self, names: Sequence[str]) -> list[str]:
        """The names of the results, none of which is that of another column of the result."""
        used = {name.lower() for name in self.keep}
        found = []
        for name in names:
            name = encodable(name, "the class").replace("\0", "")
            tries = (name if i == 1 else f"{_cut(name, 6)} {i}" for i in count(1))
            chosen = next(t for t in map(_cut, tries) if t.lower() not in used)
            used.add(chosen.lower())
            found.append(chosen)
        return found


def _cut(name: str, less: int = 0) -> str:
    """As much of a name as PostgreSQL keeps."""
    return name.encode("utf-8")[: MOST_BYTES - less].decode("utf-8", "ignore")


def _names_unlike(table: str) -> Iterator[str]:
    """Names of common table expressions, none of which is the table's."""
    names = ("inputs" if i == 0 else f"step_{i}" for i in count())
    return (name for name in names if name != table.lower())


def _all(conditions: Sequence[Expression]) -> Expression:
    """All conditions, as a balanced tree."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return Expression("and", (_all(conditions[:half]), _all(conditions[half:])))


def _sign(z: Expression) -> Expression:
    return cases(
        [(apply("<", ZERO, z), ONE), (apply(">=", ZERO, z), ZERO)],
        NAN,
    )


def _used(expressions: Iterable[Expression]) -> set[str]:
    """The names of the scalars and inputs in the expressions."""
    waiting, found = list(expressions), set()
    while waiting:
        one = waiting.pop()
        waiting += one.arguments
        if one.operator == "variable":
            found.add(one.value)
        elif one.operator in ("column", "text column"):
            found.add(f"x_{one.value}")
    return found


def _levels(program: Program) -> list[list[Scalar]]:
    """The scalars in groups, each of which depends only on the groups before it."""
    level: dict[str, int] = {}
    groups: list[list[Scalar]] = []
    for one in program.statements:
        assert isinstance(one, Scalar)
        own = max((level.get(name, -1) for name in _used([one.expression])), default=-1) + 1
        level[one.name] = own
        groups += [[]] * (own + 1 - len(groups))
        groups[own] = [*groups[own], one]
    return groups
