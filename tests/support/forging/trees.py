"""Find and change values in a tree of JSON."""


def places(tree, path=""):
    """Yield (holder, key, path) for every value inside the tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key, f"{path}.{key}"
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key], f"{path}.{key}")


def _walk(tree, rng):
    """Return the end of a random walk, which favors values near the root over long lists."""
    path = ""
    while True:
        key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        path += f".{key}"
        inner = tree[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:
            return tree, key, path
        tree = inner


def pick(tree, rng, wanted=lambda value: True):
    if rng.random() < 0.4:
        for _ in range(10):
            holder, key, path = _walk(tree, rng)
            if wanted(holder[key]):
                return holder, key, path
    found = [place for place in places(tree) if wanted(place[0][place[1]])]
    return rng.choice(found) if found else None


def whole(value):
    return type(value) is int


def put(place, value):
    holder, key, path = place
    old, holder[key] = holder[key], value
    return f"{path}: {short(old)} -> {short(value)}"


def short(value):
    text = repr(value)
    return text if len(text) < 70 else f"{text[:60]}... ({len(text)})"
