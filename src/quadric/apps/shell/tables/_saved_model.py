"""Saved models as models for tables: bare networks, and estimators that were fitted in Python.

The columns of models that were trained by `quadric train` are in the model file. For others, they
follow from the model itself or from `quadric.save`, which can store the names of a network's
columns, classes and target:
``save(network, path, extra={"columns": [...], "classes": [...], "target": "species"})``. Without
"columns", the inputs of a network are the table's numeric columns, in the order of the table.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from quadric.apps.shell.tables._column_profile import ColumnProfile, profile_batch
from quadric.apps.shell.tables._evaluation import LinearBaseline
from quadric.apps.shell.tables._options import is_table_description, refuse
from quadric.apps.shell.tables._preprocessing import ENCODED
from quadric.apps.shell.tables._schema import (
    Column,
    Schema,
    check_inputs,
    features,
    labeled_rows,
    predictable_rows,
)
from quadric.apps.shell.tables._source import ROWS_AT_ONCE, Source
from quadric.checks import Array
from quadric.errors import ModelFileError, TableError
from quadric.models import (
    Columns,
    ModelView,
    classes_of,
    input_names_of,
    split,
    steps_of,
)
from quadric.network import Network
from quadric.utils import first_applying, listed


@dataclass
class OpenedModel:
    """A model and, optionally, the table to apply it to.

    Attributes
    ----------
    model : estimator or TableNetwork
    schema : Schema or None
        The columns that the model uses; None if they are unknown.
    source : Source or None
        The table; None if none was given.
    notes : list of str
        Assumptions that were made, as sentences.
    labeled : bool
        Whether a column of the table with the target's name contains the true labels.
    linear : LinearBaseline or None
        The linear baseline that `quadric train` saved with the model.
    seen : bool
        Whether the model was trained on all rows of a table with the name of this table.
    """

    model: Any
    schema: Schema | None
    source: Source | None
    notes: list[str] = field(default_factory=list)
    labeled: bool = True
    linear: LinearBaseline | None = None
    seen: bool = False

    @classmethod
    def of(cls, model: Any, extra: Any, source: Source | None) -> Self:
        """Determine the columns of a model that was loaded, with the `extra` of its file.

        A file written by `quadric train` contains the names of the model's columns. A file with a
        bare Network may contain them; otherwise, the numeric columns are used. An estimator or
        pipeline saved in Python contains them if it was fitted to a DataFrame.
        """
        extra = extra if isinstance(extra, dict) else {}
        if is_table_description(extra.get("table")):
            view = ModelView.of(model)
            schema = _schema_in(extra["table"], view)
            if source is not None:
                schema = schema.written_as(source.table_format)
            # the transformers compute the columns of the baseline
            stored = extra.get("linear") if view.transformers else None
            return cls(
                model,
                schema,
                source,
                linear=LinearBaseline.from_dict(stored, schema, view.network.n_inputs),
                seen=source is not None and _is_seen(source, schema, extra),
            )
        if isinstance(model, Network):
            network = TableNetwork(model, extra, source)
            return cls(network, network.schema, source, network.notes, "target" in extra)
        if source is None:
            return cls(model, None, None)
        schema, notes = schema_of_estimator(model, extra, source)
        return cls(model, schema, source, notes)

    @property
    def notes_on_scores(self) -> list[str]:
        """The notes, and a warning if the table is probably the one that the model has seen."""
        warning = (
            "The model was trained on all rows of a table with this name. If it is the same table, "
            "these scores are too optimistic; `quadric info` shows those of `quadric train`."
        )
        return [*self.notes, warning] if self.seen else self.notes

    @property
    def table(self) -> tuple[Schema, Source]:
        """The columns and the table, which are known if a table was given."""
        assert self.schema is not None
        assert self.source is not None
        return self.schema, self.source

    @property
    def target(self) -> str:
        """The name of what the model predicts."""
        return "y" if self.schema is None else self.schema.target

    @functools.cached_property
    def view(self) -> ModelView:
        """The classes, the inputs and the estimator of the model."""
        return ModelView.of(self.model)

    @property
    def balanced(self) -> bool:
        """Whether the classes were weighted in training."""
        return getattr(self.view.estimator, "class_weight", None) is not None

    @property
    def selection(self) -> list[dict[str, Any]]:
        """The shapes that were compared in training; see `QuadraticClassifier.selection_`."""
        return getattr(self.view.estimator, "selection_", [])

    @property
    def imputes(self) -> bool:
        """Whether the model predicts rows in which some values are missing."""
        return not isinstance(self.model, TableNetwork)

    def predictable_rows(self) -> tuple[Any, Any, int]:
        """Return the inputs and targets of the rows that the model predicts; None if unknown.

        Also returns the number of other rows.
        """
        schema, source, y = self.schema, self.source, None
        if schema is None or source is None:
            return None, None, 0
        check_inputs(schema, source.columns)
        frame = source.read()
        if self.labeled and schema.target in source.columns:
            X, y, _ = labeled_rows(schema, frame)
        else:
            X = features(schema, frame)
        kept = predictable_rows(X, imputes=self.imputes)
        if not kept.any():
            raise TableError(f"every row of {source.path} has a missing value.")
        return X.filter(kept), None if y is None else y[kept], len(frame) - int(kept.sum())


def _is_seen(source: Source, schema: Schema, extra: dict[str, Any]) -> bool:
    """Whether the model was trained on all rows of a table with the name of this one."""
    report = extra.get("report")
    trained = report.get("trained") if isinstance(report, dict) else None
    every = schema.rows - schema.missing_targets
    return trained == every and extra.get("data") == source.path.name


def _schema_in(state: dict[str, Any], view: ModelView) -> Schema:
    """Return the schema that was saved with a model; raise ModelFileError if it does not fit."""
    classes, reader = view.classes, view.reader
    try:
        schema = Schema.from_dict(state)
        different = first_applying(
            {
                "columns": reader is None or schema.reader.columns != reader.columns,
                "classes": list(schema.classes) != ([] if classes is None else list(classes)),
                "task": (schema.task == "classification") != (classes is not None),
                "categories": _encoded(view) != set(schema.categories),
            }
        )
        if different:
            raise ValueError(f"different {different}")
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the table description in the model file does not fit the model ({error}). Train it "
            "again with `quadric train`, or use it in Python: quadric.load(...)."
        ) from None
    return schema


def _encoded(view: ModelView) -> set[str]:
    """Return the names of the columns that a model of `quadric train` encodes as categories."""
    parts = [part for step in view.transformers[:1] for part in getattr(step, "transformers_", ())]
    names = view.input_names or []
    return {names[j] for part, _, columns in parts if part in ENCODED for j in columns}


class TableNetwork:
    """A Network with column and class names and the methods of a classifier.

    Parameters
    ----------
    network : Network
    extra : dict
        The `extra` that was saved with the network.
    source : Source, optional
        The table to make predictions for.

    Attributes
    ----------
    network_, classes_, feature_names_in_ : Network, array or None and list of str or None
        What `quadric.models.ModelView` reads. The classes are 0, 1, ... by default, and None if the
        last activation does not yield probabilities. The columns are those named in `extra` or, by
        default, the table's numeric columns.
    schema : Schema or None
        The columns that the network uses; None if they are unknown.
    notes : list of str
        Assumptions that were made, as sentences.

    Raises
    ------
    TableError
        If `extra` or the table does not match the network.

    Examples
    --------
    >>> from quadric import Network
    >>> network = Network.create(2, [("quadratic", 3, "softmax")], rng=0)
    >>> TableNetwork(network, {"columns": ["x", "y"]}).schema.names
    ['x', 'y']
    """

    def __init__(
        self, network: Network, extra: Mapping[str, Any], source: Source | None = None
    ) -> None:
        self.network_ = network
        self.notes: list[str] = []
        n, m, last = network.n_inputs, network.n_outputs, network.activations[-1]
        gives_probabilities = ModelView.of(network).chooses_a_class
        count = 2 if last == "logistic" and m == 1 else m
        classes = _distinct(extra, "classes", count, "class", (str, int))
        target = extra.get("target", "class" if gives_probabilities else "output")
        refuse(
            {
                f"the model file names classes, but the network's last activation is {last!r}, "
                "which does not give probabilities. Save it with 'softmax' or 'logistic' as the "
                'last activation, for instance to_network(model, activation="softmax").': (
                    classes is not None and not gives_probabilities
                ),
                f"'target' in the model file must be a name. Got {target!r} instead.": (
                    not isinstance(target, str) or not target
                ),
            }
        )
        self.classes_ = np.array(classes or range(count)) if gives_probabilities else None
        self.feature_names_in_ = _distinct(extra, "columns", n, "input", (str,))
        if self.feature_names_in_ is None and source is not None:
            self.feature_names_in_ = _numeric_columns(source, n)
            self.notes.append(
                "The model file does not name its columns. The inputs are the table's numeric "
                f"columns, in table order: {listed(map(repr, self.feature_names_in_))}."
            )
        self.schema: Schema | None = None
        if self.feature_names_in_ is not None:
            self.schema = _schema(self, self.feature_names_in_, target)
            if source is not None:
                self.schema = self.schema.written_as(source.table_format)

    def predict(self, X: Any) -> Array:
        """Return the classes or the outputs; a single output has shape (n_samples,)."""
        if self.classes_ is not None:
            return self.classes_[self._outputs(X, "predict")]
        outputs = self._outputs(X, "forward")
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, X: Any) -> Array:
        """Return the network's outputs; for one output p, the columns are 1 - p and p."""
        outputs = self._outputs(X, "forward")
        if self.classes_ is not None and outputs.shape[1] < len(self.classes_):
            return np.hstack([1 - outputs, outputs])
        return outputs

    def decision_function(self, X: Any) -> Array:
        """Return the pre-activations of the last layer."""
        return self.network_.logits(np.asarray(X, dtype=np.float64))

    def _outputs(self, X: Any, method: str) -> Array:
        rows = np.nan_to_num(np.asarray(X, dtype=np.float64))  # NaN rows get no prediction
        try:
            return np.asarray(getattr(self.network_, method)(rows))
        except ValueError:
            raise TableError(
                f"the table contains numbers so large (up to {np.abs(rows).max():g}) that the "
                f"network's output is not finite in {self.network_.dtype}. Scale its columns as in "
                "training."
            ) from None


