"""Mutations of the description, which can be any tree of JSON, and of the tensors of a model file.

A mutation takes the description, the tensors, a random generator and the description and tensors of
another file. It changes the first two in place and returns a description of the change. It raises
an IndexError if there is nothing that it could change. It does not depend on the format of the
file. It only assumes that a string that is the name of a tensor refers to this tensor, that lists
of equal length belong together, and that integers are sizes or indices.
"""

import contextlib
import copy
import functools
import json

import numpy as np

RAW = "\1"  # marks a number that JSON allows but Python's json does not write
SIZES = (
    *(0, -1, 1, 2, 3, 7, 100, 255, 4096, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)),
    *(10**30, -(10**30), 0.5, 1.0, 1e300, True, False),
)
FLOATS = (
    *(0.0, -0.0, -1.0, 1e-320, 1e-30, 1e30, 1e154, 1e300, -1e300, 3, 10**30, True),
    *(f"{RAW}1e999", f"{RAW}-1e999", f"{RAW}1E5"),
)
WORDS = (
    *("", " ", "a", "x0", "passthrough", "drop", "remainder", "auto", "None", "nan", "inf"),
    *("object", "float32", "float64", "int64", "bool", "<U3", "<U0", "O", "softmax", "identity"),
    *("quadratic", "linear", "multilabel-indicator", "multiclass", "binary", "constant", "ignore"),
    *("error", "infrequent_if_exist", "first", "pandas", "polars", "default", "os.system"),
    *("builtins.eval", "__class__", "../../etc/passwd", "/tmp/x", "\ud800", "\x1b[31m", "\0"),
    *("$\\frac{a}$", "a" * 3000),
)
JUNK = (
    *(None, True, -1, 0, 2.5, "", "text", [], {}, [[]], [None], [1, 2, 3], {"a": 1}, [[], {}]),
    *({"type": "fitted"}, {"tensor": 1}, {"type": []}),
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
    "target_type": ("binary", "continuous", "x"),
    "smooth": (-1.0, 1e300, "x"),
    "cv": (0, 10**9, "x"),
    "dtype": ("float16",),
}


# values of tensors by the kind of their dtype
EXTREMES = {
    "f": (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, -1.0, 0.0, -0.0, 5e-324, 1e-300),
    "i": (0, -1, 1, 2, 2**31, 2**62, 2**63 - 1, -(2**63)),
    "b": (0, 1),
    "u": range(256),
}


# ---- places in a tree of JSON --------------------------------------------------------------


def places(tree, path="", share=1.0):
    """Yield (holder, key, path, share) for every value inside the tree.

    The shares favor values near the root over those in long lists.
    """
    share /= max(len(tree), 1)
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key, f"{path}.{key}", share
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key], f"{path}.{key}", share)


def pick(tree, rng, wanted=lambda value: True):
    """Return a random (holder, key, path) with such a value."""
    found = [place for place in places(tree) if wanted(place[0][place[1]])]
    shares = [share for *_, share in found] if rng.random() < 0.4 else None
    return rng.choices(found, shares)[0][:3]


def put(place, value):
    holder, key, path = place
    old, holder[key] = holder[key], value
    return f"{path}: {short(old)} -> {short(value)}"


def short(value):
    text = repr(value)
    return text if len(text) < 70 else f"{text[:60]}... ({len(text)})"


def whole(value):
    return type(value) is int


def of(kind):
    return lambda value: isinstance(value, kind)


def some(kind):
    return lambda value: isinstance(value, kind) and value


# ---- mutations of descriptions -------------------------------------------------------------


def at(wanted=lambda value: True):
    """Return a decorator: the mutation gets a random place with such a value."""

    def decorator(change):
        @functools.wraps(change)
        def mutation(description, tensors, rng, other):
            place = pick(description, rng, wanted)
            return change(place, place[0][place[1]], rng, description, other)

        return mutation

    return decorator


@at(whole)
def sizes(place, value, rng, description, other):
    near = (value + 1, value - 1, -value, 1000 * value, str(value), [value])
    if abs(value) < 10**300:
        near += (float(value),)
    return put(place, rng.choice(SIZES + near))


@at(of(float))
def floats(place, value, rng, description, other):
    return put(place, rng.choice((*FLOATS, -value)))


@at(lambda value: value is None or type(value) is bool)
def flags(place, value, rng, description, other):
    return put(place, rng.choice((True, False, None, 1, 0, "True", [], 40)))


