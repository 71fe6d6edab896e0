"""The scores and spectra of models, kept for further calls with the same model."""

import threading
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from quadric.certify._model import Classifier, Coordinates
from quadric.certify._scores import class_scores
from quadric.certify._search import Search
from quadric.checks import Array
from quadric.geometry import AffineMap
from quadric.network import Network

MOST_SEARCHES = 4  # for one model: one for each set of free inputs and units
MOST_BYTES = 2**28  # of the eigenvectors of a search that is kept


class Prepared:
    """What certificates need from a model besides the row.

    Parameters
    ----------
    classifier, inputs : Classifier and Coordinates
        The model.
    """

    def __init__(self, classifier: Classifier, inputs: Coordinates) -> None:
        self.state = _state(classifier.network, inputs)
        self.scores = class_scores(classifier, inputs)
        self._searches: dict[bytes, Search] = {}
        self._lock = threading.Lock()

    def search(self, free: Array, sizes: Array) -> Search:
        """The search with these free coordinates and units, made once."""
        key = free.tobytes() + sizes.tobytes()
        with self._lock:
            if (known := self._searches.get(key)) is not None:
                return known
        made, K = Search(self.scores, free, sizes), len(self.scores.b)
        if 8 * len(free) ** 2 * (K * (K - 1) // 2) <= MOST_BYTES:
            with self._lock:
                self._searches[key] = made
                while len(self._searches) > MOST_SEARCHES:
                    del self._searches[next(iter(self._searches))]
        return made


_known: WeakKeyDictionary[Network, Prepared] = WeakKeyDictionary()
_lock = threading.Lock()


def prepare(classifier: Classifier, inputs: Coordinates) -> Prepared:
    """What certificates need from a model, made anew if any number of the model has changed."""
    with _lock:
        known = _known.get(classifier.network)
    if known is not None and _is_same(known.state, _state(classifier.network, inputs, copy=False)):
        return known
    made = Prepared(classifier, inputs)
    with _lock:
        _known[classifier.network] = made
    return made


def _state(network: Network, inputs: Coordinates, *, copy: bool = True) -> list[Any]:
    """Everything that scores and their rounding errors depend on: arrays, and other values."""
    arrays = [array for layer in network.layers for array in layer.arrays().values()]
    others: list[Any] = [[type(layer) for layer in network.layers], network.activations]
    for field in fields(inputs):
        value = getattr(inputs, field.name)
        if isinstance(value, AffineMap):
            arrays += value
        elif isinstance(value, np.ndarray):
            arrays.append(value)
        elif field.name != "space":  # names and functions; the maps are in `change`
            others.append(value)
    return [others, *(array.copy() if copy else array for array in arrays)]


def _is_same(known: list[Any], now: list[Any]) -> bool:
    if known[0] != now[0] or len(known) != len(now):
        return False
    pairs = zip(known[1:], now[1:], strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
