"""A bare Network, such as one that was trained in torch, as a model of tables.

Its file may say which columns it takes and what it predicts, in what `save` keeps as `extra`:
``save(network, path, extra={"columns": [...], "classes": [...], "target": "species"})``. Without
"columns", the table's columns of numbers are its inputs, in their order.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.errors import TableError
from quadric.network import Network
from quadric.tables._profile import ColumnProfile, profile_batch
from quadric.tables._schema import Column, Schema
from quadric.tables._source import Source

BATCH = 20_000
MOST_SHOWN = 12


class TableNetwork:
    """A Network with what its file says of columns and classes, behind a classifier's methods.

    Parameters
    ----------
    network : Network
    extra : dict
        What was saved with it.
    source : Source, optional
        The table that it is used on.

    Attributes
    ----------
    network_ : Network
    classes_ : array or None
        By default 0, 1, ...; None where the last activation gives no probabilities.
    feature_names_in_ : list of str or None
        The columns that are its inputs: those that the file names, or else the table's.
    target : str
        What the column of predictions is called.
    notes : list of str
        In sentences, what was assumed.

    Raises
    ------
    TableError
        Where what the file says, or the table, does not fit the network.
    """

    def __init__(
        self, network: Network, extra: Mapping[str, Any], source: Source | None = None
    ) -> None:
        self.network_ = network
        self.n_features_in_ = n = network.n_inputs
        self.notes: list[str] = []
        last, m = network.activations[-1], network.n_outputs
        chooses = last in ("logistic", "softmax")
        count = 2 if last == "logistic" and m == 1 else m
        classes = _list_of(extra, "classes", count, "one a class", (str, int))
        if classes is not None and not chooses:
            raise TableError(
                f"the file names classes, but its network ends in {last!r}, which gives no "
                "probabilities. Save it anew with 'softmax' (or 'logistic') as last activation: "
                'to_network(model, activation="softmax").'
            )
        self.classes_ = np.array(classes or range(count)) if chooses else None
        self.target = extra.get("target", "class" if chooses else "output")
        if not isinstance(self.target, str) or not self.target:
            raise TableError(f"the file's 'target' must be a name. Got {self.target!r} instead.")
        self.feature_names_in_ = _list_of(extra, "columns", n, "one an input", (str,))
        if self.feature_names_in_ is None and source is not None:
            self.feature_names_in_ = numeric_columns(source, n)
            self.notes.append(
                "The model's file names no columns: the inputs are the table's columns of numbers, "
                f"in their order, {_shown(map(repr, self.feature_names_in_))}."
            )

    @property
    def schema(self) -> Schema | None:
        """What the network takes from a table, where that is known."""
        if self.feature_names_in_ is None:
            return None
        columns = tuple(Column(name, "number") for name in self.feature_names_in_)
        if self.classes_ is None:
            return Schema(columns, self.target, "regression")
        return Schema(columns, self.target, "classification", tuple(self.classes_.tolist()))

    def predict(self, X: Any) -> Array:
        """The classes, or the numbers; these have shape (rows, outputs) if there are several."""
        outputs = self._outputs(X)
        if self.classes_ is not None:
            return self.classes_[self._probabilities(outputs).argmax(axis=1)]
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, X: Any) -> Array:
        """The network's outputs as they are, one a class; of a single one also 1 less it."""
        return self._probabilities(self._outputs(X))

    def decision_function(self, X: Any) -> Array:
        """The pre-activations of the last layer, for pictures of regions."""
        return self.network_.logits(np.asarray(X, dtype=np.float64))

    def _probabilities(self, outputs: Array) -> Array:
        assert self.classes_ is not None
        if outputs.shape[1] == len(self.classes_):
            return outputs
        return np.hstack([1 - outputs, outputs])

    def _outputs(self, X: Any) -> Array:
        rows = np.nan_to_num(np.asarray(X, dtype=np.float64))  # rows with holes are left blank
        try:
            return self.network_.forward(rows)
        except ValueError:
            raise TableError(
                f"the table holds numbers so large (up to {np.abs(rows).max():g}) that the "
                f"network's output is not finite in {self.network_.dtype}. Scale its columns as "
                "they were scaled in training."
            ) from None


def numeric_columns(source: Source, n: int) -> list[str]:
    """The n columns of a table that hold numbers; TableError where there are more or fewer."""
    profiles = [ColumnProfile(name, most_values=0) for name in source.columns]
    rows = 0
    for frame in source.batches(BATCH):
        profile_batch(profiles, frame, rows)
        rows += len(frame)
    if not rows:
        raise TableError(f"{source.path} has no rows, only column names.")
    found, others = [], []
    for profile in profiles:
        why = "no name" if profile.name in source.unnamed else _no_numbers(profile)
        if why:
            others.append(f"{profile.name!r} ({why})")
        else:
            found.append(profile.name)
    if len(found) != n:
        rest = f"; no inputs are {_shown(others)}" if others else ""
        raise TableError(
            f"the network takes {n} numbers, and {source.path} has {len(found)} columns of numbers"
            f"{': ' if found else ''}{_shown(map(repr, found))}{rest}. Give a table of just the "
            "inputs, in their order, or save the network with their names: "
            'quadric.save(network, path, extra={"columns": [...]}).'
        )
    return found


def _no_numbers(profile: ColumnProfile) -> str:
    """Why a column is none of numbers; empty if it is one."""
    if not profile.present:
        return "all its values are missing"
    if profile.numeric == profile.present:
        return ""
    return "other values" if profile.odd is None else "{1!r} in row {0}".format(*profile.odd)


def _list_of(
    extra: Mapping[str, Any], key: str, count: int, what: str, types: tuple[type, ...]
) -> list[Any] | None:
    """What the file has under a key: so many different values of one type; None if nothing."""
    value = extra.get(key)
    if value is None:
        return None
    good = isinstance(value, list) and any(all(type(v) is t for v in value) for t in types)
    good = good and all(abs(v) < 2**63 for v in value if type(v) is int)
    if not good or len(value) != count or len(set(value)) < count:
        names = "names or whole numbers" if int in types else "names"
        shown = f"{len(value)} of them" if isinstance(value, list) else repr(value)
        raise TableError(
            f"the file's {key!r} must be a list of {count} different {names}, {what}. Got {shown} "
            "instead: save the network anew."
        )
    return value


def _shown(names: Iterable[str]) -> str:
    names = list(names)
    more = "" if len(names) <= MOST_SHOWN else f" and {len(names) - MOST_SHOWN} more"
    return ", ".join(names[:MOST_SHOWN]) + more
