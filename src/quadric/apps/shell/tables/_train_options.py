"""What the user chooses when training: the columns, the model, its test, and the stream.

Each annotated field is also an option of `quadric train`: its name, default and help are declared
only here. The module imports nothing slow, so that `quadric --help` is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    Names = Sequence[str]
else:
    Names = list[str]  # the only type of repeated options that typer supports


@dataclass(frozen=True)
class ColumnOptions:
    """The target and the user's choices about the columns.

    Parameters
    ----------
    target : str
        The column to predict.
    task : {'classification', 'regression'}, optional
        By default, inferred from the target's values.
    drop : sequence of str
        Columns to ignore.
    categorical : sequence of str
        Numeric columns to treat as categories.
    most_categories : int
        Text columns with more distinct values than this are not used.

    Examples
    --------
    >>> ColumnOptions("species", drop=["id"]).target
    'species'
    """

    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")]
    task: Annotated[
        Literal["classification", "regression"] | None,
        typer.Option(
            help="The task [default: regression if the target contains fractions or more than 20 "
            "distinct integers, otherwise classification]."
        ),
    ] = None
    drop: Annotated[
        Names, typer.Option(help="Columns to ignore, such as a,b; may be repeated.")
    ] = ()
    categorical: Annotated[
        Names,
        typer.Option(help="Numeric columns to treat as categories, such as a,b; may be repeated."),
    ] = ()
    most_categories: Annotated[
        int,
        typer.Option(
            "--max-categories",
            min=2,
            help="Ignore text columns with more distinct values than this.",
        ),
    ] = 50


@dataclass(frozen=True)
class Settings:
    """The model to train and how to test it.

    Parameters
    ----------
    hidden : tuple of int, optional
        The widths of the hidden layers, which consist of linear neurons; () means that there are
        none. If neither `hidden` nor `kind` is given, the shape is chosen on held-out rows. In a
        stream, it is a single quadratic layer instead.
    kind : {'quadratic', 'reduced'}, optional
        The kind of neurons in the last layer; quadratic by default.
    seed : int
    test_size : float
        The share of rows to hold out.
    cv : int, optional
        The number of folds for cross-validation, which replaces the held-out split.
    verbose : bool
        Whether the estimator reports its progress.
    class_weight : {'balanced'}, optional
        Weight every class equally, whatever its number of rows.
    alpha : float, optional
        The L2 penalty; by default, chosen on held-out rows, except in a stream.
    max_iter : int, optional
        The maximum number of iterations; by default, that of the estimator.
    """

    hidden: tuple[int, ...] | None = None
    kind: Annotated[
        Literal["quadratic", "reduced"] | None,
        typer.Option(
            help="Kind of neurons in the last layer [default: chosen on held-out rows; with "
            "--hidden or --stream: quadratic]."
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out for testing.")
    ] = 0.25
    cv: Annotated[
        int | None,
        typer.Option(
            min=2, max=100, help="Number of cross-validation folds, instead of --test-size."
        ),
    ] = None
    verbose: bool = False
    class_weight: Annotated[
        Literal["balanced"] | None,
        typer.Option(help="Give all classes the same total weight, whatever their sizes."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="The L2 penalty [default: chosen on held-out rows; with --stream: 0.0001].",
        ),
    ] = None
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of iterations of the solver.")
    ] = None

    @property
    def is_auto(self) -> bool:
        """Whether the estimator chooses the shape."""
        return self.hidden is None and self.kind is None


@dataclass(frozen=True)
class Stream:
    """How to read a table larger than memory.

    Parameters
    ----------
    epochs : int, optional
        The number of passes over the rows; by default, fewer for longer tables.
    buffer : int, optional
        The number of rows that are shuffled together.
    every : int, optional
        The number of buffers between two checkpoints; by default, 10.
    """

    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="With --stream: number of epochs [default: depends on the size]."),
    ] = None
    buffer: Annotated[
        int | None, typer.Option(min=1, help="With --stream: number of rows shuffled together.")
    ] = None
    every: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-every",
            min=1,
            help="With --stream: number of buffers between checkpoints [default: 10].",
        ),
    ] = None