def _numeric_columns(source: Source, n: int) -> list[str]:
    """Return the numeric columns of a table; raise TableError unless there are n of them."""
    form = (source.table_format.decimal, source.table_format.thousands, "")
    profiles = [ColumnProfile(name, 0, 0, form=form) for name in source.columns]
    for frame in source.batches(ROWS_AT_ONCE):
        profile_batch(profiles, frame)
    if not profiles[0].rows:
        raise TableError(f"{source.path} has column names but no rows.")
    reasons = {
        profile.name: first_applying(
            {
                "no name": profile.name in source.unnamed,
                "all its values are missing": not profile.present,
                "": profile.numeric == profile.present,
                profile.first_odd: profile.odd,
                "other values": True,
            }
        )
        for profile in profiles
    }
    numeric = [name for name, why in reasons.items() if not why]
    if len(numeric) != n:
        others = [f"{name!r} ({why})" for name, why in reasons.items() if why]
        rest = f". Not numeric: {listed(others)}" if others else ""
        raise TableError(
            f"the network has {n} inputs, but {source.path} has {len(numeric)} numeric columns"
            f"{': ' if numeric else ''}{listed(map(repr, numeric))}{rest}. Use a table with only "
            "the inputs, in the right order, or save the network with the names of its columns: "
            'quadric.save(network, path, extra={"columns": [...]}).'
        )
    return numeric


