"""Forged files: mutations of a model file with a valid hash."""

import copy
import random
import re
from unittest import mock

from quadric.errors import ModelFileError
from quadric.files import _safetensors as container
from tests.support import damage
from tests.support.forging import descriptions, tensors
from tests.support.forging.attacks import ATTACKS
from tests.support.forging.descriptions import RAW

MUTATIONS = descriptions.MUTATIONS + tensors.MUTATIONS
TRIES = 20


def forged(seed, originals):
    """Return the original, the content of a forged file, and a description of the changes.

    `seed` is a number, the name of an attack, or another string for damage without a valid hash.
    """
    if seed in ATTACKS:
        fixture, attack = ATTACKS[seed]
        original = next(file for file in originals if file.name == f"forgery_{fixture}")
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
        what = mutation(description, arrays, rng, (other.description, other.tensors))
        if what:
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