@at(of(str))
def words(place, value, rng, description, other):
    """Replace a string with another one, from a list or from elsewhere in the files."""
    holder, key, _ = pick(rng.choice((description, other[0])), rng, of(str))
    return put(place, rng.choice((rng.choice(WORDS), holder[key], holder[key])))


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
        return put(place, rng.choice(list(value.values()) if isinstance(value, dict) else value))
    around = rng.choice((lambda value: [value], lambda value: {"a": value}, lambda v: _tuple([v])))
    for _ in range(rng.choice((1, 1, 2, 40, 60, 100))):
        value = around(value)
    return put(place, value)


@at(some(list))
def lists(place, value, rng, description, other):
    """Repeat, remove, swap or reorder entries; empty a list or make it many times longer."""
    i, j = rng.randrange(len(value)), rng.randrange(len(value))
    swapped = list(value)
    swapped[i], swapped[j] = value[j], value[i]
    changed = (
        *([*value[:j], value[i], *value[j:]], [*value[:j], value[i], *value[j + 1 :]]),
        *(value[:i] + value[i + 1 :], swapped, value[::-1], [], value * rng.choice((2, 3, 300))),
    )
    return put(place, copy.deepcopy(rng.choice(changed)))


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
    i, times = rng.randrange(len(value)), rng.choice((0, 2))
    alike = [
        holder[key]
        for holder, key, *_ in places(description)
        if isinstance(holder[key], list) and len(holder[key]) == len(value)
    ]
    for found in alike:
        found[i : i + 1] = [copy.deepcopy(found[i]) for _ in range(times)]
    return f"entry {i} of {len(alike)} lists {times} times"


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
    there = [place[:3] for place in places(description) if place[1] == name]
    if there and rng.random() < 0.7:
        return put(rng.choice(there), value)
    holder, key, path = pick(description, rng, of(dict))
    holder[key][name] = value
    return f"{path} gets {name}={short(value)}"


def swap_subtrees(description, tensors, rng, other):
    """Swap two parts of a file, or copy one to the place of the other."""
    kind = rng.choice((dict, list, str, int))
    first, second = (pick(description, rng, of(kind)) for _ in range(2))
    a, b = copy.deepcopy(first[0][first[1]]), copy.deepcopy(second[0][second[1]])
    first[0][first[1]] = b
    if rng.random() < 0.5:
        with contextlib.suppress(IndexError):  # one was inside the other
            second[0][second[1]] = a
    return f"{first[2]} and {second[2]} swapped"


def borrow(description, tensors, rng, other):
    """Copy a part of another file, with the tensors that it needs."""
    kind = rng.choice((dict, dict, dict, list))
    place = pick(description, rng, of(kind))
    holder, key, _ = pick(other[0], rng, of(kind))
    text = json.dumps(holder[key])
    for name, array in other[1].items():
        needed = json.dumps(name) in text or name.startswith("layers.") or rng.random() < 0.1
        if needed and (name not in tensors or rng.random() < 0.7):
            tensors[name] = array
    return put(place, copy.deepcopy(holder[key]))


def tensor_names(description, tensors, rng, other):
    """Duplicate or swap references to tensors, or change the name in a reference."""
    first, second = (
        pick(description, rng, lambda value: type(value) is str and value in tensors)
        for _ in range(2)
    )
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


# ---- mutations of tensors and of the related numbers in a description ----------------------


def to_tensor(wanted=lambda array: True):
    """Return a decorator: the mutation gets a copy of a random tensor, and returns the changed one.

    It also returns a description of the change.
    """

    def decorator(change):
        @functools.wraps(change)
        def mutation(description, tensors, rng, other):
            name = rng.choice([name for name, array in tensors.items() if wanted(array)])
            tensors[name], said = change(np.array(tensors[name]), rng)
            return f"{name}: {said}"

        return mutation

    return decorator


@to_tensor(lambda array: array.size)
def values(array, rng):
    """Change one number or all of them to non-finite, huge, negative, zero or denormal values."""
    which = slice(None) if rng.random() < 0.4 else rng.randrange(array.size)
    new = rng.choice(EXTREMES[array.dtype.kind])
    with np.errstate(over="ignore"):
        array.reshape(-1)[which] = new
    return array, f"[{which}] = {new}"


@to_tensor(lambda array: array.dtype.kind in "fi")
def signs(array, rng):
    factor = rng.choice((-1, 1000, 0))
    return array * array.dtype.type(factor), f"times {factor}"


