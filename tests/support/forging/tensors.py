"""Mutations of the tensors and of the related numbers in a description.

The arguments and results of a mutation are those of `tests.support.forging.descriptions`.
"""

import functools

import numpy as np

from tests.support.forging.trees import places, whole

EXTREMES = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, -1.0, 0.0, -0.0, 5e-324, 1e-300)
WHOLE_EXTREMES = (0, -1, 1, 2, 2**31, 2**62, 2**63 - 1, -(2**63))


def _tensor(tensors, rng, wanted=lambda array: True):
    found = [name for name, array in tensors.items() if wanted(array)]
    return rng.choice(found) if found else None


def to_tensor(wanted):
    """Return a decorator: the mutation gets the name and a copy of such a tensor, if any.

    It returns the changed tensor and a description of the change.
    """

    def decorator(change):
        @functools.wraps(change)
        def mutation(description, tensors, rng, other):
            name = _tensor(tensors, rng, wanted)
            if name is None:
                return None
            tensors[name], said = change(np.array(tensors[name]), rng)
            return f"{name}: {said}"

        return mutation

    return decorator


@to_tensor(lambda array: array.size)
def values(array, rng):
    """Change one number or all of them to non-finite, huge, negative, zero or denormal values."""
    which = slice(None) if rng.random() < 0.4 else rng.randrange(array.size)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            new = array.dtype.type(rng.choice(EXTREMES))
    elif array.dtype.kind == "i":
        new = rng.choice(WHOLE_EXTREMES)
    else:
        new = rng.choice((0, 1)) if array.dtype.kind == "b" else rng.randrange(256)
    array.reshape(-1)[which] = new
    return array, f"[{which}] = {new}"


@to_tensor(lambda array: array.dtype.kind in "fi")
def signs(array, rng):
    factor = rng.choice((-1, 1000, 0))
    return array * array.dtype.type(factor), f"times {factor}"


def _reshaped(array, rng):
    first = array.shape[0] if array.ndim else 0
    return rng.choice(
        (
            lambda: array.T,
            lambda: array[:-1],
            lambda: array[1:],
            lambda: array[:0],
            lambda: array[None],
            lambda: array[..., None],
            lambda: array.reshape(-1),
            lambda: array.reshape(-1)[:1].reshape(()),
            lambda: np.concatenate([array, array]),
            lambda: np.concatenate([array, array[-1:]]),
            lambda: array[..., :-1],
            lambda: np.concatenate([array] * 2, axis=-1),
            lambda: array[::-1],
            lambda: array[rng.sample(range(first), first)],
            lambda: np.repeat(array[:1], first, 0),
            lambda: array[:1],
        )
    )()


def shapes(description, tensors, rng, other):
    """Transpose, truncate, extend, empty or reorder a tensor, or add a dimension."""
    name = _tensor(tensors, rng)
    try:
        tensors[name], old = _reshaped(tensors[name], rng), tensors[name].shape
    except (ValueError, IndexError):  # a scalar has no last row
        return None
    return f"{name}: {old} -> {tensors[name].shape}, or in another order"


def resize(description, tensors, rng, other):
    """Truncate or extend a tensor, and change numbers of the description that equal its length."""
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
        if whole(holder[key]) and holder[key] == old:
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
            if key == "dtype" and name in holder.values():
                holder[key] = names[new]
    return f"{name}: {old} -> {new}"


def contents(description, tensors, rng, other):
    """Swap or copy the contents of two tensors, remove a tensor or add one."""
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
    values,
    values,
    values,
    signs,
    shapes,
    shapes,
    resize,
    resize,
    resize,
    dtypes,
    contents,
    texts,
    texts,
    moved_sums,
)
