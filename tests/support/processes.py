"""Run helpers and scripts in processes of their own, which may crash or be killed.

    python -m tests.support.processes MODULE.FUNCTION NUMBER ...

This command prints, as JSON, what a function of a module in this package returns for these numbers.

`Started` and `run` start Python processes that have already imported scikit-learn. Importing it
takes longer than most commands in the tests. These processes are forked from a process that has
only imported it. Like the processes of `subprocess`, they can be sent signals, killed and given
limits.
"""

import importlib
import json
import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import weakref
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

FORK = get_context("fork")
# threads make a fork unsafe
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")},
    "POLARS_MAX_THREADS": "1",
    "MPLBACKEND": "Agg",
}


def killed(work, wait):
    """Run `work()` in a child and kill it after `wait()`; only the kill may end the child."""
    child = FORK.Process(target=work)
    child.start()
    wait()
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def answer_of(function, *numbers):
    """Return what a function, as in 'killing.saves', returns in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.processes", function, *map(str, numbers)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ONE_THREAD,
    )
    assert (done.returncode, done.stderr[-3000:]) == (0, "")
    return json.loads(done.stdout)


def output_of(script, **environment):
    """Run a script and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- processes that have already imported scikit-learn -----------------------------------


IMPORTED = ["sklearn.linear_model", "numba", "quadric.apps.shell.tables", "quadric.estimators"]

forkserver = multiprocessing.get_context("forkserver")
forkserver.set_forkserver_preload(IMPORTED)


class Started:
    """A running process, with the methods of `subprocess.Popen`."""

    def __init__(self, arguments, *, text="", cwd=None, limit=None, **environment):
        self._files = place = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, place)
        for number, content in enumerate([text, "", ""]):  # stdin, stdout, stderr
            (place / str(number)).write_text(content)
        self.args = [*map(str, arguments)]
        self._process = forkserver.Process(
            target=_run,
            args=(self.args, place, str(cwd or Path.cwd()), limit, os.environ | environment),
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    poll = returncode.fget

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def output(self, number=1):
        """Return what the process has written to stdout (1) or stderr (2) so far."""
        return (self._files / str(number)).read_text()

    def communicate(self, timeout=None):
        self.wait(timeout)
        return self.output(1), self.output(2)


def run(arguments, **options):
    """Run `python ARGUMENTS`, which begin with -m or -c, as `subprocess.run` does."""
    started = Started(arguments, **options)
    output, errors = started.communicate()
    return subprocess.CompletedProcess(started.args, started.returncode, output, errors)


def _run(arguments, place, cwd, limit, environment):
    for number, mode in enumerate([os.O_RDONLY, os.O_WRONLY, os.O_WRONLY]):
        os.dup2(os.open(place / str(number), mode), number)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, encoding=encoding, closefd=False)
        for number, mode in enumerate(["r", "w", "w"])
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    if limit is not None:
        limit()
    how, what, *sys.argv[1:] = arguments
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except KeyboardInterrupt:  # Python itself also ends such a process with the signal
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


# ---- a user without rights ---------------------------------------------------------------


NOBODY = 65534


@contextmanager
def without_rights():
    """Run as an unprivileged user, because root can read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


if __name__ == "__main__":
    name, _, function = sys.argv[1].partition(".")
    module = importlib.import_module(f"tests.support.{name}")
    print(json.dumps(getattr(module, function)(*map(int, sys.argv[2:]))))
