"""What a forger may change in a model file, by meaning: the description and the tensors.

A mutation takes a description (any tree of JSON), the tensors, a random generator and the content
of another file. It changes the first two in place and returns what it did, or None where there is
nothing of the kind. No mutation relies on the layout of a format: a dict with a key "tensor" refers
to a tensor, lists of one length belong together, whole numbers are sizes or indices.
"""

import copy
import json
import re
from unittest import mock

import numpy as np

from quadric.errors import ModelFileError
from quadric.model_file import container

RAW = "\1"  # before a number that JSON can write and Python's json does not
SIZES = (0, -1, 1, 2, 3, 7, 100, 255, 4096, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63),
         10**30, -(10**30), 0.5, 1.0, 1e300, True, False)  # fmt: skip
FLOATS = (0.0, -0.0, -1.0, 1e-320, 1e-30, 1e30, 1e154, 1e300, -1e300, 3, 10**30, True,
          f"{RAW}1e999", f"{RAW}-1e999", f"{RAW}1E5")  # fmt: skip
WORDS = (
    "", " ", "a", "x0", "passthrough", "drop", "remainder", "auto", "None", "nan", "inf", "object",
    "float32", "float64", "int64", "bool", "<U3", "<U0", "O", "softmax", "identity", "quadratic",
    "linear", "multilabel-indicator", "multiclass", "binary", "constant", "ignore", "error",
    "infrequent_if_exist", "first", "pandas", "polars", "default", "os.system", "builtins.eval",
    "__class__", "../../etc/passwd", "/tmp/x", "\ud800", "\x1b[31m", "\0", "$\\frac{a}$", "a" * 3000,
)  # fmt: skip
JUNK = (None, True, -1, 0, 2.5, "", "text", [], {}, [[]], [None], [1, 2, 3], {"a": 1}, [[], {}],
        {"type": "estimator"}, {"tensor": 1}, {"type": []})  # fmt: skip
# names of parameters and attributes, public and private, with what a forger would give them
NAMED = {
    "memory": ("/tmp/x", {"location": "/tmp/x"}), "n_jobs": (40, -1, 2**31), "verbose": (True, 100),
    "func": ("os.system", "len"), "inverse_func": ("os.system",), "kw_args": ({"a": 1},),
    "feature_name_combiner": ("os.system", "concat"), "transform_input": (["X"], "X"),
    "_infrequent_enabled": (True, 1), "_n_features_outs": ([10**8, 5 - 10**8], [3]),
    "_default_to_infrequent_mappings": ([[0] * 9], None), "_infrequent_indices": ([[0], [1]],),
    "_drop_idx_after_grouping": ([0, 0], [10**9]), "drop_idx_": ([0, 0], [None, 10**9]),
    "n_features_in_": (2**63 - 1, 0, -1, 2**31), "_n_features": (2**63 - 1, 0),
    "_sklearn_output_config": ({"transform": "pandas"}, {"transform": "os"}),
    "_fit_dtype": ("float64", "O"), "_fill_dtype": ("O",), "_state": ({},), "_alpha": (-1.0, "x"),
    "_solver": ("x",), "_columns": ([["a"]],), "_remainder": (["remainder", "drop", []],),
    "_name_to_fitted_passthrough": ({},), "_label_binarizer": (None, {}), "classes_": ([], None),
    "__class__": ("str", "os"), "__dict__": ({"network_": 1},), "__init__": ("x",),
    "__setstate__": ({},), "predict": (1, "os.system"), "network_": (None, {}), "clip": (True,),
    "whiten": (True,), "warm_start": (True,), "random_state": (2**70, -1, "x"), "copy": (False, 0),
    "max_categories": (1, -1), "min_frequency": (10**9, -1, 2.5), "sparse_output": (True, 7),
    "sparse_threshold": (-1, 2, "x"), "with_mean": (False,), "with_std": (False,),
    "add_indicator": (True,), "missing_values": ("a", 0, None), "keep_empty_features": (True,),
    "strategy": ("constant", "x"), "fill_value": ("a", [1]), "handle_unknown": ("warn", "x"),
    "drop": ("first", "if_binary", [0]), "categories": ([["a"]], [[3, 1, 2]]), "transposed": (True,),
    "others": ([[0, 1]], [[-1, 0]], [[0, [0]]]), "feature_range": ([1, 0], [0, 10**400]),
    "remainder": ("passthrough", {}), "transformer_weights": ({"a": 1e300}, [1]), "length": (0, 10**9),
    "hidden_layer_sizes": ([10**6], 10**9, [[]]), "class_weight": ({"a": -1},), "dtype": ("float16",),
}  # fmt: skip


