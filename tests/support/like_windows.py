"""Make a process resemble one on Windows, as far as quadric's own code can tell.

Modules and functions that Windows lacks are removed, and a file cannot be renamed or deleted while
this process has it open. Text that quadric reads or writes without naming an encoding is an error;
start the process with `-X warn_default_encoding`. Other packages are imported first, because they
choose their functions by system when they are imported.
"""

import ctypes
import errno
import fcntl
import importlib
import os
import pkgutil
import shutil
import sys
import tempfile
import types
import warnings
from pathlib import Path

ABSENT_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios")
ABSENT_NAMES = (
    *("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "geteuid", "getuid", "killpg"),
    *("major", "makedev", "minor", "mkfifo", "mknod", "pread", "pwrite", "sched_getaffinity"),
    *("sched_setaffinity", "setsid", "statvfs", "sysconf", "sysconf_names", "uname"),
)
SHARING_VIOLATION = 32
AVAILABLE = 3 * 2**30  # bytes of memory


class System(types.ModuleType):
    """The module `sys` of a process on Windows."""

    platform = "win32"

    def __getattr__(self, name):
        return getattr(sys, name)


class Locks(types.ModuleType):
    """The module `msvcrt`: locks on bytes at the current position, which a handle takes once.

    They are locks of the whole file here, which also belong to a handle. SQLite does not see them.
    """

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self):
        super().__init__("msvcrt")
        self.held = set()

    def locking(self, handle, mode, count):
        place = handle, os.lseek(handle, 0, os.SEEK_CUR)
        assert count == 1
        assert place[1] < 2**31  # the position is a C long
        if (mode == self.LK_UNLCK) != (place in self.held):
            raise PermissionError(errno.EACCES, "Permission denied")
        if mode == self.LK_UNLCK:
            fcntl.flock(handle, fcntl.LOCK_UN)
            self.held.remove(place)
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PermissionError(errno.EACCES, "Permission denied") from None
        self.held.add(place)


def is_open(path):
    """Return whether this process has the file open or mapped into memory."""
    path = os.path.realpath(path)
    for handle in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{handle}") == path:
                return True
        except FileNotFoundError:  # the handle of the list itself
            pass
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    return any(line.endswith(f" {path}") for line in maps.splitlines())


def refusing_open_files(function):
    """Return the function with Windows' error for files that are open."""

    def checked(*paths, **options):
        for path in paths:
            if os.path.isfile(path) and is_open(path):
                error = PermissionError(errno.EACCES, "The file is in use", os.fspath(path))
                error.winerror = SHARING_VIOLATION
                raise error
        return function(*paths, **options)

    return checked


def memory_status(reference):
    status = reference._obj
    assert status[0] == ctypes.sizeof(status) == 64
    status[1], status[2] = 2 * AVAILABLE, AVAILABLE
    return 1


def named_temporary_file(*arguments, delete=True, **options):
    raise AssertionError("Windows does not open such a file a second time")


def modules_of(package):
    """Return the names of all modules of a package, and its own."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(module.name for module in found)]


def imported_on_windows(names, others=()):
    """Import modules of quadric as on Windows, after the `others`; return them."""
    for other in others:
        importlib.import_module(other)
    sys.modules["msvcrt"] = Locks()
    for name in ABSENT_MODULES:
        sys.modules[name] = None  # the import fails
    for name in ABSENT_NAMES:
        if hasattr(os, name):
            delattr(os, name)
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, refusing_open_files(getattr(os, name)))
    os.supports_effective_ids.clear()
    shutil._use_fd_functions = False
    tempfile.NamedTemporaryFile = named_temporary_file
    ctypes.windll = types.SimpleNamespace(
        kernel32=types.SimpleNamespace(GlobalMemoryStatusEx=memory_status)
    )
    if sys.flags.warn_default_encoding:
        warnings.filterwarnings("error", category=EncodingWarning, module="quadric")
    found = [importlib.import_module(name) for name in names]
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "quadric" and hasattr(module, "sys"):
            module.sys = System("sys")
    return found
