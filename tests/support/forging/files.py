"""The original model files (of fitted models, `quadric train` and format 1), and forged files.

A forged file is an original with mutations and a valid hash, or an attack: a forgery of a kind that
once did harm, which changes the description and the tensors of an original in place.
"""

import contextlib
import copy
import random
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

import quadric
from quadric.errors import ModelFileError
from quadric.files import _safetensors as container
from quadric.files._describe import encode_array
from tests.support import damage
from tests.support.fitted_models import MODELS, make, table
from tests.support.fixtures import FIXTURES
from tests.support.forging.mutations import MUTATIONS, RAW

FEW = (
    "network quadratic float64",
    "network reduced float32",
    "classes objects",
    "multi-label",
    "class weights",
    "logistic",
    "partial fit",
    "min max",
    "pca",
    "imputer",
    "encoder",
    "columns, rest scaled",
    "columns by number",
    "rare categories",
    "given categories",
    "target encoding",
)
TRAINED = {"trained": "sign", "trained on numbers": "size", "trained on colours": "colour"}
FOR_TABLES = ("table columns", "target encoding", *TRAINED)  # read, and encode in all ways
NAMES = {"columns": [*"abcd"], "classes": ["large", "small"], "target": "y"}  # of a bare network
SMALL_SEEDS = 10**6
TRIES = 20


class Original(NamedTuple):
    """The content of a file, inputs for its model, and the predictions."""

    name: str
    description: dict[str, Any]
    tensors: dict[str, Any]
    X: Any
    y: Any


def originals(seed):
    """Return all models and fixtures; for seeds below a million, only a few of the models."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        for name in FEW if seed < SMALL_SEEDS else MODELS:
            model, X = make(name)
            quadric.save(model, path, extra=NAMES if name == FEW[0] else None)
            found.append(_original(name, path, X))
        for name, target in TRAINED.items() if seed >= SMALL_SEEDS else [("trained", "sign")]:
            found.append(_original(name, path, train(path, target)))
    for path in sorted(FIXTURES.glob("*.quadric")):
        found.append(_original(path.stem, path, None))
    return found


def train(path, target):
    """Write a file with `quadric train`, which includes the description of the table."""
    frame = table()[0][["size", "colour"]].assign(
        price=[f"${1000 + 37 * i:,}.50" for i in range(90)],
        sold=pd.date_range("2024-01-01", periods=90, freq="29h").strftime("%d.%m.%Y %H:%M"),
        sent=pd.date_range("2024-01-01", periods=90, freq="7h").strftime("%Y-%m-%d %H:%M+02:00"),
        town=[f"town {i * 7 % 12}" for i in range(90)],  # encoded by the target
        answer=[["low", "medium", "high"][i * 5 % 3] for i in range(90)],  # ordinal
    )
    frame["sign"] = np.where(frame["size"] > 0, "+", "-")
    data = path.with_suffix(".csv")
    frame.to_csv(data, index=False)
    # in a process, because it starts threads, which make a fork unsafe
    options = ["--hidden", "2", "--max-categories", "8", "--drop", "sign" * (target != "sign")]
    arguments = ["train", data, "-t", target, *options, "-o", path]
    subprocess.run([sys.executable, "-m", "quadric", *arguments], check=True, capture_output=True)
    return frame.drop(columns={"sign", target})


def _original(name, path, X):
    model = quadric.load(path)
    X = _inputs(model) if X is None else X
    return Original(
        name, *container.read(path), X, model.predict(X) if hasattr(model, "predict") else None
    )


def _inputs(model):
    frame = table()[0]
    if set(getattr(model, "feature_names_in_", ["none"])) <= set(frame):
        return frame[list(model.feature_names_in_)]
    n = getattr(model, "n_features_in_", getattr(model, "n_inputs", None))
    return np.random.default_rng(0).normal(size=(20, n))


# ---- attacks -------------------------------------------------------------------------------

FAR = 10**8
CACHE = "/tmp/quadric_forged_cache"
NESTED = [[[[[[[[[]]]]]]]]]


def step_of(description, way):
    """Return the description of a step, given its index in the pipeline and in inner steps."""
    found = description["model"]
    for place in way:
        steps = found["facts"].get("transformers") or found["parameters"]["steps"]
        found = steps[place]["items"][1]
    return found


def facts(way, description, tensors, **values):
    step_of(description, way)["facts"].update(values)


def parameters(way, description, tensors, **values):
    step_of(description, way)["parameters"].update(values)


def rare_categories(description, tensors, **arrays):
    for name, values in arrays.items():
        described = encode_array(np.array(values), name, tensors, None)
        facts([0], description, tensors, **{name: [described, None]})


def mapping_of_rare_categories(value, description, tensors):
    name = next(name for name in tensors if ".infrequent." in name)
    tensors[name] = np.full_like(tensors[name], value)


def lists_in_a_parameter(description, tensors):
    """Loading took 20 times the file's size in memory: the lists were parsed and then copied."""
    parameters([2], description, tensors, hidden_layer_sizes=[NESTED] * 4400)
    tensors["steps.2.loss_curve_"] = np.zeros(36_000)


