"""What the table says about one class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from quadric._utils.arrays import Array
from quadric.pipelines._facts import Facts
from quadric.pipelines._operations import Operation


@dataclass(frozen=True)
class Known:
    """A class whose fitted objects can be stored and restored.

    Attributes
    ----------
    module, name : str
        Where the class is imported from.
    parameters : tuple of str
        Those that define the object. The others concern how it runs (memory, processes, output)
        and take their defaults when it is restored.
    facts : callable(fitted object) -> dict
        What `fit` has found that cannot be computed from the rest.
    restore : callable(object, Facts) -> int
        Gives an unfitted object, which has its parameters, the attributes that `fit` would have
        given it. Returns the number of input columns; raises FactError or another ValueError.
    absent : dict
        Parameters that the class demands and that follow from the facts.
    """

    module: str
    name: str
    parameters: tuple[str, ...]
    facts: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, Facts], int]
    absent: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def of(self) -> type[Any]:
        """The class itself, imported when first asked for."""
        return getattr(import_module(self.module), self.name)


@dataclass(frozen=True)
class KnownStep(Known):
    """A class of steps.

    Attributes
    ----------
    operations : callable(fitted step) -> list of Operation
        What the step does to its columns.
    typical : callable(fitted step) -> (means, standard deviations) or None
        What a scaler knows of its inputs.
    """

    operations: Callable[[Any], list[Operation]]
    typical: Callable[[Any], tuple[Array, Array] | None] = lambda step: None
