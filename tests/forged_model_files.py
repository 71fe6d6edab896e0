"""Thousands of forged model files, each loaded and used in a process that may do no harm.

    python -m tests.forged_model_files COUNT SEED
    python -m tests.forged_model_files --replay SEED [FILE]

prints, as JSON, how many were refused, how many gave a model that works, and for each cause of a
failure an example. A file that does anything else, ends the process or takes too long is a failure.
`--replay` does again what was done with one file, with the traceback, and writes the forged file to
FILE; its SEED is one that the summary names, or the name of an attack in `tests.known_attacks`.
"""

import contextlib
import faulthandler
import io
import json
import os
import pickle
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
              "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")  # fmt: skip
if __name__ == "__main__":
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"), MPLBACKEND="Agg")  # before NumPy starts any

import quadric
from quadric.errors import ModelFileError
from quadric.model_file import container
from tests import make_forgery_fixtures
from tests.forgeries import forge, seal
from tests.known_attacks import ATTACKS
from tests.model_file_models import MODELS, make, numbers, table
from tests.uses_of_models import COMMANDS, USES, info_command, told

FIXTURES = Path(__file__).parent / "fixtures"
SPARE = 2**19  # of memory, which the smallest of files may take
MOST_MEMORY = 10  # times the file's size
ROOM = 2**30  # of address space beyond what the process has at its start
SECONDS = 10  # of processor time for a file
PATIENCE = 120  # seconds on the clock, for what waits and does not compute
FILES_PER_WORKER = 1000

FEW = ("network reduced float32", "classes objects", "multi-label", "class weights", "logistic",
       "partial fit", "min max", "imputer", "columns by number", "given categories")  # fmt: skip

# ---- originals ----


def _format_1_data():
    rows = json.loads((FIXTURES / "format1.json").read_text())["X"]
    return {"format1_pipeline": table()[0], "format1_network": quadric.arrays.np.array(rows)}


def originals(seed):
    """Of each model: name, description, tensors, its inputs and its answers to them.

    Seeds below a million are for a small sample, of a few of the models and all fixtures.
    """
    found = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        for name in FEW if seed < 10**6 else MODELS:
            model, X = make(name)
            quadric.save(model, path)
            found.append((name, *container.read(path), X, _answers(model, X)))
    inputs = {f"forgery_{name}": X for name, X in make_forgery_fixtures.data().items()}
    inputs |= _format_1_data()
    for path in sorted(FIXTURES.glob("*.quadric")):
        model, X = quadric.load(path), inputs[path.stem]
        found.append((path.stem, *container.read(path), X, _answers(model, X)))
    return found


def _answers(model, X):
    return model.predict(X) if hasattr(model, "predict") else None


def forged(seed, files):
    """The original, the content of the forged file, and what was changed."""
    if seed in ATTACKS:
        fixture, attack = ATTACKS[seed]
        original = next(file for file in files if file[0] == f"forgery_{fixture}")
        description, tensors = json.loads(json.dumps(original[1])), dict(original[2])
        attack(description, tensors)
        return original, seal(description, tensors), [f"attack: {seed}"]
    rng = random.Random(seed)
    while True:
        original, other = rng.choice(files), rng.choice(files)
        content, said = forge(original[1], original[2], rng, other[1:3])
        if content is not None and said:
            return original, content, said


# ---- what a process may not do, as the interpreter announces it ----

FORBIDDEN = (
    "compile", "exec", "import", "code.", "os.", "subprocess.", "pickle.", "marshal.", "socket.",
    "shutil.", "ctypes.", "tempfile.", "urllib.", "http.", "sqlite3.", "_thread.", "open", "mmap.",
)  # fmt: skip
HARMLESS = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv")  # typer sets a variable
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class HarmError(BaseException):
    """Raised in the midst of what was forbidden, so that it does not happen."""


