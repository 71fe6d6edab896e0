"""Examine files in worker processes, because a file may crash its process."""

import contextlib
import faulthandler
import io
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import tracemalloc
from pathlib import Path

import quadric
from quadric.errors import ModelFileError
from quadric.files._describe import describe
from tests.support.forging.files import ATTACKS, FEW, forged, seal
from tests.support.forging.uses import COMMANDS, USES, told
from tests.support.processes import FORK

SPARE = 2**19  # bytes of memory that the smallest file may need
MOST_MEMORY = 10  # times the file's size
ROOM = 2**30  # bytes of additional address space
SECONDS = 10  # of CPU time per file
PATIENCE = 120  # seconds of wall time, for a process that waits
FILES_PER_WORKER = 1000
# ---- audit events that an untrusted file must not cause ---------------------------------------

FORBIDDEN = (
    "compile",
    "exec",
    "import",
    "code.",
    "os.",
    "subprocess.",
    "pickle.",
    "marshal.",
    "socket.",
    "shutil.",
    "ctypes.",
    "tempfile.",
    "urllib.",
    "http.",
    "sqlite3.",
    "open",
    "mmap.",
)
HARMLESS = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv")  # typer sets a variable
OF_IMPORTS = ("exec", "compile", "marshal.loads", "code.__new__")
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class HarmError(BaseException):
    """Raised by the audit hook to stop a forbidden action."""


class Watch:
    """Record and stop forbidden actions while it is active.

    Files may be written in `directory`. A library that is already imported may import more of its
    own modules.
    """

    def __init__(self, directory):
        self.directory, self.on, self.seen = f"{directory}{os.sep}", False, []
        self.packages = {name.partition(".")[0] for name in sys.modules}
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if not self.on or not event.startswith(FORBIDDEN) or self._may(event, arguments):
            return
        self.on = False
        self.seen.append(f"{event} {arguments!r:.150}")
        raise HarmError(self.seen[-1])

    def _may(self, event, arguments):
        if event in HARMLESS or (event in OF_IMPORTS and _importing()):
            return True
        if event == "import":
            return arguments[0].partition(".")[0] in self.packages
        if event == "open":
            path, _, flags = arguments
            return not (flags or 0) & TO_WRITE or self._inside(path)
        if event == "os.chmod" and isinstance(arguments[0], int):  # of an open file
            return True
        paths = [value for value in arguments if isinstance(value, (str, bytes, os.PathLike))]
        return event.startswith("os.") and bool(paths) and all(map(self._inside, paths))

    def _inside(self, path):
        return os.fsdecode(path).startswith(self.directory) if not isinstance(path, int) else False


def _importing():
    return any(
        frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        for frame, _ in traceback.walk_stack(None)
    )


# ---- the workers ---------------------------------------------------------------------------


def outcomes(seeds, originals):
    """Yield the outcome of each file, from workers that are replaced when they die.

    An outcome is a dict: 'seed', 'name' (of the original), 'said' (what was changed), 'refused' (if
    it was), 'uses' (those tried), 'told' (those that raised an allowed error), 'memory' (relative
    to the file's size) and 'failures' (pairs of a cause and a traceback).
    """
    seeds = list(seeds)
    while seeds:
        with tempfile.TemporaryDirectory() as directory:
            reader, writer = FORK.Pipe(duplex=False)
            some = seeds[:FILES_PER_WORKER]
            worker = FORK.Process(target=_work, args=(some, originals, directory, writer.send))
            worker.start()
            writer.close()
            at = None
            with reader, contextlib.suppress(EOFError):
                while True:
                    message = reader.recv()
                    at = message if "use" in message else None
                    if at is None:
                        seeds.remove(message["seed"])
                        yield message
            worker.join()
            if at is not None:
                seeds.remove(at["seed"])
                yield _death(at, worker.exitcode, (Path(directory) / "trace").read_text())
            elif worker.exitcode:
                raise RuntimeError("a worker failed between two files")


def _death(at, code, trace):
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    frames = re.findall(r'File "([^"]*)", line \d+ in (\S+)', trace)
    where = _where(*frames[0]) if frames else ""
    failure = (f"{at['use']}: died of {name} ({where})", trace)
    return {**at, "uses": [], "told": [], "memory": 0.0, "failures": [failure]}


# ---- in a worker ---------------------------------------------------------------------------


