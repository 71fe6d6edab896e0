"""Load thousands of damaged and forged model files in a process that monitors itself.

    python -m tests.support.mutated_model_files COUNT SEED

This command prints, as JSON, how many files were refused, how many gave the same model, and the
largest cost. Any other outcome ends the process with an error.
"""

import json
import pickle
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path

import quadric
from quadric.errors import ModelFileError
from quadric.files import _safetensors as container
from quadric.files._describe import describe
from tests.support.model_file_models import make

NAMES = ("network quadratic float32", "classes objects", "columns, rest scaled", "rare categories")
SPARE = 2**19  # bytes of memory allowed for loading the smallest file
# audit events that must not occur during a load
FORBIDDEN = (
    "compile",
    "exec",
    "import",
    "os.",
    "subprocess.",
    "pickle.",
    "marshal.",
    "socket.",
    "shutil.",
    "ctypes.",
    "code.",
    "tempfile.",
    "urllib.",
)
JUNK = (
    None,
    True,
    -1,
    0,
    2**62,
    10**300,
    1.5,
    "",
    "os.system",
    "../../etc/passwd",
    [],
    {},
    [[]],
    {"type": "estimator", "class": "os.system", "parameters": {}, "fitted": {}},
    {"type": "array", "tensor": "layers.0.W", "dtype": "float64"},
    {"type": "array", "tensor": "layers.0.W", "dtype": "O"},
    {"type": "float", "value": "nan"},
    {"type": "dict", "items": [[[], 1]]},
    {"type": "network", "layers": []},
)


def split(content):
    (length,) = struct.unpack("<Q", content[:8])
    return content[8 : 8 + length], content[8 + length :]


def joined(header, body):
    return struct.pack("<Q", len(header)) + header + body


