"""Formulas have the values of the scores."""

import numpy as np
import pytest

from quadric.codegen import to_latex, to_sympy
from tests.codegen.conftest import fitted


def test_sympy_expressions_have_the_values_of_the_scores():
    sympy = pytest.importorskip("sympy")
    model, X = fitted("iris")
    formulas = to_sympy(model)
    symbols = sympy.symbols("x0 x1 x2 x3")
    assert sympy.Poly(formulas[0], *symbols).total_degree() == 2
    for k, formula in enumerate(formulas):
        value = sympy.lambdify(symbols, sympy.expand(formula))
        scores = model.decision_function(X)[:, k]
        np.testing.assert_allclose(value(*X.T), scores, rtol=1e-10, atol=1e-10)


def test_what_is_not_a_polynomial_is_refused():
    pytest.importorskip("sympy")
    with pytest.raises(TypeError, match="without hidden activations"):
        to_sympy(fitted("hidden wine")[0])
    with pytest.raises(TypeError, match="without hidden activations"):
        to_sympy(fitted("mixed")[0])


def test_latex_has_a_line_for_each_class_in_the_units_of_the_inputs():
    text = to_latex(fitted("iris")[0], precision=4)
    lines = text.splitlines()
    assert (lines[0], lines[-1], len(lines)) == (r"\begin{align*}", r"\end{align*}", 5)
    assert all(line.startswith(f"z_{{{k}}} &= ") for k, line in enumerate(lines[1:-1]))
