"""Write the reference of errors and warnings from the source of the package.

The classes of `quadric.errors` come with their docstrings. The messages are read from the syntax
trees: the texts of `raise` statements, of errors that are created first and raised later, and of
warnings. Values that a message fills in are in angle brackets.
"""

import ast
import html
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import quadric
from quadric import errors

PACKAGE = Path(quadric.__file__).parent
INTRODUCTION = """# Errors and warnings

Errors that programs may want to catch have their own classes in
[`quadric.errors`](quadric.errors.md). Facts, such as the epoch or the number of bytes, are
attributes of the exception. Invalid arguments raise `ValueError` or `TypeError`, as in
scikit-learn. A message names the argument, what was expected, what was given and what to do next.

| class | is a | meaning |
|---|---|---|
"""
MESSAGES = """## Messages

The list is read from the source. To find a message, search for a few of its words. Values that
a message fills in are in angle brackets. A message that the program puts together from several
texts is listed in parts, or not at all.
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add `reference/messages.md`."""
    rows = [class_row(getattr(errors, name)) for name in errors.__all__]
    text = INTRODUCTION + "\n".join(rows) + "\n\n" + MESSAGES + messages_by_package()
    files.append(File.generated(config, "reference/messages.md", content=text))


def class_row(kind: type[Exception]) -> str:
    """Return the row of an error class."""
    above = ", ".join(f"`{base.__name__}`" for base in kind.__mro__[1:-1] if shown(base))
    meaning = (kind.__doc__ or "").partition("\n")[0]
    return f"| [`{kind.__name__}`][quadric.errors.{kind.__name__}] | {above} | {meaning} |"


def shown(base: type) -> bool:
    """Return whether a base class helps to catch an error."""
    return not base.__name__.startswith("_") and base not in (Exception, BaseException)


def messages_by_package() -> str:
    """Return the messages of the package's files, below a heading for each package."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        package = path.relative_to(PACKAGE).parts[0].removesuffix(".py").replace("__init__", "")
        for kind, text in messages(path.read_text(encoding="utf-8")):
            found.setdefault(f"quadric.{package}".rstrip("."), {})[text] = kind
    lines = []
    for package, texts in found.items():
        lines.append(f"### {package}\n")
        lines += [f"- `{kind}`: {escaped(text)}" for text, kind in sorted(texts.items())]
        lines.append("")
    return "\n".join(lines)


def messages(source: str) -> Iterator[tuple[str, str]]:
    """Yield the class and the text of every error and warning in a source text.

    >>> list(messages("raise ValueError(f'alpha must be positive. Got {alpha!r} instead.')"))
    [('ValueError', 'alpha must be positive. Got <alpha> instead.')]
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        kind = name_of(node.func)
        if kind == "warn" and len(node.args) > 1:
            kind = name_of(node.args[1])
        if kind.endswith(("Error", "Warning")) and (text := template(node.args[0])).strip("<> "):
            yield kind, text


def name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def template(node: ast.expr) -> str:
    """Return a text with the names of what it fills in; '' for anything but a text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(template, values))
        case ast.FormattedValue(value=value):
            simple = isinstance(value, ast.Name | ast.Attribute)
            return f"<{ast.unparse(value) if simple else '...'}>"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return template(left) + template(right)
    return ""


def escaped(text: str) -> str:
    """Return a text as Markdown that shows it as it is."""
    for character in "\\`*_{}[]#|$":
        text = text.replace(character, f"\\{character}")
    return html.escape(" ".join(text.split()), quote=False)
