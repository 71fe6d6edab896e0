"""Mutations of a description, which can be any tree of JSON.

A mutation takes the description, the tensors, a random generator and the description and tensors of
another file. It changes the first two in place and returns a description of the change, or None if
it does not apply. It does not depend on the format of the file. It only assumes that a string that
is the name of a tensor refers to this tensor, that lists of equal length belong together, and that
integers are sizes or indices.
"""

import contextlib
import copy
import functools
import json

from tests.support.forging.trees import pick, places, put, short, whole

RAW = "\1"  # marks a number that JSON allows but Python's json does not write
SIZES = (
    0,
    -1,
    1,
    2,
    3,
    7,
    100,
    255,
    4096,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    -(2**63),
    10**30,
    -(10**30),
    0.5,
    1.0,
    1e300,
    True,
    False,
)
FLOATS = (
    0.0,
    -0.0,
    -1.0,
    1e-320,
    1e-30,
    1e30,
    1e154,
    1e300,
    -1e300,
    3,
    10**30,
    True,
    f"{RAW}1e999",
    f"{RAW}-1e999",
    f"{RAW}1E5",
)
WORDS = (
    "",
    " ",
    "a",
    "x0",
    "passthrough",
    "drop",
    "remainder",
    "auto",
    "None",
    "nan",
    "inf",
    "object",
    "float32",
    "float64",
    "int64",
    "bool",
    "<U3",
    "<U0",
    "O",
    "softmax",
    "identity",
    "quadratic",
    "linear",
    "multilabel-indicator",
    "multiclass",
    "binary",
    "constant",
    "ignore",
    "error",
    "infrequent_if_exist",
    "first",
    "pandas",
    "polars",
    "default",
    "os.system",
    "builtins.eval",
    "__class__",
    "../../etc/passwd",
    "/tmp/x",
    "\ud800",
    "\x1b[31m",
    "\0",
    "$\\frac{a}$",
    "a" * 3000,
)
JUNK = (
    None,
    True,
    -1,
    0,
    2.5,
    "",
    "text",
    [],
    {},
    [[]],
    [None],
    [1, 2, 3],
    {"a": 1},
    [[], {}],
    {"type": "fitted"},
    {"tensor": 1},
    {"type": []},
)
# names of public and private parameters and attributes, with values that an attacker might use
NAMED = {
    "memory": ("/tmp/x", {"location": "/tmp/x"}),
    "n_jobs": (40, -1, 2**31),
    "verbose": (True, 100),
    "func": ("os.system", "len"),
    "inverse_func": ("os.system",),
    "kw_args": ({"a": 1},),
    "feature_name_combiner": ("os.system", "concat"),
    "transform_input": (["X"], "X"),
    "_infrequent_enabled": (True, 1),
    "_n_features_outs": ([10**8, 5 - 10**8], [3]),
    "_default_to_infrequent_mappings": ([[0] * 9], None),
    "_infrequent_indices": ([[0], [1]],),
    "_drop_idx_after_grouping": ([0, 0], [10**9]),
    "drop_idx_": ([0, 0], [None, 10**9]),
    "n_features_in_": (2**63 - 1, 0, -1, 2**31),
    "_n_features": (2**63 - 1, 0),
    "_sklearn_output_config": ({"transform": "pandas"}, {"transform": "os"}),
    "_fit_dtype": ("float64", "O"),
    "_fill_dtype": ("O",),
    "_state": ({},),
    "_alpha": (-1.0, "x"),
    "_solver": ("x",),
    "_columns": ([["a"]],),
    "_remainder": (["remainder", "drop", []],),
    "_name_to_fitted_passthrough": ({},),
    "_label_binarizer": (None, {}),
    "classes_": ([], None),
    "__class__": ("str", "os"),
    "__dict__": ({"network_": 1},),
    "__init__": ("x",),
    "__setstate__": ({},),
    "predict": (1, "os.system"),
    "network_": (None, {}),
    "clip": (True,),
    "whiten": (True,),
    "warm_start": (True,),
    "random_state": (2**70, -1, "x"),
    "copy": (False, 0),
    "max_categories": (1, -1),
    "min_frequency": (10**9, -1, 2.5),
    "sparse_output": (True, 7),
    "sparse_threshold": (-1, 2, "x"),
    "with_mean": (False,),
    "with_std": (False,),
    "add_indicator": (True,),
    "missing_values": ("a", 0, None),
    "keep_empty_features": (True,),
    "strategy": ("constant", "x"),
    "fill_value": ("a", [1]),
    "handle_unknown": ("warn", "x"),
    "drop": ("first", "if_binary", [0]),
    "categories": ([["a"]], [[3, 1, 2]]),
    "transposed": (True,),
    "others": ([[0, 1]], [[-1, 0]], [[0, [0]]]),
    "length": (0, 10**9),
    "feature_range": ([1, 0], [0, 10**400]),
    "remainder": ("passthrough", {}),
    "transformer_weights": ({"a": 1e300}, [1]),
    "hidden_layer_sizes": ([10**6], 10**9, [[]]),
    "class_weight": ({"a": -1},),
    "dtype": ("float16",),
}


