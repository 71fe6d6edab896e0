"""Running other programs that fetch data: within a time limit, with one line if they fail."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Lines of chatter that come before or around the reason.
_CHATTER = re.compile(r"^(npm (error|ERR!) (code|syscall|errno)\b|npm (warn|notice)\b|W: |$)", re.I)


class UnavailableError(Exception):
    """A source gave nothing: the reason, in one line."""


def run(command: Sequence[str], directory: Path, seconds: float) -> None:
    """Run a program in `directory`; UnavailableError where it is missing, slow or fails."""
    name, *arguments = command
    program = shutil.which(name)
    if program is None:
        raise UnavailableError(f"{name} is not on the PATH")
    try:
        result = subprocess.run(
            [program, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,  # nobody is there to answer a question
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise UnavailableError(f"{name} does not start ({error.strerror})") from None
    if result.returncode != 0:
        raise UnavailableError(_reason(result.stderr.decode(errors="replace"), result.returncode))


def _reason(errors: str, code: int) -> str:
    lines = [line.strip() for line in errors.splitlines() if not _CHATTER.match(line.strip())]
    return lines[0][:200] if lines else f"exit code {code}"
