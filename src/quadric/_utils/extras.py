"""Optional dependencies, one error for all of them."""

from importlib.util import find_spec


def require(*packages: str, extra: str, by: str) -> None:
    """Raise an ImportError with the line to type if one of the packages is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ImportError(f'{by} needs {" and ".join(missing)}: pip install "quadric[{extra}]"')