class Watch:
    """Notes what is forbidden while it is on; files may be written in `directory` only."""

    def __init__(self, directory):
        self.directory, self.on, self.seen = f"{directory}{os.sep}", False, []
        self.packages = {name.partition(".")[0] for name in sys.modules}
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if not self.on or not event.startswith(FORBIDDEN) or event in HARMLESS:
            return
        if event == "open" and not (arguments[2] or 0) & TO_WRITE:
            return
        if event == "import" and arguments[0].partition(".")[0] in self.packages:
            return  # a library imports a part of itself when it needs it
        if event in ("exec", "compile", "marshal.loads", "code.__new__") and _importing():
            return
        paths = [os.fspath(a) for a in arguments if isinstance(a, (str, os.PathLike))]
        if event.startswith(("open", "os.", "tempfile.")) and paths:
            if event == "open":
                paths = paths[:1]
            if all(path.startswith(self.directory) for path in paths):
                return
        if event == "os.chmod" and isinstance(arguments[0], int):  # of an open file
            return
        self.on = False
        self.seen.append(f"{event} {arguments!r:.150}")
        if event not in ("import", "compile", "exec"):
            raise HarmError(self.seen[-1])
        self.on = True


def _importing():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


# ---- one file ----


def examine(seed, file, path, watch, report):
    """Load and use one file; `report` is told of each use before it starts."""
    (name, _, _, X, y), content, said = file
    path.write_bytes(content)
    result = {"seed": seed, "name": name, "said": said, "told": [], "failures": []}
    rng = random.Random(f"uses of {seed}")
    model = None

    def attempt(use, action):
        report(use)
        watch.seen.clear()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                watch.on = True
                try:
                    return action()
                finally:
                    watch.on = False
        except Exception as error:
            if use == "load" and isinstance(error, ModelFileError):
                result["refused"] = str(error)
            elif told(use, error):
                result["told"].append(use)
            else:
                result["failures"].append(failure(use, error))
        except HarmError:
            pass
        finally:
            if watch.seen:
                result["failures"].append((f"{use}: {watch.seen[0]}", ""))
        return None

    tracemalloc.start()
    model = attempt("load", lambda: quadric.load(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result["memory"] = (peak - SPARE) / len(content)
    if result["memory"] > MOST_MEMORY:
        result["failures"].append((f"load: {MOST_MEMORY} times the file's size in memory", ""))
    uses = COMMANDS if model is None else USES | COMMANDS
    for use, (action, share) in uses.items():
        if seed in ATTACKS or rng.random() < share:
            attempt(use, lambda action=action: action(model, X, y, path))
            result[use] = 1
    return result


def failure(use, error):
    """A cause, the same for all files that fail alike, and the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if "/tests/" not in frame.filename] or frames
    where = f"{'/'.join(Path(inner[-1].filename).parts[-2:])}:{inner[-1].name}"
    text = re.sub(r"\S*/", "/", str(error).split("\n")[0])
    text = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "N", text)
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\[.*\]", "Q", text)
    trace = "".join(traceback.format_exception(error))
    return (f"{use}: {type(error).__name__}: {text[:90]} ({where})", trace[-3000:])


# ---- workers: processes that may die of a file ----


def work(seeds, files, directory, send):
    """What a worker does until it has done all seeds or dies."""
    sys.dont_write_bytecode = True
    watch = Watch(directory)
    path = Path(directory) / "model.quadric"
    _warm_up_commands(files, path)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    trace = (Path(directory) / "trace").open("w")
    faulthandler.enable(trace, all_threads=False)
    for number in (signal.SIGALRM, signal.SIGPROF):
        faulthandler.register(number, trace, all_threads=False, chain=True)
    for seed in seeds:
        trace.seek(0)
        trace.truncate()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(PATIENCE)
        send({"at": seed, "use": "forge", "said": []})
        file = forged(seed, files)

        def report(use, seed=seed, file=file):
            send({"at": seed, "use": use, "said": file[2], "name": file[0][0]})

        send(examine(seed, file, path, watch, report))
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        if children.exists() and children.read_text():
            raise SystemExit(f"a process was started: {children.read_text()}")


def outcomes(seeds, files):
    """The result of each file, in workers that are replaced when they die."""
    seeds = list(seeds)
    while seeds:
        with tempfile.TemporaryDirectory() as directory:
            reader, writer = os.pipe()
            sys.stdout.flush()
            worker = os.fork()
            if worker == 0:
                os.close(reader)
                _be_worker(seeds[:FILES_PER_WORKER], files, directory, writer)
            os.close(writer)
            at = {}
            with open(reader, "rb") as stream:
                while True:
                    try:
                        message = pickle.load(stream)
                    except (EOFError, pickle.UnpicklingError):
                        break
                    if "at" in message:
                        at = message
                        continue
                    at = {}
                    seeds.remove(message["seed"])
                    yield message
            status = os.waitpid(worker, 0)[1]
            if at or status:
                trace = (Path(directory) / "trace").read_text()
                yield _death(at, status, trace)
                seeds.remove(at["at"])


def _be_worker(seeds, files, directory, writer):
    try:
        with open(writer, "wb") as stream:

            def send(message):
                pickle.dump(message, stream)
                stream.flush()

            work(seeds, files, directory, send)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _death(at, status, trace):
    name = signal.Signals(status & 127).name if status & 127 else f"exit code {status >> 8}"
    frames = re.findall(r'File "([^"]*)", line \d+ in (\S+)', trace)
    where = next((f"{'/'.join(Path(p).parts[-2:])}:{function}" for p, function in frames), "")
    return {
        "seed": at["at"], "name": at.get("name"), "said": at["said"], "told": [], "memory": 0.0,
        "failures": [(f"{at['use']}: died of {name} ({where})", trace)],
    }  # fmt: skip


# ---- many files ----


def run(count, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = originals(seed * 10**6)
        _warm_up(files)
        seeds = [*ATTACKS, *range(seed * 10**6, seed * 10**6 + count)]
        result = {"files": 0, "refused": 0, "works": 0, "failed": 0, "memory": 0.0}
        uses, tells, causes = Counter(), Counter(), {}
        for outcome in outcomes(seeds, files):
            result["files"] += 1
            result["memory"] = max(result["memory"], outcome["memory"])
            uses.update(use for use in (*USES, *COMMANDS) if use in outcome)
            tells.update(outcome["told"])
            kind = "failed" if outcome["failures"] else "refused" if "refused" in outcome else "works"
            result[kind] += 1
            for cause, trace in outcome["failures"]:
                _add(causes.setdefault(cause, {"count": 0, "seeds": []}), outcome, trace)
    result |= {"uses": dict(uses), "told": dict(tells)}
    result["causes"] = dict(sorted(causes.items(), key=lambda item: -item[1]["count"]))
    return result


def _add(found, outcome, trace):
    """Of each cause, the count, some seeds, and the example with the fewest changes."""
    found["count"] += 1
    found["seeds"] = [*found["seeds"], outcome["seed"]][:5]
    if "example" not in found or len(outcome["said"]) < len(found["example"]["said"]):
        found["example"] = {k: outcome[k] for k in ("seed", "name", "said")} | {"trace": trace}


def _warm_up(files):
    """Use every original once: all that will be imported is, and nothing of it may fail."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.quadric"
        for name, description, tensors, X, y in files:
            path.write_bytes(seal(description, tensors))
            model = quadric.load(path)
            for use, (action, _) in USES.items():
                try:
                    action(model, X, y, path)
                except Exception as error:
                    if not told(use, error):
                        raise AssertionError(f"{use} of the original {name}") from error


def _warm_up_commands(files, path):
    """In the worker: they start threads, which a fork would not copy."""
    for name, description, tensors, X, y in files:
        if name in ("forgery_trained", "forgery_network"):
            path.write_bytes(seal(description, tensors))
            for action, _ in COMMANDS.values():
                action(None, X, y, path)
    path.write_bytes(b"refused")
    info_command(None, None, None, path)


def replay(seed, keep=None):
    """One file again; prints all that is known of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed = seed if seed in ATTACKS else int(seed)
        files = originals(0 if seed in ATTACKS else seed)
        if keep is not None:
            Path(keep).write_bytes(forged(seed, files)[1])
        _warm_up(files)
        for outcome in outcomes([seed], files):
            print(json.dumps({k: v for k, v in outcome.items() if k != "failures"}, indent=1))
            for cause, trace in outcome["failures"]:
                print(cause, trace, sep="\n")


if __name__ == "__main__":
    if sys.argv[1] == "--replay":
        replay(*sys.argv[2:])
    else:
        print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2])), indent=1))
