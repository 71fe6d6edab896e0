"""Damaged checkpoints of a streaming run, and forged ones.

A damaged checkpoint must be refused with a one-line error or give the same model. A forged one,
with plausible values and a valid hash, may also give a different model.
"""

import functools
import json
import random
import re
import tempfile
from pathlib import Path

import numpy as np

from quadric.apps.shell.tables import Stream
from quadric.apps.shell.tables._streaming import FORM
from quadric.errors import DivergenceError, ModelFileError, TableError
from quadric.files import _safetensors as container
from quadric.files._describe import describe
from tests.support.damage import OF_CONTAINERS, alter
from tests.support.tables import StopError, go, stop_after, write_table

ROWS = 300
STAGES = (("first pass", 2), ("second pass", 3), ("third pass", 1))


class Originals:
    """A table, the model trained on it, and checkpoints of the run."""

    def __init__(self, directory):
        self.table = write_table(directory / "table.csv", ROWS)
        self.path = self.table.with_suffix(".checkpoint")
        self.stream = Stream(buffer=50, epochs=2, every=1)
        self.model = content_of(go(self.table, stream=self.stream))
        self.contents = []
        for stage, calls in STAGES:
            try:
                go(self.table, stream=self.stream, progress=stop_after(calls, stage))
            except StopError:
                self.contents.append(self.path.read_bytes())

    def damaged(self, damage, seed):
        rng = random.Random(f"{damage.__name__} {seed}")
        return damage(rng.choice(self.contents), rng, self.contents)

    def outcome_of(self, content):
        """Resume from a checkpoint; return 'refused' or 'diverged' and the message, or the model.

        The model is 'same' or 'another model'.
        """
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(content)
        try:
            trained = go(self.table, stream=self.stream, resume=True)
        except TableError as error:
            return "refused", str(error)
        except DivergenceError as error:
            return "diverged", str(error)
        return "same" if content_of(trained) == self.model else "another model", ""


def content_of(trained):
    """Return the model file that the command line would write."""
    extra = {"table": trained.schema.to_dict(), "report": trained.report}
    return container.to_bytes(*describe(trained.model, extra))