def flip_bits(content, rng, others):
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_header(content, rng, others):
    changed = bytearray(content)
    changed[rng.randrange(8 + len(split(content)[0]))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(content, rng, others):
    place = rng.randrange(len(content))
    return (
        content[:place] + rng.randbytes(rng.randint(1, 40)) + content[place + rng.randrange(40) :]
    )


def cut(content, rng, others):
    return content[: rng.randrange(len(content))]


def lengthen(content, rng, others):
    return content + rng.randbytes(rng.randint(1, 100))


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
    name = rng.choice([name for name in entries if name != "__metadata__"])
    entry = entries[name]
    match rng.randrange(5):
        case 0:
            entry["dtype"] = rng.choice(
                ("F16", "I8", "F64", "F32", "BOOL", "BF16", "object", "U8", 3)
            )
        case 1:
            entry["shape"] = rng.choice(
                ([2**40], [2**31, 2**31], [-1], [1.5], [], [0], [1] * 40, "x", [2**64, 0], [True])
            )
        case 2:
            entry["data_offsets"] = rng.choice(
                ([0, 2**50], [0, 0], [-8, 0], [8, 0], [0], [0, len(body)], None, ["0", "8"])
            )
        case 3:
            new = rng.choice(
                ("../../x", "/etc/passwd", "layers.0.W", "a" * 5000, "", "x\0y", "__metadata__")
            )
            del entries[name]
            entries[new] = entry
        case 4:
            entry["data_offsets"] = entries[rng.choice([n for n in entries if n[0] != "_"])][
                "data_offsets"
            ]
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
            text = json.dumps(alter(json.loads(text), rng), sort_keys=True, separators=(",", ":"))
    entries["__metadata__"]["quadric"] = text
    return joined(json.dumps(entries).encode(), body)


def deep(content, rng, others):
    depth = rng.choice((70, 500, 5000, 200_000))
    body = split(content)[1]
    nested = rng.choice(("[", '{"a":')) * depth
    if rng.randrange(2):
        return joined(nested.encode(), body)
    return joined(json.dumps({"__metadata__": {"quadric": nested}}).encode(), body)


def many_pieces(content, rng, others):
    piece = rng.choice(("[],", "0.25,", "12345,", "{},", "0,", '"",', '"ab",', "1e5,", "[[],[]],"))
    text = "[" + piece * rng.choice((1000, 50_000)) + "0]"
    if rng.randrange(2):
        whole = {"extra": {"a": json.loads(text)}, "format": container.FORMAT}
        text = json.dumps(whole, separators=(",", ":"))
    return joined(json.dumps({"__metadata__": {"quadric": text}}).encode(), b"")


def other_formats(content, rng, others):
    """Return another kind of file: a pickle that runs a command, a zip archive or random bytes."""
    match rng.randrange(4):
        case 0:
            return pickle.dumps(Command(), protocol=rng.randrange(6))
        case 1:
            stream = BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                archive.writestr("../../data.pkl", pickle.dumps(Command()))
            return stream.getvalue()
        case 2:
            return joined(pickle.dumps(Command()), split(content)[1])
        case _:
            return rng.randbytes(rng.randrange(200))


def forge(content, rng, others):
    """Change the description or the tensors and compute a valid hash, as an attacker would."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        description, tensors = container.read(file.name)
    if rng.randrange(4) == 0:
        name = rng.choice(list(tensors))
        match rng.randrange(4):
            case 0:
                del tensors[name]
            case 1:
                tensors[name] = tensors[name].ravel()[:-1]
            case 2:
                tensors[name + ".more"] = tensors[name]
            case 3:
                tensors[name] = tensors[name].astype(
                    rng.choice(("<f8", "<f4", "<i8", "|u1", "|b1"))
                )
    else:
        for _ in range(rng.choice((1, 1, 3))):
            description["model"] = alter(description["model"], rng)
    try:
        return container.to_bytes(description, tensors)
    except ModelFileError:
        return b""


class Command:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self):
        import os

        return os.system, (f"touch {Path(tempfile.gettempdir()) / 'quadric_was_here'}",)


def alter(tree, rng):
    """Return a copy of JSON data with one value replaced, removed or copied elsewhere."""
    tree = json.loads(json.dumps(tree))
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if isinstance(tree, (dict, list)):
        walk(tree)
    if not places:
        return rng.choice(JUNK)
    node, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del node[key]
        case 1:
            other, at = rng.choice(places)
            node[key] = json.loads(json.dumps(other[at]))
        case _:
            node[key] = json.loads(json.dumps(rng.choice(JUNK)))
    return tree


MUTATIONS = (
    flip_bits,
    flip_bits,
    flip_header,
    set_bytes,
    cut,
    lengthen,
    swap_headers,
    swap_bodies,
    huge_header,
    change_entry,
    change_entry,
    change_description,
    deep,
    many_pieces,
    other_formats,
    forge,
    forge,
    forge,
)


def content_of(model):
    return container.to_bytes(*describe(model))


def run(count, seed):
    rng = random.Random(seed)
    models = {name: make(name) for name in NAMES}
    originals = [content_of(model) for model, _ in models.values()]
    result = {"same": 0, "refused": 0, "forged": 0, "kinds": {}, "memory": 0.0, "seconds": 0.0}
    events, watching = [], False

    def hook(event, arguments):
        if watching and event.startswith(FORBIDDEN):
            events.append(f"{event} {arguments!r:.200}")

    sys.addaudithook(hook)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.quadric"
        path.write_bytes(originals[0])
        quadric.load(path)  # import everything before monitoring starts
        tracemalloc.start()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, resource.RLIM_INFINITY))
        for _ in range(count):
            content = rng.choice(originals)
            mutation = rng.choice(MUTATIONS)
            changed = mutation(content, rng, originals)
            path.write_bytes(changed)
            tracemalloc.reset_peak()
            before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
            signal.alarm(20)  # a load that hangs ends the process
            watching = True
            try:
                model = quadric.load(path)
            except ModelFileError as error:
                outcome, model = "refused", str(error)
            else:
                outcome = "loaded"
            watching = False
            signal.alarm(0)
            seconds = time.perf_counter() - start
            memory = tracemalloc.get_traced_memory()[1] - before - SPARE
            if outcome == "loaded":
                same = content_of(model) == content if mutation is not forge else False
                outcome = "same" if same else "forged"
                assert same or mutation is forge, (mutation.__name__, "gave another model")
            assert not events, (mutation.__name__, events)
            result[outcome] += 1
            kinds = result["kinds"].setdefault(mutation.__name__, {})
            kinds[outcome] = kinds.get(outcome, 0) + 1
            result["memory"] = max(result["memory"], memory / max(len(changed), 1))
            result["seconds"] = max(result["seconds"], seconds)
    assert not (Path(tempfile.gettempdir()) / "quadric_was_here").exists()
    return result


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