def _work(seeds, originals, directory, send):
    path = Path(directory) / "model.quadric"
    _warm_up_commands(originals, path)
    trace = (Path(directory) / "trace").open("w")
    _limit(trace)
    watch = Watch(directory)
    for seed in seeds:
        trace.truncate(0)
        send({"seed": seed, "name": "", "said": [], "use": "forge"})
        file = forged(seed, originals)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(PATIENCE)
        send(_examine(seed, file, path, watch, send))


def _limit(trace):
    """End the process at the limits of CPU and wall time; write its stack to `trace`."""
    sys.dont_write_bytecode = True
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(trace, all_threads=False)
    for number in (signal.SIGALRM, signal.SIGPROF):
        faulthandler.register(number, trace, all_threads=False, chain=True)


def _examine(seed, file, path, watch, send):
    """Load a file and try all uses, or some of them, chosen by the seed."""
    original, content, said = file
    path.write_bytes(content)
    about = {"seed": seed, "name": original.name, "said": said}
    result = {**about, "uses": [], "told": [], "failures": []}
    rng = random.Random(f"uses of {seed}")

    def attempt(use, action):
        send({**about, "use": use})
        watch.seen.clear()
        try:
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                watch.on = True
                return action()
        except HarmError:
            pass
        except Exception as error:
            watch.on = False
            if use == "load" and isinstance(error, ModelFileError):
                result["refused"] = str(error)
            elif told(use, error, original.X):
                result["told"].append(use)
            else:
                result["failures"].append(_failure(use, error))
        finally:
            watch.on = False
            harm = [*watch.seen, *_children()]
            result["failures"] += [(f"{use}: {_alike(what)}", what) for what in harm]

    tracemalloc.start()
    model = attempt("load", lambda: quadric.load(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result["memory"] = max(0.0, (peak - SPARE) / max(len(content), 1))
    if result["memory"] > MOST_MEMORY:
        result["failures"].append((f"load: {MOST_MEMORY} times the file's size in memory", ""))
    if model is not None and said[0].startswith("damage") and not same(model, original):
        result["failures"].append(("load: another model than the undamaged file's", said[0]))
    for use, (action, share) in (COMMANDS if model is None else USES | COMMANDS).items():
        if seed in ATTACKS or rng.random() < share:
            result["uses"].append(use)
            attempt(use, lambda action=action: action(model, original.X, original.y, path))
    return result


def same(model, original):
    """Return whether a model is, bit for bit, the one of the original file."""
    description, tensors = describe(model)
    description = {**original.description, "model": description["model"]}
    return seal(description, tensors) == seal(original.description, original.tensors)


def _children():
    """End the remaining child processes; return a message if there were any."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for child in found:
        os.kill(int(child), signal.SIGKILL)
        os.waitpid(int(child), 0)
    return ["a process was started"] if found else []


def _failure(use, error):
    """Return a cause, equal for files that fail in the same way, and the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if "/tests/" not in frame.filename] or frames
    text = _alike(str(error).split("\n")[0])
    cause = f"{use}: {type(error).__name__}: {text} ({_where(inner[-1].filename, inner[-1].name)})"
    return cause, "".join(traceback.format_exception(error))[-3000:]


def _where(filename, function):
    return f"{'/'.join(Path(filename).parts[-2:])}:{function}"


def _alike(text):
    """Remove the numbers and names that differ from file to file."""
    text = re.sub(r"\S*/", "/", text)
    text = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "N", text)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\[.*\]", "Q", text)[:90]


# ---- before any file -----------------------------------------------------------------------


def warm_up(originals):
    """Use every original once, so that everything is imported; the originals must not fail."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.quadric"
        for original in originals:
            name, description, tensors, X, y = original
            path.write_bytes(seal(description, tensors))
            model = quadric.load(path)
            assert same(model, original), name
            for use, (action, _) in USES.items():
                try:
                    action(model, X, y, path)
                except Exception as error:
                    if not told(use, error, X):
                        raise AssertionError(f"{use} of the original {name}") from error


def _warm_up_commands(originals, path):
    """Warm up commands in the worker, because they start threads, which a fork would not copy."""
    for name, description, tensors, X, y in originals:
        if name in ("trained", FEW[0]):
            path.write_bytes(seal(description, tensors))
            for action, _ in COMMANDS.values():
                action(None, X, y, path)
    path.write_bytes(b"refused")
    COMMANDS["info_command"][0](None, None, None, path)
