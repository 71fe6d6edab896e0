"""Fork a child, and kill it with SIGKILL at any moment."""

import os
import signal


def killed(work, wait):
    """Run `work(pipe)` in a child and kill it after `wait()`; return what it wrote to the pipe.

    Only the kill may end the child.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(writing)
        finally:
            os._exit(1)
    os.close(writing)
    wait()
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with open(reading, "rb") as stream:
        return stream.read()
