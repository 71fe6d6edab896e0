"""`generate`: the program of a model in one of the languages."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.checks import Array, check_choice
from quadric.codegen._c import DOUBLE, FLOAT, write_c
from quadric.codegen._description import Description
from quadric.codegen._fixed_point import write_fixed_point
from quadric.codegen._javascript import write_javascript
from quadric.codegen._proof import Arithmetic, Bounds, Box, NotProvenError, Proof, prove
from quadric.codegen._python import write_python
from quadric.codegen._sql import DIALECTS, Query

LANGUAGES = ("c", "javascript", "python", *DIALECTS)
REALS = {"double": DOUBLE, "float": FLOAT}
ARITHMETICS = (*REALS, "int32")
# the largest number of parameters: with more, compilers and databases take minutes, or fail
MOST_PARAMETERS = {"c": 1_000_000, "javascript": 1_000_000, "python": 1_000_000}
MOST_IN_SQL = 50_000
BYTES = 23  # of text for a parameter


def generate(
    model: Any,
    language: str,
    *,
    arithmetic: str = "double",
    X: Any = None,
    name: str = "model",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] | None = None,
    digest: str | None = None,
) -> str:
    """Write a fitted model as a program without dependencies.

    The program contains the preprocessing. It computes scores (the outputs of the last layer before
    its activation), labels and probabilities, or the values of a regressor or Network.

    Parameters
    ----------
    model : Network, fitted quadric estimator, or Pipeline that ends with one
        The model.
    language : {'c', 'javascript', 'python', 'sqlite', 'duckdb', 'postgresql'}
        A C99 header, a JavaScript module, a Python module, or one SQL statement for a database.
    arithmetic : {'double', 'float', 'int32'}, default='double'
        The arithmetic of C code. 'int32' uses integers only. It needs X, has scores and labels but
        no probabilities, and supports models that fold to a single layer.
    X : table or array, optional
        Rows for which labels in C code are proven: the box is their range, and the comment at the
        top says how many of them are covered.
    name : str, default='model'
        What the names of all C functions begin with.
    table : str or sequence of str, default='data'
        The table that SQL scores. A sequence is a name with its schema.
    keep : sequence of str, optional
        The columns of the table in the result of SQL; by default, those that the model uses.
    digest : str, optional
        The hash of the model in the comment at the top; by default, that of the file that
        `quadric.save` writes.

    Returns
    -------
    str
        The text of the program.

    Raises
    ------
    TypeError
        If a step cannot be translated.
    ValueError
        If the text would be too long, if the language cannot represent a name, or if the labels
        for X cannot be proven.

    See Also
    --------
    quadric.onnx.export : Write a graph for ONNX runtimes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from quadric import QuadraticLogisticRegression
    >>> from quadric.codegen import generate
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QuadraticLogisticRegression().fit(X, y)
    >>> module = {}
    >>> exec(generate(model, "python"), module)
    >>> module["label"]([5.1, 3.5, 1.4, 0.2])
    0
    """
    check_choice("language", language, LANGUAGES)
    check_choice("arithmetic", arithmetic, ARITHMETICS)
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,30}", name):
        raise ValueError(
            "name must be a letter followed by at most 30 letters, digits and underscores. Got "
            f"{name!r:.60} instead."
        )
    description = Description.of(model, digest)
    _check_size(description, language)
    if language == "c":
        return _write_c(description, name, arithmetic, X)
    if language in DIALECTS:
        used = [column.name for column in description.program.columns if column.kind]
        where = (table,) if isinstance(table, str) else tuple(table)
        return Query(description, language, where, tuple(used if keep is None else keep)).write()
    return write_python(description) if language == "python" else write_javascript(description)


def _check_size(description: Description, language: str) -> None:
    most, count = MOST_PARAMETERS.get(language, MOST_IN_SQL), description.n_constants
    if count > most:
        raise ValueError(
            f"the model has {count:,} parameters, about {count * BYTES / 1e6:.0f} MB of text, but "
            f"{language} code can have {most:,}. Reduce the model with quadric.convert.truncate, "
            "train one with fewer neurons or reduced layers, or export it with quadric.onnx.export."
        )


def _write_c(description: Description, name: str, arithmetic: str, X: Any) -> str:
    if arithmetic == "int32" and X is None:
        raise ValueError(
            'arithmetic="int32" needs X: the ranges of its columns determine the integers.'
        )
    try:
        if arithmetic == "int32":
            return write_fixed_point(description, name, X)
        proof = None if X is None else _float_proof(description, X, arithmetic)
    except NotProvenError as error:
        advice = 'Use arithmetic="float".' if arithmetic == "int32" else "Omit X."
        raise ValueError(f"the labels cannot be proven: {error} {advice}") from None
    return write_c(description, name, REALS[arithmetic], proof)


def _float_proof(description: Description, X: Any, arithmetic: str) -> Proof:
    own = Arithmetic(np.dtype(np.float64 if arithmetic == "double" else np.float32))

    def errors(box: Box) -> Array:
        bounds = Bounds.of(description.program, own, box)
        return np.array([one.error for one in bounds.arrays[description.program.scores]])

    return prove(description, X, f"{arithmetic}, IEEE 754, round to nearest", errors)
