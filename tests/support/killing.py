"""Fork a child, and kill it with SIGKILL at any moment."""

import signal
from multiprocessing import get_context

FORK = get_context("fork")


def killed(work, wait):
    """Run `work()` in a child and kill it after `wait()`; only the kill may end the child."""
    child = FORK.Process(target=work)
    child.start()
    wait()
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