# ---- finding one's way in a tree ----


def places(tree, path=""):
    """(holder, key, path) of everything inside."""
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key, f"{path}.{key}"
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key], f"{path}.{key}")


def _walk(tree, rng):
    """A place at the end of a random walk: what is near the root has more weight than in a list."""
    path = ""
    while True:
        key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        path += f".{key}"
        inner = tree[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:
            return tree, key, path
        tree = inner


def _pick(tree, rng, wanted=lambda value: True):
    if rng.random() < 0.4:
        for _ in range(10):
            holder, key, path = _walk(tree, rng)
            if wanted(holder[key]):
                return holder, key, path
    found = [place for place in places(tree) if wanted(place[0][place[1]])]
    return rng.choice(found) if found else None


def _whole(value):
    return type(value) is int


def _refers(value):
    return isinstance(value, dict) and isinstance(value.get("tensor"), str)


def _set(place, value):
    holder, key, path = place
    old, holder[key] = holder[key], value
    return f"{path}: {_short(old)} -> {_short(value)}"


def _short(value):
    text = repr(value)
    return text if len(text) < 70 else f"{text[:60]}... ({len(text)})"


# ---- the description ----


def sizes(description, tensors, rng, other):
    place = _pick(description, rng, _whole)
    if place is None:
        return None
    value = place[0][place[1]]
    near = (value + 1, value - 1, -value, 1000 * value, str(value), [value])
    if abs(value) < 10**300:
        near += (float(value),)
    return _set(place, rng.choice(SIZES + near))


def floats(description, tensors, rng, other):
    place = _pick(description, rng, lambda value: type(value) is float)
    return place and _set(place, rng.choice((*FLOATS, -place[0][place[1]])))


def flags(description, tensors, rng, other):
    place = _pick(description, rng, lambda value: value is None or type(value) is bool)
    return place and _set(place, rng.choice((True, False, None, 1, 0, "True", [], 40)))


def words(description, tensors, rng, other):
    """A text by another, from a list or from elsewhere in the files."""
    place = _pick(description, rng, lambda value: type(value) is str)
    if place is None:
        return None
    elsewhere = _pick(rng.choice((description, other[0])), rng, lambda value: type(value) is str)
    choices = [rng.choice(WORDS)]
    if elsewhere is not None:
        choices += [elsewhere[0][elsewhere[1]]] * 2
    return _set(place, rng.choice(choices))


def types(description, tensors, rng, other):
    """Something of another type: a text, a number, a list, a dict, nothing."""
    place = _pick(description, rng)
    value = place[0][place[1]]
    turned = [str(value), [value], {"value": value}]
    if isinstance(value, dict):
        turned += [list(value.values()), list(map(list, value.items()))]
    if isinstance(value, list):
        turned += [{str(i): inner for i, inner in enumerate(value)}, {"type": "tuple", "items": value}]
    return _set(place, rng.choice((*JUNK, *turned)))


def nesting(description, tensors, rng, other):
    """Wrapped once or many times, or unwrapped."""
    place = _pick(description, rng)
    value = place[0][place[1]]
    if isinstance(value, (dict, list)) and value and rng.random() < 0.5:
        inner = rng.choice(list(value.values()) if isinstance(value, dict) else value)
        return _set(place, inner)
    shape = rng.choice(("list", "dict", "tuple"))
    for _ in range(rng.choice((1, 1, 2, 40, 60, 100))):
        value = {"list": [value], "dict": {"a": value}}.get(shape, {"type": "tuple", "items": [value]})
    return _set(place, value)


def lists(description, tensors, rng, other):
    """Entries repeated, lost, swapped, in another order; a list emptied or many times as long."""
    place = _pick(description, rng, lambda value: isinstance(value, list) and value)
    if place is None:
        return None
    value = list(place[0][place[1]])
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
    return _set(place, value)


def same_sum(description, tensors, rng, other):
    """Numbers of a list moved far apart, their sum as before."""
    place = _pick(
        description, rng,
        lambda value: isinstance(value, list) and len(value) > 1 and all(map(_whole, value)),
    )  # fmt: skip
    if place is None:
        return None
    value, far = list(place[0][place[1]]), rng.choice((1, 2, 1000, 10**8, 2**31, 2**62))
    i, j = rng.sample(range(len(value)), 2)
    value[i], value[j] = value[i] + far, value[j] - far
    return _set(place, value)


def partners(description, tensors, rng, other):
    """The same entry lost or doubled in all lists of one length, as if they belonged together."""
    place = _pick(description, rng, lambda value: isinstance(value, list) and value)
    if place is None:
        return None
    length = len(place[0][place[1]])
    i, lose = rng.randrange(length), rng.random() < 0.5
    alike = [
        holder[key] for holder, key, _ in places(description)
        if isinstance(holder[key], list) and len(holder[key]) == length
    ]  # fmt: skip
    for found in alike:
        if lose:
            del found[i]
        else:
            found.insert(i, copy.deepcopy(found[i]))
    return f"entry {i} of {len(alike)} lists of length {length} {'lost' if lose else 'doubled'}"


def remove(description, tensors, rng, other):
    place = _pick(description, rng)
    holder, key, path = place
    del holder[key]
    return f"{path} removed"


def rename(description, tensors, rng, other):
    place = _pick(description, rng, lambda value: isinstance(value, dict) and value)
    holder = place[0][place[1]]
    old = rng.choice(list(holder))
    strange = _pick(other[0], rng, lambda value: isinstance(value, dict) and value)
    names = [*NAMED, old + "_", "_" + old, *strange[0][strange[1]]]
    new = rng.choice(names)
    holder[new] = holder.pop(old)
    return f"{place[2]}: {old} renamed {new}"


def add_names(description, tensors, rng, other):
    """A parameter or an attribute that a forger would like to set, there or not there before."""
    name = rng.choice(list(NAMED))
    value = copy.deepcopy(rng.choice(NAMED[name]))
    there = [place for place in places(description) if place[1] == name]
    if there and rng.random() < 0.7:
        return _set(rng.choice(there), value)
    place = _pick(description, rng, lambda value: isinstance(value, dict))
    place[0][place[1]][name] = value
    return f"{place[2]} gets {name}={_short(value)}"


def swap_subtrees(description, tensors, rng, other):
    """Two parts of one file in each other's place, or one of them twice."""
    kind = rng.choice((dict, list, str, int))
    first, second = (_pick(description, rng, lambda v: isinstance(v, kind)) for _ in range(2))
    if first is None or second is None:
        return None
    a, b = copy.deepcopy(first[0][first[1]]), copy.deepcopy(second[0][second[1]])
    first[0][first[1]] = b
    if rng.random() < 0.5:
        try:
            second[0][second[1]] = a
        except (IndexError, KeyError):  # the one was inside the other
            pass
    return f"{first[2]} and {second[2]} swapped"


def borrow(description, tensors, rng, other):
    """A part of another file, with the tensors that it needs."""
    kind = rng.choice((dict, dict, dict, list))
    place = _pick(description, rng, lambda value: isinstance(value, kind))
    source = _pick(other[0], rng, lambda value: isinstance(value, kind))
    if place is None or source is None:
        return None
    value = copy.deepcopy(source[0][source[1]])
    text = json.dumps(value)
    for name, array in other[1].items():
        if json.dumps(name) in text or rng.random() < 0.1 or f"{name}".startswith("layers."):
            if name not in tensors or rng.random() < 0.7:
                tensors[name] = array
    return _set(place, value)


def tensor_names(description, tensors, rng, other):
    """Two references to one tensor, references swapped, or one to a tensor that is not there."""
    first, second = (_pick(description, rng, _refers) for _ in range(2))
    if first is None:
        return None
    a, b = first[0][first[1]], second[0][second[1]]
    match rng.randrange(4):
        case 0:
            a["tensor"] = b["tensor"]
        case 1:
            a["tensor"], b["tensor"] = b["tensor"], a["tensor"]
        case 2:
            a["tensor"] = rng.choice(list(tensors))
        case 3:
            old, a["tensor"] = a["tensor"], "elsewhere"
            if old in tensors and rng.random() < 0.7:
                tensors["elsewhere"] = tensors.pop(old)
    return f"{first[2]} and {second[2]}: references to tensors"


def formats(description, tensors, rng, other):
    description["format"] = rng.choice((1, 2, 3, 0, -1, 1.0, True, "1", None, 10**30))
    return f"format {description['format']!r}"


# ---- the tensors ----

EXTREMES = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, -1.0, 0.0, -0.0, 5e-324, 1e-300)
WHOLE_EXTREMES = (0, -1, 1, 2, 2**31, 2**62, 2**63 - 1, -(2**63))