def at(wanted=lambda value: True):
    """Return a decorator: the mutation gets a random place with such a value, if there is any."""

    def decorator(change):
        @functools.wraps(change)
        def mutation(description, tensors, rng, other):
            place = pick(description, rng, wanted)
            return place and change(place, place[0][place[1]], rng, description, other)

        return mutation

    return decorator


def some(kind):
    return lambda value: isinstance(value, kind) and value


@at(whole)
def sizes(place, value, rng, description, other):
    near = (value + 1, value - 1, -value, 1000 * value, str(value), [value])
    if abs(value) < 10**300:
        near += (float(value),)
    return put(place, rng.choice(SIZES + near))


@at(lambda value: type(value) is float)
def floats(place, value, rng, description, other):
    return put(place, rng.choice((*FLOATS, -value)))


@at(lambda value: value is None or type(value) is bool)
def flags(place, value, rng, description, other):
    return put(place, rng.choice((True, False, None, 1, 0, "True", [], 40)))


@at(lambda value: type(value) is str)
def words(place, value, rng, description, other):
    """Replace a string with another one, from a list or from elsewhere in the files."""
    elsewhere = pick(rng.choice((description, other[0])), rng, lambda value: type(value) is str)
    choices = [rng.choice(WORDS)]
    if elsewhere is not None:
        choices += [elsewhere[0][elsewhere[1]]] * 2
    return put(place, rng.choice(choices))


def _tuple(items):
    return {"type": "tuple", "items": items}


@at()
def types(place, value, rng, description, other):
    """Replace a value with one of another type: a string, a number, a list, a dict or null."""
    turned = [str(value), [value], {"value": value}]
    if isinstance(value, dict):
        turned += [list(value.values()), list(map(list, value.items()))]
    if isinstance(value, list):
        turned += [{str(i): inner for i, inner in enumerate(value)}, _tuple(value)]
    return put(place, rng.choice((*JUNK, *turned)))


