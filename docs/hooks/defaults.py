"""Read the defaults in the reference from the signatures, and the types from the docstrings.

The parser of numpydoc docstrings takes the first of the values in braces as the default, gives
several parameters that share an entry the default of the first, and does not see inherited
signatures. This extension of griffe, which mkdocstrings loads, asks the imported package instead.

The parser also splits an entry of several parameters, although its text is about all of them, and
drops the quotes and braces of types. The extension joins such entries and restores the types.
"""

import importlib
import inspect
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import griffe

ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+?)(?:, optional|,? default[=:].*)?$", re.M)


class Defaults(griffe.Extension):
    """Set the default of every parameter in a docstring to that of the signature."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Correct the docstrings of a package after it is read."""
        correct(pkg)


def correct(parent: griffe.Object) -> None:
    """Correct the docstrings of an object and its members."""
    if isinstance(parent, griffe.Class | griffe.Function) and parent.docstring:
        sections = [one for one in parent.docstring.parsed if one.kind.value == "parameters"]
        signature = parameters(parent.path) if sections else {}
        entries = dict(reversed(ENTRY.findall(parent.docstring.value)))  # parameters come first
        for section in sections:
            for parameter in section.value:
                # a default that only the source can show, such as a lambda, stays as it is
                shown = default(signature, parameter.name)
                parameter.value = parameter.value if shown == "..." else shown
            section.value[:] = joined(section.value, entries)
    for member in parent.members.values():
        if isinstance(member, griffe.Object):
            correct(member)


def joined(
    values: list[griffe.DocstringParameter], entries: Mapping[str, str]
) -> list[griffe.DocstringParameter]:
    """Return one value for the parameters of an entry, with the entry's type and their defaults.

    Those without a default remain separate from those with one.
    """
    entry_of = {name: entry for entry in entries for name in entry.split(", ")}
    found = []
    for (entry, _), group in groupby(
        values, lambda one: (entry_of.get(one.name, one.name), one.value is None)
    ):
        first, *others = group
        shown = [str(one.value) for one in (first, *others) if one.value is not None]
        first.name = ", ".join(one.name for one in (first, *others))
        if others and shown:
            first.value = shown[0] if len(set(shown)) == 1 else ", ".join(shown)
        kind = entries.get(str(entry), "").replace("`", "")
        if re.search("[{,'\"]", kind):  # otherwise the parser's annotation has links
            first.annotation = kind
        found.append(first)
    return found


def parameters(path: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class or function, {} if Python knows no signature."""
    try:
        return inspect.signature(found(path)).parameters
    except (AttributeError, TypeError, ValueError):
        return {}


def found(path: str) -> Any:
    """Return what a dotted path names.

    >>> found("quadric.network.Network.create").__name__
    'create'
    """
    value: Any = importlib.import_module(path.partition(".")[0])
    prefix = path.partition(".")[0]
    for name in path.split(".")[1:]:
        prefix = f"{prefix}.{name}"
        try:
            value = importlib.import_module(prefix)
        except ImportError:
            value = getattr(value, name)
    return value


def default(signature: Mapping[str, inspect.Parameter], name: str) -> str | None:
    """Return a default as text: None without one, '...' if only the source can show it.

    >>> def function(a, b="x", *, c=None, d=len, e=lambda: 0): ...
    >>> [default(inspect.signature(function).parameters, name) for name in "abcde"]
    [None, "'x'", 'None', 'len', '...']
    """
    parameter = signature.get(name.lstrip("*"))
    if parameter is None or parameter.default is parameter.empty:
        return None
    value = parameter.default
    if value is None or isinstance(value, str | bool | int | float | tuple):
        return repr(value)
    return getattr(value, "__name__", "...").replace("<lambda>", "...")