def _tensor(tensors, rng, wanted=lambda array: True):
    found = [name for name, array in tensors.items() if wanted(array)]
    return rng.choice(found) if found else None


def values(description, tensors, rng, other):
    """One number or all of them: not finite, huge, negative, zero, denormal."""
    name = _tensor(tensors, rng, lambda array: array.size)
    if name is None:
        return None
    array = np.array(tensors[name])
    which = slice(None) if rng.random() < 0.4 else rng.randrange(array.size)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            new = array.dtype.type(rng.choice(EXTREMES))
    elif array.dtype.kind == "i":
        new = rng.choice(WHOLE_EXTREMES)
    else:
        new = rng.choice((0, 1)) if array.dtype.kind == "b" else rng.randrange(256)
    array.reshape(-1)[which] = new
    tensors[name] = array
    return f"{name}[{which}] = {new}"


def signs(description, tensors, rng, other):
    name = _tensor(tensors, rng, lambda array: array.dtype.kind in "fi")
    if name is None:
        return None
    factor = rng.choice((-1, 1000, 0))
    tensors[name] = tensors[name] * tensors[name].dtype.type(factor)
    return f"{name} times {factor}"


def _reshaped(array, rng):
    first = array.shape[0] if array.ndim else 0
    return rng.choice(
        (
            lambda: array.T, lambda: array[:-1], lambda: array[1:], lambda: array[:0],
            lambda: array[None], lambda: array[..., None], lambda: array.reshape(-1),
            lambda: array.reshape(-1)[:1].reshape(()), lambda: np.concatenate([array, array]),
            lambda: np.concatenate([array, array[-1:]]), lambda: array[..., :-1],
            lambda: np.concatenate([array] * 2, axis=-1), lambda: array[::-1],
            lambda: array[rng.sample(range(first), first)], lambda: np.repeat(array[:1], first, 0),
            lambda: array[:1],
        )
    )()  # fmt: skip


