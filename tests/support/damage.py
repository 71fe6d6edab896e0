"""Random damage to the bytes of files: of any file, and of the container of models.

A damage takes the content, a random generator and the contents of other files, and returns the
damaged content.
"""

import contextlib
import json
import pickle
import struct
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

from quadric.files import _safetensors as container
from tests.support.forging.mutations import remove, swap_subtrees, types

TRACE = Path(tempfile.gettempdir()) / "quadric_was_here"
DTYPES = ("F16", "I8", "F64", "F32", "BOOL", "BF16", "object", "U8", 3)
SHAPES = ([2**40], [2**31, 2**31], [-1], [1.5], [], [0], [1] * 40, "x", [2**64, 0], [True])
OFFSETS = ([0, 2**50], [0, 0], [-8, 0], [8, 0], [0], None, ["0", "8"])
NAMES = ("../../x", "/etc/passwd", "layers.0.W", "a" * 5000, "", "x\0y", "__metadata__")
PIECES = ("[],", "0.25,", "12345,", "{},", "0,", '"",', '"ab",', "1e5,", "[[],[]],")


# ---- any file ------------------------------------------------------------------------------


def put(content, place, new):
    """Return the content with these bytes at a place."""
    return content[:place] + new + content[place + len(new) :]


def flip_bits(content, rng, others=(), begin=0, end=None):
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8, 50))):
        changed[rng.randrange(begin, end or len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def replace_bytes(content, rng, others=()):
    """Replace bytes with as many, more or fewer random bytes; also insert or remove some."""
    place, new = rng.randrange(len(content)), rng.randbytes(rng.randrange(60))
    lost = rng.choice((0, len(new), rng.randrange(1, 60)))
    return content[:place] + new + content[place + lost :]


def cut(content, rng, others=()):
    return content[: rng.randrange(len(content))]


def lengthen(content, rng, others=()):
    return content + rng.randbytes(rng.choice((1, 100, 4096)))


# ---- the container of models ---------------------------------------------------------------


def split(content):
    (length,) = struct.unpack("<Q", content[:8])
    return content[8 : 8 + length], content[8 + length :]


def joined(header, body):
    return struct.pack("<Q", len(header)) + header + body


def _described(text, body=b""):
    return joined(json.dumps({"__metadata__": {"quadric": text}}).encode(), body)


def flip_header(content, rng, others):
    return flip_bits(content, rng, end=8 + len(split(content)[0]))


def swap_headers(content, rng, others):
    return joined(split(rng.choice(others))[0], split(content)[1])


def swap_bodies(content, rng, others):
    header, body = split(content)
    half = len(body) // 2
    return joined(header, body[half:] + body[:half])


def huge_header(content, rng, others):
    return struct.pack("<Q", rng.choice((2**63, 2**40, len(content), 2**31, 0, 1))) + content[8:]


def change_entry(content, rng, others):
    """Change the size, place, dtype or name of a tensor as a forger would."""
    header, body = split(content)
    entries = json.loads(header)
    name, other = (rng.choice([name for name in entries if name[0] != "_"]) for _ in range(2))
    offsets = (*OFFSETS, [0, len(body)], *[entries[other]["data_offsets"]] * 8)
    changes = {"dtype": DTYPES, "shape": SHAPES, "data_offsets": offsets, "name": NAMES}
    key = rng.choice(list(changes))
    if key == "name":
        entries[rng.choice(NAMES)] = entries.pop(name)
    else:
        entries[name][key] = rng.choice(changes[key])
    return joined(json.dumps(entries).encode(), body)


def change_description(content, rng, others):
    """Change the description but not its hash."""
    header, body = split(content)
    entries = json.loads(header)
    text = entries["__metadata__"]["quadric"]
    place = rng.randrange(len(text))
    match rng.randrange(4):
        case 0:
            text = text[:place] + chr(rng.randrange(32, 127)) + text[place + 1 :]
        case 1:
            text = text[:place]
        case 2:
            other = rng.choice((1, 99, -1, 0, 2.0, "null"))
            text = text.replace(f'"format":{container.FORMAT}', f'"format":{other}')
        case 3:
            tree = json.loads(text)
            alter(tree, rng)
            text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    entries["__metadata__"]["quadric"] = text
    return joined(json.dumps(entries).encode(), body)


def alter(tree, rng):
    """Replace, remove or copy one value in a tree of JSON."""
    with contextlib.suppress(IndexError):  # nothing to swap
        rng.choice((types, types, remove, swap_subtrees))(tree, {}, rng, None)


def deep(content, rng, others):
    nested = rng.choice(("[", '{"a":')) * rng.choice((70, 500, 5000, 200_000))
    body = split(content)[1]
    return joined(nested.encode(), body) if rng.randrange(2) else _described(nested, body)


def many_pieces(content, rng, others):
    text = "[" + rng.choice(PIECES) * rng.choice((1000, 50_000)) + "0]"
    if rng.randrange(2):
        text = f'{{"extra":{{"a":{text}}},"format":{container.FORMAT}}}'
    return _described(text)


def other_formats(content, rng, others):
    """Return another kind of file: a pickle that runs a command, a zip archive or random bytes."""
    command, stream = pickle.dumps(Command(), protocol=rng.randrange(6)), BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("../../data.pkl", command)
    noise = rng.randbytes(rng.randrange(200))
    return rng.choice((command, stream.getvalue(), joined(command, split(content)[1]), noise))


class Command:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self):
        import os

        return os.system, (f"touch {TRACE}",)


OF_CONTAINERS = (
    *(flip_bits, flip_header, replace_bytes, cut, lengthen, swap_headers, swap_bodies),
    *(huge_header, change_entry, other_formats),
)
OF_MODELS = (*OF_CONTAINERS, change_entry, change_description, deep, many_pieces)
