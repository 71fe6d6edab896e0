"""The check that refuses a file."""

from quadric.errors import ModelFileError


def expect(true: object, problem: str) -> None:
    """Raise ModelFileError with a description of the problem unless `true`."""
    if not true:
        raise ModelFileError(problem)
