"""Audit events that an untrusted file must not cause."""

import os
import sys

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
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