def parts(content):
    """Return the contents of a checkpoint: versions, arrays, and run and state."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        description, arrays = container.read(file.name, FORM)
    arrays = {name: array.copy() for name, array in arrays.items()}
    return description, arrays, json.loads(arrays.pop("state").tobytes())


def whole(description, arrays, described=None):
    """Return a checkpoint with a valid hash; without run and state if they are not given."""
    if described is not None:
        text = container.canonical(described).encode()
        arrays = {**arrays, "state": np.frombuffer(text, dtype=np.uint8)}
    try:
        return container.to_bytes(description, arrays, FORM)
    except ModelFileError:
        return b""


def changing(change, *, needs_arrays=False):
    """Return a damage that changes the run and state, and the arrays, of a checkpoint in place."""

    @functools.wraps(change)
    def damage(content, rng, others):
        checkpoints = (parts(each) for each in [content, *others])
        description, arrays, described = next(
            each for each in checkpoints if each[1] or not needs_arrays
        )
        change(described, arrays, rng)
        return whole(description, arrays, described)

    return damage


changing_arrays = functools.partial(changing, needs_arrays=True)


@changing_arrays
def missing_array(described, arrays, rng):
    for _ in range(rng.choice((1, 1, 3, len(arrays)))):
        del arrays[rng.choice(sorted(arrays))]


@changing
def extra_array(described, arrays, rng):
    name = rng.choice(("more", "model.more", "model.memory.mean.99", "linear.layers.7.W", "x.loss"))
    arrays[name] = np.zeros(rng.randrange(4))


@changing_arrays
def ill_shaped_array(described, arrays, rng):
    name = rng.choice([name for name in sorted(arrays) if arrays[name].size])
    array = arrays[name]
    arrays[name] = rng.choice(
        (array.ravel()[:-1], array[..., None], array[None], np.concatenate([array, array]).T)
    )


@changing_arrays
def array_of_another_dtype(described, arrays, rng):
    name = rng.choice(sorted(arrays))
    arrays[name] = arrays[name].view("<i8") if rng.randrange(2) else arrays[name].astype("<f4")


@changing_arrays
def numbers_that_are_not_finite(described, arrays, rng):
    names = [name for name in sorted(arrays) if arrays[name].size and "numbers" not in name]
    array = arrays[rng.choice(names)].reshape(-1)
    array[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, -np.inf))


@changing_arrays
def counters_out_of_range(described, arrays, rng):
    """Set a counter to an invalid value; counters for which any value is valid are not used."""
    name = rng.choice(("model.numbers", "linear.numbers"))
    place = rng.choice([2, 3, 4, 5, 6, 8, 9, 10])
    arrays[name][place] = rng.choice((-1.0, -0.5, np.inf, -np.inf, -1e300))


@changing_arrays
def negative_squares(described, arrays, rng):
    name = rng.choice([name for name in sorted(arrays) if ".square." in name])
    arrays[name].reshape(-1)[0] = -1.0


@changing_arrays
def swapped_models(described, arrays, rng):
    """Use the arrays of the baseline as those of the model, and vice versa."""
    names = {"model": "linear", "linear": "model"}
    swapped = {
        re.sub("^[a-z]+", lambda first: names[first[0]], name): array
        for name, array in arrays.items()
    }
    arrays.clear()
    arrays.update(swapped)


def states_of_other_stages(content, rng, others):
    """Combine the state of one checkpoint with the arrays of another stage."""
    checkpoints = [parts(other) for other in others]
    pair = [
        rng.choice([one for one in checkpoints if bool(one[1]) is has_arrays])
        for has_arrays in (False, True)
    ]
    rng.shuffle(pair)
    return whole(pair[0][0], pair[1][1], pair[0][2])


def parts_of(state, rng):
    """Return the state, and its schema and a column or a profile."""
    if "schema" in state:
        return [state, state["schema"], state["schema"]["columns"]]
    return [state, rng.choice(state["profiles"])]


@changing
def field_removed_or_added(described, arrays, rng):
    """Change the state, the schema, a column, a profile or the run."""
    state = described["state"]
    node = rng.choice([*parts_of(state, rng), described["run"], described])
    if rng.randrange(2):
        del node[rng.choice(sorted(node))]
    else:
        node["more"] = rng.choice((None, 1, "x", []))
    if "schema" in state and "order" not in state["schema"]:
        node["more"] = 1  # optional in a model file


@changing
def value_of_another_type(described, arrays, rng):
    node = rng.choice(parts_of(described["state"], rng))
    key = rng.choice(sorted(node))
    node[key] = rng.choice(
        [
            junk
            for junk in ([[]], {"a": {}}, -7, -1.5, 10**300, [None])
            if type(junk) is not type(node[key]) or junk == -7
        ]
    )
    if key in ("m2", "mean", "target_mean") and node[key] in (-7, -1.5):
        node[key] = "x"


@changing
def counts_that_contradict(described, arrays, rng):
    state = described["state"]
    if "schema" in state:
        schema, (first, *rest) = state["schema"], state["schema"]["class_counts"]
        changes = [
            (schema, {"class_counts": [first + rng.choice((-1, 1)), *rest]}),
            (schema, {"rows": schema["rows"] + 1}),
            (schema, {"classes": schema["classes"][::-1]}),
            (schema["columns"], {"name": schema["columns"]["name"][:-1]}),
            (state, {"buffers": rng.choice((0, 10**6))}),
        ]
    else:
        profile = rng.choice(state["profiles"])
        more = profile["rows"] + 1
        changes = [
            *((profile, {name: more}) for name in ("rows", "missing", "numeric")),
            (state, {"profiles": state["profiles"][:-1]}),
        ]
    node, change = rng.choice(changes)
    node.update(change)


@changing
def another_run(described, arrays, rng):
    run = described["run"]
    before = dict(run)
    run[rng.choice(sorted(run))] = rng.choice(("x", -3, [1], None, {}))
    if run == before:
        run["seed"] = 99


def no_state(content, rng, others):
    description, arrays, _ = parts(content)
    texts = (b"\0" * 5, b"[" * 900, b'{"run":NaN,"state":{}}', b"[]")
    states = [np.zeros(3), *(np.frombuffer(text, np.uint8) for text in texts)]
    arrays |= rng.choice([{}, {"state": rng.choice(states)}])
    return whole(description, arrays)


@changing
def forge(described, arrays, rng):
    """Replace one value in the state with another, or one number in the arrays."""
    if arrays and rng.randrange(4) == 0:
        array = arrays[rng.choice([name for name in sorted(arrays) if arrays[name].size])]
        array.reshape(-1)[0] *= rng.choice((-1, 0, 2, 1e9, 1e200))
    else:
        alter(described["state"], rng)


DAMAGES = (
    *OF_CONTAINERS,
    *(missing_array, extra_array, ill_shaped_array, array_of_another_dtype),
    *(numbers_that_are_not_finite, counters_out_of_range, negative_squares, swapped_models),
    *(states_of_other_stages, field_removed_or_added, value_of_another_type),
    *(counts_that_contradict, another_run, no_state),
)
