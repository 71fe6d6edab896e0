"""Optional dependencies."""

from importlib.util import find_spec


def require(*packages: str, extra: str, by: str) -> None:
    """Raise ImportError with the pip command to run if one of the packages is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ImportError(f'{by} needs {" and ".join(missing)}: pip install "quadric[{extra}]"')
