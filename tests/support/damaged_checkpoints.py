"""Resume from thousands of damaged checkpoints.

    python -m tests.support.processes damaged_checkpoints COUNT SEED

This command prints, as JSON, how many were refused with a one-line error and how many gave the same
model. Any other outcome ends the process with an error. The same number of forged checkpoints, with
plausible values and a valid hash, is also tried. These may give a different model.
"""

import functools
import json
import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from quadric.apps.shell.tables._streaming import FORM
from quadric.errors import DivergenceError, ModelFileError, TableError
from quadric.files import _safetensors as container
from quadric.files._describe import describe
from quadric.files._safetensors import canonical
from tests.support.damage import OF_CONTAINERS, alter
from tests.support.streams import StopError, go, parameters, stop_after, write_table

ROWS = 300
STAGES = {"first": ("first pass", 2), "early": ("second pass", 3), "late": ("third pass", 1)}


class Originals:
    """A table, the model trained on it, and checkpoints of the run."""

    def __init__(self, directory):
        from quadric.apps.shell.tables import Stream

        self.table = write_table(directory / "table.csv", ROWS)
        self.path = self.table.with_suffix(".checkpoint")
        self.stream = Stream(buffer=50, epochs=2, every=1)
        whole = go(self.table, stream=self.stream)
        self.expected, self.bytes = parameters(whole), content_of(whole)
        self.contents = {}
        for name, (stage, calls) in STAGES.items():
            try:
                go(self.table, stream=self.stream, progress=stop_after(calls, stage))
            except StopError:
                self.contents[name] = self.path.read_bytes()

    def put(self, content):
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(content)

    def resume(self):
        return go(self.table, stream=self.stream, resume=True)

    def outcome_of(self, damage, seed):
        """Return 'refused' with the message, 'same', or 'another model'."""
        rng = random.Random(f"{damage.__name__} {seed}")
        content = self.contents[rng.choice(sorted(self.contents))]
        self.put(damage(content, rng, list(self.contents.values())))
        try:
            trained = self.resume()
        except TableError as error:
            return ("refused" if "\n" not in str(error) else "two lines"), str(error)
        except DivergenceError as error:
            return ("refused" if damage is forge else "diverged"), str(error)
        same = content_of(trained) == self.bytes
        return ("same" if same else "another model"), damage.__name__


def content_of(trained):
    """Return the model file that the command line would write."""
    extra = {"table": trained.schema.to_dict(), "report": trained.report}
    return container.to_bytes(*describe(trained.model, extra))


def parts(content):
    """Return the contents of a checkpoint: versions, run and state, arrays."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        description, arrays = container.read(file.name, FORM)
    arrays = {name: array.copy() for name, array in arrays.items()}
    return description, json.loads(arrays.pop("state").tobytes()), arrays


def whole(description, described, arrays):
    """Return a checkpoint with a valid hash."""
    state = (
        {}
        if described is None
        else {"state": np.frombuffer(canonical(described).encode(), dtype=np.uint8)}
    )
    try:
        return container.to_bytes(description, {**arrays, **state}, FORM)
    except ModelFileError:
        return b""


def changing(change, *, needs_arrays=False):
    """Return a damage that changes the run and state, and the arrays, of a checkpoint in place."""

    @functools.wraps(change)
    def damage(content, rng, others):
        checkpoints = (parts(each) for each in [content, *others])
        description, described, arrays = next(
            each for each in checkpoints if each[2] or not needs_arrays
        )
        change(described, arrays, rng)
        return whole(description, described, arrays)

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
    swapped = dict(arrays)
    arrays.clear()
    for name, array in swapped.items():
        first, _, rest = name.partition(".")
        arrays[f"{names[first]}.{rest}"] = array


def states_of_other_stages(content, rng, others):
    """Combine the state of one checkpoint with the arrays of another stage."""
    all_of_them = [parts(one) for one in others]
    without = [one for one in all_of_them if not one[2]]
    with_some = [one for one in all_of_them if one[2]]
    one, other = rng.choice(without), rng.choice(with_some)
    if rng.randrange(2):
        one, other = other, one
    return whole(one[0], one[1], other[2])


def parts_of(state, rng):
    """Return the state, and its schema and a column or a profile."""
    if "schema" in state:
        return [state, state["schema"], rng.choice(state["schema"]["columns"])]
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
        schema = state["schema"]
        match rng.randrange(5):
            case 0:
                schema["class_counts"][0] += rng.choice((-1, 1))
            case 1:
                schema["rows"] += 1
            case 2:
                schema["classes"].reverse()
            case 3:
                schema["columns"].pop()
            case 4:
                state["buffers"] = rng.choice((0, 10**6))
    else:
        profile = rng.choice(state["profiles"])
        match rng.randrange(4):
            case 0:
                profile["rows"] += 1
            case 1:
                profile["missing"] = profile["rows"] + 1
            case 2:
                profile["numeric"] = profile["rows"] + 1
            case 3:
                state["profiles"].pop()


@changing
def another_run(described, arrays, rng):
    run = described["run"]
    before = dict(run)
    run[rng.choice(sorted(run))] = rng.choice(("x", -3, [1], None, {}))
    if run == before:
        run["seed"] = 99


def no_state(content, rng, others):
    description, _, arrays = parts(content)
    if rng.randrange(2):
        return whole(description, None, arrays)
    arrays["state"] = rng.choice(
        (
            np.zeros(3),
            np.zeros(5, np.uint8),
            np.frombuffer(b"[" * 900, np.uint8),
            np.frombuffer(b'{"run":NaN,"state":{}}', np.uint8),
            np.frombuffer(b"[]", np.uint8),
        )
    )
    return whole(description, None, arrays)


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
    missing_array,
    extra_array,
    ill_shaped_array,
    array_of_another_dtype,
    numbers_that_are_not_finite,
    counters_out_of_range,
    negative_squares,
    swapped_models,
    states_of_other_stages,
    field_removed_or_added,
    value_of_another_type,
    counts_that_contradict,
    another_run,
    no_state,
)


def run(count, seed):
    result = {"refused": 0, "same": 0, "kinds": defaultdict(Counter), "forged": Counter()}
    with tempfile.TemporaryDirectory() as directory:
        originals = Originals(Path(directory))
        for i in range(count):
            damage = DAMAGES[i % len(DAMAGES)]
            outcome, said = originals.outcome_of(damage, f"{seed} {i}")
            assert outcome in ("refused", "same"), (said, seed, i)
            result[outcome] += 1
            result["kinds"][damage.__name__][outcome] += 1
        for i in range(count):
            outcome, _ = originals.outcome_of(forge, f"{seed} {i}")
            result["forged"][outcome] += 1
    return result
