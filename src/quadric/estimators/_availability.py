"""Whether `partial_fit` exists, which depends on the parameters."""

from collections.abc import Callable
from types import MethodType
from typing import Any


class UnavailableMethodError(AttributeError, ValueError):
    """The parameters of an estimator exclude a method.

    It is an AttributeError, so that `hasattr` returns False and tools such as
    `MultiOutputClassifier` do not use the method. It is a ValueError as well, because parameters
    that exclude each other raise one in scikit-learn's `partial_fit`.
    """


class IfIncremental:
    """A decorator of `partial_fit`: the method exists unless the parameters exclude it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        if reason := _reason_against(estimator):
            raise UnavailableMethodError(reason)
        return MethodType(self.method, estimator)


def _reason_against(estimator: Any) -> str | None:
    if estimator.solver == "lbfgs":
        return "partial_fit is only available for stochastic optimizers. lbfgs is not stochastic."
    if estimator.early_stopping:
        return "partial_fit does not support early_stopping=True"
    if getattr(estimator, "class_weight", None) == "balanced":
        return (
            "partial_fit does not support class_weight='balanced', because the frequencies of the "
            "classes in later batches are unknown. Pass a dict with the weight of each class."
        )
    return None
