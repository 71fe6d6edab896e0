"""Formulas of the scores: `to_sympy` for computer algebra, and `to_latex` for papers."""

from collections.abc import Callable
from functools import reduce
from importlib.util import find_spec
from operator import add, mul, sub
from typing import Any

from quadric.codegen._description import Description
from quadric.codegen._expressions import Expression, Scalar
from quadric.explain import quadrics

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul}


def to_sympy(model: Any) -> list[Any]:
    """Return the scores of a model without hidden activations as SymPy expressions of its inputs.

    The expressions are not expanded; ``sympy.expand`` does that.

    Parameters
    ----------
    model : Network, fitted quadric estimator, or Pipeline that ends with one
        The model. The steps of a Pipeline must be affine.

    Returns
    -------
    list of sympy expressions
        One for each score, in the order of the classes. The symbols have the names of the inputs.

    Raises
    ------
    TypeError
        If a step or a hidden layer computes something else than sums and products.

    Examples
    --------
    >>> import sympy
    >>> from quadric import Network
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    >>> net.layers[0].Q, net.layers[0].W = [[[1, 0.5], [0.5, 0]]], [[0, 0]]
    >>> net.layers[0].b = [-2]
    >>> (z,) = to_sympy(net)
    >>> sympy.expand(z)
    1.0*x0**2 + 1.0*x0*x1 - 2.0
    """
    if find_spec("sympy") is None:
        raise ImportError("quadric.codegen.to_sympy needs sympy: pip install sympy")
    import sympy

    description = Description.of(model, digest="")
    program, scores = description.flat
    known: dict[str, Any] = {}

    def formula(one: Expression) -> Any:
        if one.operator == "number":
            return sympy.Float(one.value)
        if one.operator == "column":
            return sympy.Symbol(program.columns[one.value].name)
        if one.operator == "variable":
            return known[one.value]
        if one.operator not in OPERATORS:
            raise TypeError(
                "model must consist of affine steps and layers without hidden activations. It "
                f"computes {one.operator!r}; use `generate` instead."
            )
        return reduce(OPERATORS[one.operator], map(formula, one.arguments))

    for statement in program.statements:
        assert isinstance(statement, Scalar)  # because the program is flat
        known[statement.name] = formula(statement.expression)
    return [formula(z) for z in scores]


def to_latex(model: Any, precision: int = 3) -> str:
    r"""Write the scores of a single layer in LaTeX, in the user's units.

    Parameters
    ----------
    model : Network, fitted quadric estimator, or Pipeline that ends with one
        The model. Its last layer must be quadratic or reduced.
    precision : int, default=3
        Number of significant digits.

    Returns
    -------
    str
        The lines of an ``align*`` environment, one for each score in the order of the classes.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    >>> net.layers[0].Q, net.layers[0].W = [[[1, 0.5], [0.5, 0]]], [[0, 0]]
    >>> net.layers[0].b = [-2]
    >>> print(to_latex(net))
    \begin{align*}
    z_{0} &= x_{1}^{2} + x_{1}\,x_{2} - 2
    \end{align*}
    """
    description = Description.of(model, digest="")
    names = description.view.coordinates.names
    lines = []
    for k, surface in enumerate(quadrics(model)):
        text = surface.equation(names, precision, latex=True).rsplit("=", 1)[0].strip()
        lines.append(rf"z_{{{k}}} &= {text}")
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"