def _distinct(
    extra: Mapping[str, Any], key: str, count: int, what: str, types: tuple[type, ...]
) -> list[Any] | None:
    """Return a list of `count` distinct values of one type; None if `extra` has no such key."""
    value = extra.get(key)
    if value is None:
        return None
    good = isinstance(value, list) and any(all(type(v) is t for v in value) for t in types)
    large = good and any(abs(v) >= 2**63 for v in value if type(v) is int)
    if not good or large or len(value) != count or len(set(value)) < count:
        names = "names or integers" if int in types else "names"
        shown = f"a list of {len(value)}" if isinstance(value, list) else repr(value)
        raise TableError(
            f"{key!r} in the model file must be a list of {count} distinct {names}, one per "
            f"{what}. Got {shown} instead. Save the network again."
        )
    return value


def schema_of_estimator(
    model: Any, extra: Mapping[str, Any], source: Source | None = None
) -> tuple[Schema, list[str]]:
    """Return the schema of a fitted estimator, and notes about what was assumed.

    scikit-learn does not store the name of the target. It is `extra["target"]` or, by default, the
    only column of the table that the model does not use.

    Raises
    ------
    TableError
        If the model was fitted to an array, which has no column names.
    """
    names = input_names_of(model)
    if names is None:
        raise TableError(
            "the model does not know the names of its columns, because it was fitted to an array. "
            "Fit it to a pandas or Polars DataFrame, or use it in Python: quadric.load(...)."
        )
    names = [str(name) for name in names]
    target, notes = extra.get("target"), []
    if not isinstance(target, str) or not target:
        target = "class" if _classes(model) else "output"
        others = [name for name in source.columns if name not in names] if source else []
        if target not in others and len(others) == 1:
            target = others[0]
            notes = [f"The model file does not name its target; assumed {target!r}."]
        elif target not in others and others:
            notes = [
                "The model file does not name its target. Columns that the model does not use: "
                f"{listed(map(repr, others))}."
            ]
    schema = _schema(model, names, target, _text_columns(model, names))
    return schema if source is None else schema.written_as(source.table_format), notes