def shapes(description, tensors, rng, other):
    """Transposed, cut, longer, without length, of one dimension more; rows in another order."""
    name = _tensor(tensors, rng)
    try:
        tensors[name], old = _reshaped(tensors[name], rng), tensors[name].shape
    except (ValueError, IndexError):  # of a number there is no last row
        return None
    return f"{name}: {old} -> {tensors[name].shape}, or in another order"


def resize(description, tensors, rng, other):
    """A tensor cut or longer, and every number of the description that was its length likewise."""
    name = _tensor(tensors, rng, lambda array: array.ndim and array.shape[0])
    if name is None:
        return None
    array, axis = tensors[name], 0
    if array.ndim > 1:
        axis = rng.randrange(array.ndim)
    old = array.shape[axis]
    index = list(range(old))
    index = rng.choice((index[:-1], [*index, index[-1]] if index else [], index[:1], []))
    everywhere = rng.random() < 0.5
    for other_name, found in list(tensors.items()):
        for along in range(found.ndim):
            if (other_name == name and along == axis) or (
                everywhere and other_name != name and found.shape[along] == old
            ):
                found = np.take(found, index, axis=along)
        tensors[other_name] = found
    for holder, key, _ in list(places(description)):
        if _whole(holder[key]) and holder[key] == old:
            holder[key] = len(index)
    return f"{name} (everywhere: {everywhere}): length {old} -> {len(index)}"


