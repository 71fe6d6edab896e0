"""Process-wide settings."""

import numbers
import re

__all__ = ["get_config", "set_config"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_settings: dict[str, int | None] = {"max_memory": None}


def set_config(*, max_memory: int | str | None) -> None:
    """Change a setting.

    Parameters
    ----------
    max_memory : int, str or None
        Limit on memory, as a number of bytes or a string such as '8 GB'. Training that is
        estimated to need more raises `MemoryLimitError`. None means the default limit: 80 % of the
        memory available to the process, taking the limits of its control group into account.

    Examples
    --------
    >>> set_config(max_memory="8 GB")
    >>> get_config()
    {'max_memory': 8589934592}
    >>> set_config(max_memory=None)
    """
    _settings["max_memory"] = _as_bytes(max_memory)


def get_config() -> dict[str, int | None]:
    """Return the current settings.

    Returns
    -------
    dict
        A copy of the settings.
    """
    return dict(_settings)


def _as_bytes(value: int | str | None) -> int | None:
    if value is None:
        return None
    size = 0
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", value, re.IGNORECASE)
        if match:
            size = int(float(match[1]) * _UNITS[match[2].upper()])
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool):
        size = int(value)
    if size > 0:
        return size
    raise ValueError(
        "max_memory must be a positive whole number of bytes, a string such as '8 GB', or None. "
        f"Got {value!r} instead."
    )