@to_tensor()
def shapes(array, rng):
    """Transpose, truncate, extend, empty or reorder a tensor, or change its dimensions."""
    array = np.atleast_1d(array)
    changed = rng.choice(
        (
            *(array.T, array[:-1], array[1:], array[:0], array[:1], array[::-1], array[..., :-1]),
            *(array[None], array[..., None], array.reshape(-1), array.reshape(-1)[:1].squeeze()),
            *(np.concatenate([array, array]), np.concatenate([array, array[-1:]])),
            np.concatenate([array, array], axis=-1),
            array[rng.sample(range(len(array)), len(array))],
            np.repeat(array[:1], len(array), 0),
        )
    )
    return changed, f"{array.shape} -> {changed.shape}, or in another order"


def resize(description, tensors, rng, other):
    """Truncate or extend a tensor, and change numbers of the description that equal its length."""
    name = rng.choice([name for name, array in tensors.items() if array.ndim and array.size])
    axis = rng.randrange(tensors[name].ndim)
    old = tensors[name].shape[axis]
    index = list(range(old))
    index = rng.choice((index[:-1], [*index, index[-1]], index[:1], []))
    everywhere = rng.random() < 0.5
    for other_name, array in list(tensors.items()):
        for along, length in enumerate(array.shape):
            chosen = along == axis if other_name == name else everywhere and length == old
            if chosen:
                tensors[other_name] = np.take(tensors[other_name], index, axis=along)
    for holder, key, *_ in list(places(description)):
        if whole(holder[key]) and holder[key] == old:
            holder[key] = len(index)
    return f"{name} (everywhere: {everywhere}): length {old} -> {len(index)}"


def dtypes(description, tensors, rng, other):
    name, new = rng.choice(list(tensors)), rng.choice(("<f8", "<f4", "<i8", "|u1", "|b1"))
    with np.errstate(over="ignore", invalid="ignore"):
        old, tensors[name] = tensors[name].dtype.str, tensors[name].astype(new)
    if rng.random() < 0.7:
        for holder, key, *_ in places(description):
            if key == "dtype" and name in holder.values():
                holder[key] = np.dtype(new).name
    return f"{name}: {old} -> {new}"


def contents(description, tensors, rng, other):
    """Swap or copy the contents of two tensors, remove a tensor or add one."""
    first, second = rng.choice(list(tensors)), rng.choice(list(tensors))
    match rng.randrange(4):
        case 0:
            tensors[first], tensors[second] = tensors[second], tensors[first]
        case 1:
            tensors[first] = tensors[second]
        case 2:
            del tensors[first]
        case 3:
            tensors[f"{first}.more"] = tensors[first]
    return f"tensors {first} and {second} swapped, lost or one more"


@to_tensor(lambda array: array.dtype == np.uint8 and array.size > 1)
def texts(array, rng):
    """Write invalid bytes into text, or repeat or reorder pieces."""
    shape, array = array.shape, array.reshape(-1)
    step = rng.choice([n for n in (1, 2, 3, 4, 8, 12, 16, 20) if array.size % n == 0])
    pieces = array.reshape(-1, step)
    i, j = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    match rng.randrange(5):
        case 0:
            pieces[i] = pieces[j]
        case 1:
            pieces[[i, j]] = pieces[[j, i]]
        case 2:
            pieces = pieces[::-1]
        case 3:
            array[i] = rng.choice((0xFF, 0xC0, 0xED, 0x80, 0, 0x1B))
        case 4:  # half a character, and code points out of range
            last = rng.choice((b"\0\xd8\0\0", b"\0\0\x11\0", b"\0\0\0\0"))
            array[-4:] = np.frombuffer(last, np.uint8)[-array[-4:].size :]
    return np.array(pieces).reshape(shape), f"pieces of {step} bytes"


@to_tensor(lambda array: array.dtype.kind == "i" and array.size > 1)
def moved_sums(array, rng):
    """Move integers of a tensor far apart without changing their sum."""
    flat, far = array.reshape(-1), rng.choice((1, 2, 10**8, 2**62))
    i, j = rng.sample(range(flat.size), 2)
    with np.errstate(over="ignore"):
        flat[i] += far
        flat[j] -= far
    return array, f"{far} from {j} to {i}"


MUTATIONS = (
    *(sizes, sizes, sizes, floats, flags, flags, words, words, types, types, nesting),
    *(lists, lists, lists, same_sum, partners, remove, remove, rename),
    *(add_names, add_names, add_names, swap_subtrees, swap_subtrees, borrow, borrow, borrow),
    *(tensor_names, formats, values, values, values, signs, shapes, shapes),
    *(resize, resize, resize, dtypes, contents, texts, texts, moved_sums),
)