@at()
def nesting(place, value, rng, description, other):
    """Wrap a value once or many times, or unwrap it."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.5:
        inner = rng.choice(list(value.values()) if isinstance(value, dict) else value)
        return put(place, inner)
    shape = rng.choice(("list", "dict", "tuple"))
    for _ in range(rng.choice((1, 1, 2, 40, 60, 100))):
        value = {"list": [value], "dict": {"a": value}, "tuple": _tuple([value])}[shape]
    return put(place, value)


@at(some(list))
def lists(place, value, rng, description, other):
    """Repeat, remove, swap or reorder entries; empty a list or make it many times longer."""
    value = list(value)
    i, j = rng.randrange(len(value)), rng.randrange(len(value))
    match rng.randrange(7):
        case 0:
            value.insert(j, copy.deepcopy(value[i]))
        case 1:
            value[j] = copy.deepcopy(value[i])
        case 2:
            del value[i]
        case 3:
            value[i], value[j] = value[j], value[i]
        case 4:
            value.reverse()
        case 5:
            value = []
        case 6:
            value = value * rng.choice((2, 3, 300))
    return put(place, value)


@at(lambda value: isinstance(value, list) and len(value) > 1 and all(map(whole, value)))
def same_sum(place, value, rng, description, other):
    """Move numbers of a list far apart without changing their sum."""
    value, far = list(value), rng.choice((1, 2, 1000, 10**8, 2**31, 2**62))
    i, j = rng.sample(range(len(value)), 2)
    value[i], value[j] = value[i] + far, value[j] - far
    return put(place, value)


@at(some(list))
def partners(place, value, rng, description, other):
    """Remove or duplicate the same entry in all lists of equal length, consistently."""
    length = len(value)
    i, lose = rng.randrange(length), rng.random() < 0.5
    alike = [
        holder[key]
        for holder, key, _ in places(description)
        if isinstance(holder[key], list) and len(holder[key]) == length
    ]
    for found in alike:
        if lose:
            del found[i]
        else:
            found.insert(i, copy.deepcopy(found[i]))
    return f"entry {i} of {len(alike)} lists of length {length} {'lost' if lose else 'doubled'}"


@at()
def remove(place, value, rng, description, other):
    del place[0][place[1]]
    return f"{place[2]} removed"


@at(some(dict))
def rename(place, holder, rng, description, other):
    old = rng.choice(list(holder))
    strange = pick(other[0], rng, some(dict))
    new = rng.choice([*NAMED, old + "_", "_" + old, *strange[0][strange[1]]])
    holder[new] = holder.pop(old)
    return f"{place[2]}: {old} renamed {new}"


def add_names(description, tensors, rng, other):
    """Set a parameter or attribute that an attacker might use, existing or new."""
    name = rng.choice(list(NAMED))
    value = copy.deepcopy(rng.choice(NAMED[name]))
    there = [place for place in places(description) if place[1] == name]
    if there and rng.random() < 0.7:
        return put(rng.choice(there), value)
    place = pick(description, rng, lambda value: isinstance(value, dict))
    if place is None:
        return None
    place[0][place[1]][name] = value
    return f"{place[2]} gets {name}={short(value)}"


def swap_subtrees(description, tensors, rng, other):
    """Swap two parts of a file, or copy one to the place of the other."""
    kind = rng.choice((dict, list, str, int))
    first, second = (pick(description, rng, lambda v: isinstance(v, kind)) for _ in range(2))
    if first is None or second is None:
        return None
    a, b = copy.deepcopy(first[0][first[1]]), copy.deepcopy(second[0][second[1]])
    first[0][first[1]] = b
    if rng.random() < 0.5:
        with contextlib.suppress(IndexError):  # one was inside the other
            second[0][second[1]] = a
    return f"{first[2]} and {second[2]} swapped"


def borrow(description, tensors, rng, other):
    """Copy a part of another file, with the tensors that it needs."""
    kind = rng.choice((dict, dict, dict, list))
    place = pick(description, rng, lambda value: isinstance(value, kind))
    source = pick(other[0], rng, lambda value: isinstance(value, kind))
    if place is None or source is None:
        return None
    value = copy.deepcopy(source[0][source[1]])
    text = json.dumps(value)
    for name, array in other[1].items():
        needed = json.dumps(name) in text or name.startswith("layers.") or rng.random() < 0.1
        if needed and (name not in tensors or rng.random() < 0.7):
            tensors[name] = array
    return put(place, value)


def tensor_names(description, tensors, rng, other):
    """Duplicate or swap references to tensors, or change the name in a reference."""
    first, second = (
        pick(description, rng, lambda value: type(value) is str and value in tensors)
        for _ in range(2)
    )
    if first is None:
        return None
    a, b = first[0][first[1]], second[0][second[1]]
    match rng.randrange(4):
        case 0:
            return put(first, b)
        case 1:
            return f"{put(first, b)}, {put(second, a)}"
        case 2:
            return put(first, rng.choice(list(tensors)))
        case 3:
            if rng.random() < 0.7:
                tensors["elsewhere"] = tensors.pop(a)
            return put(first, "elsewhere")


def formats(description, tensors, rng, other):
    description["format"] = rng.choice((1, 2, 3, 0, -1, 1.0, True, "1", None, 10**30))
    return f"format {description['format']!r}"


MUTATIONS = (
    sizes,
    sizes,
    sizes,
    floats,
    flags,
    flags,
    words,
    words,
    types,
    types,
    nesting,
    lists,
    lists,
    lists,
    same_sum,
    partners,
    remove,
    remove,
    rename,
    add_names,
    add_names,
    add_names,
    swap_subtrees,
    swap_subtrees,
    borrow,
    borrow,
    borrow,
    tensor_names,
    formats,
)
