"""What a generated file says about its model: name, version, hash, inputs and classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import quadric
from quadric.codegen._expressions import (
    Expression,
    Program,
    Statement,
    expanded,
)
from quadric.codegen._spelling import comment
from quadric.codegen._translation import outputs, probabilities, program_of
from quadric.errors import ModelFileError
from quadric.files import hash_of
from quadric.models import ModelView

MOST_LISTED = 100  # with more inputs or classes, a comment gives only their number
MOST_SPELLED = 120  # with at most this many parameters, layers are written as equations


@dataclass(frozen=True, eq=False)
class Description:
    """A model and its program, from which every language is written."""

    view: ModelView
    program: Program
    digest: str

    @classmethod
    def of(cls, model: Any, digest: str | None = None) -> "Description":
        view = ModelView.of(model)
        program = program_of(view.after_reading)
        return cls(view, program, model_hash(model) if digest is None else digest)

    @property
    def has_probabilities(self) -> bool:
        return self.view.classes is not None

    @property
    def has_label(self) -> bool:
        """Whether the model chooses one of several classes."""
        return self.view.chooses_a_class or (self.has_probabilities and not self.view.is_multilabel)

    @cached_property
    def labels(self) -> list[Any]:
        labels: list[Any] = self.view.labels.tolist()
        return labels

    @cached_property
    def n_constants(self) -> int:
        """The number of parameters of all layers."""
        return sum(layer.n_parameters for layer in self.program.layers)

    @property
    def flat(self) -> tuple[Program, list[Expression]]:
        """The program without arrays, and its scores."""
        return expanded(self.program)

    @property
    def is_small(self) -> bool:
        """Whether the layers are few enough numbers to be written as equations."""
        return self.n_constants <= MOST_SPELLED

    def score_statements(self) -> tuple[list[Statement], list[Expression], list[Expression]]:
        """The statements of the scores, the required numbers, and the scores."""
        if self.is_small:
            flat, z = self.flat
            return flat.statements, flat.required, z
        program = self.program
        return program.statements, program.required, program.elements(program.scores, program.width)

    def answers(self, z: Sequence[Expression], program: Program) -> list[Expression]:
        """The results of `predict_proba`, or of a regressor's `predict`, from scores (leaves).

        Scalars that they need are added to the program.
        """
        make = probabilities if self.has_probabilities else outputs
        return make(program, self.view, z)

    def heading(self) -> list[str]:
        """What the comment at the top of a file says."""
        used = [column for column in self.program.columns if column.kind]
        lines = [
            f"{self.view.name}, written by quadric {quadric.__version__}.",
            f"Model: SHA-256 {comment(self.digest)}",
            "Inputs, in this order:" if len(used) <= MOST_LISTED else f"{len(used)} inputs.",
        ]
        if len(used) <= MOST_LISTED:
            lines += [
                f"  {i}: {comment(column.name)} ({column.kind or 'not used'})"
                for i, column in enumerate(self.program.columns)
            ]
        if self.has_label or self.view.is_multilabel:
            named = ", ".join(map(comment, self.labels[:MOST_LISTED]))
            lines.append(f"Classes: {named}{', ...' if len(self.labels) > MOST_LISTED else ''}")
        return lines


def model_hash(model: Any) -> str:
    """The hash in the model's file, or a note that the model cannot be saved."""
    try:
        return hash_of(model)
    except ModelFileError:
        return "not known, because the model cannot be saved"