def _schema(
    model: Any, names: list[str], target: str, texts: Mapping[str, list[str]] | None = None
) -> Schema:
    """Return the schema of a model whose columns are numbers, except those in `texts`."""
    columns = [
        Column(name, "category", tuple(texts[name]), of_numbers=True)
        if texts and name in texts
        else Column(name, "number")
        for name in names
    ]
    classes = _classes(model)
    return Schema(tuple(columns), target, "classification" if classes else "regression", classes)


def read_inputs(model: Any, source: Source) -> pl.DataFrame:
    """Read the columns that a model uses, converted to numbers and text as in training.

    Parameters
    ----------
    model : estimator
        A model that was trained by `quadric train` or fitted to a DataFrame.
    source : Source
        The table; see `open_table`.

    Returns
    -------
    DataFrame
        One row for each row of the table, for `model.predict`.

    Raises
    ------
    TableError
        If the table lacks a column, or contains text where the model expects a number.
    """
    schema, _ = schema_of_estimator(model, {}, source)
    check_inputs(schema, source.columns)
    return features(schema, source.read())


def _classes(model: Any) -> tuple[Any, ...]:
    """Return the classes as strings or integers; empty for regressors and multilabel models."""
    labels = classes_of(model)
    if labels is None or getattr(split(model)[1], "_is_multilabel", False):
        return ()
    return tuple(label if isinstance(label, str) else int(label) for label in labels.tolist())


def _text_columns(step: Any, names: list[str]) -> dict[str, list[str]]:
    """Return the categories of the text columns that a fitted step encodes."""
    parts = steps_of(step)
    if parts:  # a Pipeline: imputers, which may come first, keep the columns
        inner = [(part, names) for part in parts]
    elif hasattr(step, "transformers_"):  # a ColumnTransformer
        inner = [(part, _chosen(columns, names)) for _, part, columns in step.transformers_]
    else:
        texts = [
            [text for text in values if isinstance(text, str)]
            for values in getattr(step, "categories_", ())
        ]
        together = zip(names, texts, strict=True) if len(texts) == len(names) else ()
        return {name: values for name, values in together if values}
    return {
        name: values
        for part, columns in inner
        for name, values in _text_columns(part, columns).items()
    }


def _chosen(columns: Any, names: list[str]) -> list[str]:
    """Return the names of a ColumnTransformer's columns; empty if an earlier step renames them."""
    try:
        return [names[i] for i in Columns(len(names), names).indices(columns)]
    except (IndexError, KeyError, ValueError):
        return []