def lists_beside_texts(description, tensors):
    """Short strings take eight times their size in memory; the header took eight times the file."""
    texts = encode_array(np.array(["\u0100"] * 20_000, dtype=object), "texts", tensors, None)
    facts([0], description, tensors, feature_names_in_=texts)
    description["extra"] = {"lists": [[[]]] * 8_000}


def shorter_encoding(description, tensors):
    name = next(name for name in tensors if ".encodings_." in name)
    tensors[name] = tensors[name][:1]


ATTACKS = {
    # `predict` wrote outside its memory
    "outputs far apart": ("encoder", partial(facts, [0], _n_features_outs=[FAR, 5 - FAR])),
    "outputs far apart in columns": (
        "rare categories",
        partial(facts, [0, 1], _n_features_outs=[FAR, 6 - FAR]),
    ),
    # `predict` read and wrote outside its memory
    "rare categories from nowhere": (
        "encoder",
        partial(rare_categories, infrequent=[0], _default_to_infrequent_mappings=[FAR, 0, 1]),
    ),
    "rare categories out of range": ("encoder", partial(rare_categories, infrequent=[FAR])),
    "mapping of rare categories": ("rare categories", partial(mapping_of_rare_categories, 2**40)),
    "negative mapping of rare categories": (
        "rare categories",
        partial(mapping_of_rare_categories, -FAR),
    ),
    # `predict` would look up categories that have no number
    "an encoding of fewer categories": ("target encoding", shorter_encoding),
    "encodings for fewer classes": (
        "target encoding",
        partial(facts, [0, 1, 0], target_type_="binary"),
    ),
    "folds without end": ("target encoding", partial(parameters, [0, 1, 0], cv=FAR)),
    # `clone(model).fit` used a cache chosen by the attacker and executed its contents
    "cache of a pipeline": ("pca", partial(parameters, [], memory=CACHE)),
    "cache of an inner pipeline": (
        "columns, rest scaled",
        partial(parameters, [0, 0], memory=CACHE),
    ),
    # `predict` started 42 processes
    "many processes": ("columns, rest scaled", partial(parameters, [0], n_jobs=40)),
    # `explain` built names until memory was exhausted
    "names without end": ("pca", partial(facts, [0], n_features_in_=2**63 - 1)),
    "lists in a parameter": ("pca", lists_in_a_parameter),
    "lists beside texts": ("pca", lists_beside_texts),
}


# ---- forged files --------------------------------------------------------------------------


def forged(seed, originals):
    """Return the original, the content of a forged file, and a description of the changes.

    `seed` is a number, the name of an attack, or another string for damage without a valid hash.
    """
    if seed in ATTACKS:
        name, attack = ATTACKS[seed]
        original = next(file for file in originals if file.name == name)
        description, arrays = copy.deepcopy(original.description), dict(original.tensors)
        attack(description, arrays)
        return original, seal(description, arrays), [f"attack: {seed}"]
    rng = random.Random(seed)
    if isinstance(seed, str):
        original, other = rng.choice(originals), rng.choice(originals)
        change = rng.choice(damage.OF_MODELS)
        contents = [seal(file.description, file.tensors) for file in (original, other)]
        return original, change(contents[0], rng, contents[1:]), [f"damage: {change.__name__}"]
    while True:
        original, other = rng.choice(originals), rng.choice(originals)
        content, said = _mutated(original, other, rng)
        if content is not None and said:
            return original, content, said


def _mutated(original, other, rng):
    description, arrays = copy.deepcopy(original.description), dict(original.tensors)
    said, wanted = [], rng.choice((1, 1, 1, 1, 2, 2, 3, 5))
    for _ in range(TRIES):
        mutation = rng.choice(MUTATIONS)
        with contextlib.suppress(IndexError):  # there is nothing that it could change
            what = mutation(description, arrays, rng, (other.description, other.tensors))
            said.append(f"{mutation.__name__}: {what}")
        if len(said) == wanted or not arrays or not description:
            break
    return seal(description, arrays), said


def seal(description, arrays):
    """Return the bytes of a file with a valid hash, or None if no such file can be written.

    A string that begins with `RAW` is written as the number that follows, for example 1e999, which
    is read as infinity.
    """
    canonical = container.canonical

    def raw(value):
        return re.sub(rf'"\\u{ord(RAW):04x}([^"]*)"', r"\1", canonical(value))

    unchecked = mock.patch.object(container, "_is_affordable")  # an attacker skips this check
    with mock.patch.object(container, "canonical", raw), unchecked:
        try:
            return container.to_bytes(description, arrays)
        except (ModelFileError, RecursionError):
            return None