def dtypes(description, tensors, rng, other):
    name = _tensor(tensors, rng)
    new = rng.choice(("<f8", "<f4", "<i8", "|u1", "|b1"))
    with np.errstate(over="ignore", invalid="ignore"):
        old, tensors[name] = tensors[name].dtype.str, tensors[name].astype(new)
    names = {"<f8": "float64", "<f4": "float32", "<i8": "int64", "|u1": "uint8", "|b1": "bool"}
    if rng.random() < 0.7:
        for holder, key, _ in places(description):
            if _refers(holder[key]) and holder[key]["tensor"] == name and "dtype" in holder[key]:
                holder[key]["dtype"] = names[new]
    return f"{name}: {old} -> {new}"


def contents(description, tensors, rng, other):
    """Two tensors' contents swapped, one in both places, one lost, one more."""
    first, second = _tensor(tensors, rng), _tensor(tensors, rng)
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


def texts(description, tensors, rng, other):
    """Bytes of text that are none, pieces that repeat, pieces in another order."""
    name = _tensor(tensors, rng, lambda array: array.dtype == np.uint8 and array.size > 1)
    if name is None:
        return None
    array = np.array(tensors[name]).reshape(-1)
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
        case 4:
            array[-4:] = np.frombuffer(rng.choice((b"\0\xd8\0\0", b"\0\0\x11\0", b"\0" * 4)), np.uint8)[
                -array[-4:].size :
            ]
    tensors[name] = np.array(pieces).reshape(tensors[name].shape)
    return f"{name}: pieces of {step} bytes"


def moved_sums(description, tensors, rng, other):
    """Whole numbers of a tensor moved far apart, their sum as before."""
    name = _tensor(tensors, rng, lambda array: array.dtype.kind == "i" and array.size > 1)
    if name is None:
        return None
    array, far = np.array(tensors[name]), rng.choice((1, 2, 10**8, 2**62))
    flat = array.reshape(-1)
    i, j = rng.sample(range(flat.size), 2)
    with np.errstate(over="ignore"):
        flat[i] += far
        flat[j] -= far
    tensors[name] = array
    return f"{name}: {far} from {j} to {i}"


MUTATIONS = (
    sizes, sizes, sizes, floats, flags, flags, words, words, types, types, nesting, lists, lists, lists,
    same_sum, partners, remove, remove, rename, add_names, add_names, add_names, swap_subtrees,
    swap_subtrees, borrow, borrow, borrow, tensor_names, formats, values, values, values, signs,
    shapes, shapes, resize, resize, resize, dtypes, contents, texts, texts, moved_sums,
)  # fmt: skip


def forge(description, tensors, rng, other):
    """A copy, changed once or several times, as bytes; what was changed, and how."""
    description, tensors = copy.deepcopy(description), dict(tensors)
    said = []
    wanted = rng.choice((1, 1, 1, 1, 2, 2, 3, 5))
    for _ in range(20):
        mutation = rng.choice(MUTATIONS)
        if not tensors or not description:
            break
        what = mutation(description, tensors, rng, other)
        if what:
            said.append(f"{mutation.__name__}: {what}")
        if len(said) >= wanted:
            break
    return seal(description, tensors), said


def seal(description, tensors):
    """The bytes of a file with the right hash; None if no such file can be written.

    A text that begins with `RAW` is written as the number after it: 1e999 reads as infinity.
    """
    canonical = container.canonical

    def raw(value):
        return re.sub(r'"\\u0001([^"]*)"', r"\1", canonical(value))

    with mock.patch.object(container, "canonical", raw):
        try:
            return container.to_bytes(description, tensors)
        except (ModelFileError, RecursionError):
            return None
