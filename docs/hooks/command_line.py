"""Write the reference of the command line from the typer application."""

import html
import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from quadric.apps.shell import app

INTRODUCTION = """# Command line

All commands and their options, generated from the program. The [guide](../guide/command_line.md)
explains files, exit codes, scores and streaming. `quadric --version` prints the version, and every
command has `--help`.
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add `reference/command_line.md`."""
    content = "\n".join([INTRODUCTION, *map(section, commands())])
    files.append(File.generated(config, "reference/command_line.md", content=content))


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the command and the context of every command."""
    group: Any = typer.main.get_command(app)
    waiting = [("quadric", group, typer.Context(group, info_name="quadric"))]
    while waiting:
        name, command, context = waiting.pop(0)
        children = getattr(command, "commands", {})
        if not children:
            yield name, command, context
        waiting[:0] = [
            (f"{name} {key}", child, typer.Context(child, info_name=key, parent=context))
            for key, child in sorted(children.items())
        ]


def section(found: tuple[str, Any, Any]) -> str:
    """Return the text about one command: description, usage, arguments, options and examples."""
    name, command, context = found
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    usage = re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), usage)
    rows = [row(parameter, context) for parameter in command.params if not hidden(parameter)]
    text = [f"## {name}", command.help or "", f"```sh\n{usage}\n```"]
    if rows:
        text.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    if examples := (command.epilog or "").partition("\n")[2].strip():
        lines = examples.replace("- `", "").replace("`", "").split("\n\n")
        text.append("Examples:\n\n```sh\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(text) + "\n"


def hidden(parameter: Any) -> bool:
    """Return whether `--help` also leaves out the parameter."""
    return parameter.hidden or parameter.name == "help"


def row(parameter: Any, context: Any) -> str:
    """Return the row of an argument or an option."""
    names, meaning = parameter.get_help_record(context)
    names = re.sub(r"<(?:list\[)?(\w+)(?: range|\])>", r"<\1>", names)
    meaning = html.escape(re.sub(r"(; )?\brequired\]|\[\]", "]", meaning), quote=False)
    meaning = " ".join(meaning.replace("[]", "").replace("|", "\\|").split())
    return f"| `{names}` | {'**Required.** ' if parameter.required else ''}{meaning} |"
