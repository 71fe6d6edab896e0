"""Schedulers and workers of Dask, each a process that can be killed."""

import itertools
import json
import time

import pytest

from tests.support import processes

psutil = pytest.importorskip("psutil")


class Cluster:
    """A scheduler and its workers, each a process that can be killed."""

    def __init__(self, directory, **environment):
        self.directory, self.environment = directory, environment
        self.workers = []
        self._names = itertools.count()
        told = directory / f"scheduler {id(self)}.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        self.scheduler = self._start("scheduler", *options, "--scheduler-file", str(told))
        deadline = time.monotonic() + 60
        while not told.exists() or not told.read_text().endswith("}"):
            assert time.monotonic() < deadline
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(told.read_text())["address"]

    def _start(self, part, *options, **environment):
        command = ["-m", f"distributed.cli.dask_{part}", *options]
        return processes.Started(command, **(self.environment | environment))

    def add_worker(self, nanny="--no-nanny", threads=2, **environment):
        name = f"worker{next(self._names)}"
        options = ("--name", name, "--nthreads", str(threads), nanny, "--no-dashboard")
        options = (*options, "--host", "127.0.0.1", "--memory-limit", "0")
        options = (*options, "--local-directory", str(self.directory / name))
        self.workers.append(self._start("worker", self.address, *options, **environment))
        return self

    def wait(self, count=1):
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        return self

    def close(self):
        for process in (*self.workers, self.scheduler):
            for child in children(process):
                child.kill()
            process.kill()
            process.wait()


def children(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_behind_nanny(nanny):
    """Kill the worker's process; return False if there is currently none."""
    for child in children(nanny):
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                return True
        except psutil.Error:
            pass
    return False
