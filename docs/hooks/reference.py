"""Write one page for every public module, with all names of its `__all__`.

`mkdocstrings` fills in the docstrings. A name that several modules export is documented once, in
the module that defines it; the other pages link to it.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import quadric

WITHOUT_PAGE = ("quadric.apps.shell",)  # has its own reference, written by command_line.py
INTRODUCTION = """# Reference

All public names, generated from their docstrings. Names and modules that begin with an underscore
are private: they may change without notice.

- [The command line](command_line.md): all commands and options.
- [Errors and warnings](messages.md): the classes and the messages.

| module | about |
|---|---|
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add `reference/index.md` and the pages of the modules."""
    rows = []
    for module in public_modules():
        file = f"{module.__name__}.md"
        files.append(File.generated(config, f"reference/{file}", content=page(module)))
        rows.append(f"| [`{module.__name__}`]({file}) | {summary(module)} |")
    content = INTRODUCTION + "\n".join(rows) + "\n"
    files.append(File.generated(config, "reference/index.md", content=content))


@cache
def public_modules() -> list[ModuleType]:
    """Return the modules that users may import and that list their names."""
    found = [info.name for info in pkgutil.walk_packages(quadric.__path__, "quadric.")]
    public = [name for name in sorted(found) if "._" not in name and name not in WITHOUT_PAGE]
    modules = [quadric, *map(importlib.import_module, public)]
    return [module for module in modules if getattr(module, "__all__", ())]


def public_names(module: ModuleType) -> Iterator[str]:
    """Yield the names that a module exports, without modules and the version."""
    for name in module.__all__:
        if not inspect.ismodule(getattr(module, name)) and name != "__version__":
            yield name


def home(value: Any, name: str) -> str:
    """Return the public module that documents a value: the one nearest to its definition."""
    defined = getattr(value, "__module__", None) or ""
    listing = [module.__name__ for module in public_modules() if exports(module, name, value)]
    near = [module for module in listing if f"{defined}.".startswith(f"{module}.")]
    return max(near or listing, key=len)


def exports(module: ModuleType, name: str, value: Any) -> bool:
    """Return whether a module lists a name with this value."""
    return name in module.__all__ and getattr(module, name) is value


def page(module: ModuleType) -> str:
    """Return the page of a module: a table of its names, then the names with their docstrings."""
    text = [f"# {module.__name__}", summary(module)]
    rows, entries = [], []
    for name in public_names(module):
        value = getattr(module, name)
        where = home(value, name)
        rows.append(f"| [`{name}`][{where}.{name}] | {summary(value)} |")
        if where == module.__name__:
            entries.append(f"::: {where}.{name}")
    text.append("\n".join(["| name | summary |", "|---|---|", *rows]))
    return "\n\n".join(text + entries) + "\n"


def summary(value: Any) -> str:
    """Return the first line of a docstring."""
    documented = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
    text = (inspect.getdoc(value) or "") if documented else ""
    return text.partition("\n")[0].replace("|", "\\|")
