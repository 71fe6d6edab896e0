"""`quadric info`: what is in a model file, without loading it whole."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from quadric._utils.text import visible
from quadric.cli._console import make_console, one_line
from quadric.cli._model_loading import describe_model, is_description
from quadric.errors import ModelFileError

NO_MODEL = "the file describes no model. Take another copy of it, or save the model again."


def info(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say what is in a model file: kind, layers, parameters, classes, columns, versions."""
    with one_line():
        found = describe_model(model)
        facts = _facts(found)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    table = Table(show_header=False, title=visible(str(model)), title_justify="left")
    table.add_column("")
    table.add_column("", overflow="fold")
    for name, value in facts.items():
        if value not in (None, [], {}):
            table.add_row(name.replace("_", " "), _text(value))
    make_console().print(table)


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    estimator, steps = _parts(found["model"])
    extra = _dict(found["extra"])
    table, report = extra.get("table"), _dict(extra.get("report"))
    if not is_description(table):  # a note of the user's, if anything
        table = _named(extra) if estimator.get("type") == "network" else {}
    facts = _dict(estimator.get("facts", estimator.get("fitted")))  # "fitted" in format 1
    network = facts.get("network_", estimator)
    parameters = sum(
        _size(tensor["shape"])
        for name, tensor in found["tensors"].items()
        if name.startswith("layers.")
    )
    return {
        "kind": estimator.get("class", "Network"),
        "preprocessing": steps,
        "layers": _layers(network),
        "parameters": parameters,
        "task": table.get("task"),
        "target": table.get("target"),
        "classes": table.get("classes", []),
        "columns": [_column(column) for column in _list(table.get("columns"))],
        "left_out": table.get("left_out", {}),
        "trained_on": extra.get("data"),
        "rows": table.get("rows"),
        "scores": report.get("scores", {}),
        "scores_on": report.get("how"),
        "versions": found["versions"],
        "format": found["format"],
        "hash": found["hash"],
    }


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(model: Any) -> tuple[dict[str, Any], list[str]]:
    """The estimator's description, and the names of the steps in front of it."""
    try:
        if model.get("class") != "Pipeline":
            return model, []
        steps = [_items(step)[1] for step in _items(model["parameters"]["steps"])]
        names = [step if isinstance(step, str) else step["class"] for step in steps[:-1] if step]
        return _dict(steps[-1]), names
    except (AttributeError, LookupError, TypeError):
        raise ModelFileError(NO_MODEL) from None


def _layers(network: Any) -> list[str]:
    try:
        return [
            f"{layer['inputs']} -> {layer['neurons']} {layer['kind']} ({layer['activation']})"
            for layer in network["layers"]
        ]
    except (LookupError, TypeError):
        raise ModelFileError(NO_MODEL) from None


def _named(extra: dict[str, Any]) -> dict[str, Any]:
    """What the file of a bare Network may say of tables."""
    lists = {key: extra[key] for key in ("columns", "classes") if isinstance(extra.get(key), list)}
    return lists | {key: extra[key] for key in ("target",) if key in extra}


def _column(column: Any) -> str:
    known = isinstance(column, dict) and {"name", "kind"} <= set(column)
    return f"{column['name']} ({column['kind']})" if known else str(column)


def _items(value: Any) -> Any:
    return value["items"] if isinstance(value, dict) else value


def _size(shape: list[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(
            visible(f"{key}: {inner:.3f}" if isinstance(inner, float) else f"{key}: {inner}")
            for key, inner in value.items()
        )
    if isinstance(value, list):
        shown = [visible(str(item)) for item in value[:30]]
        return "\n".join(shown) + ("" if len(value) <= 30 else f"\n... and {len(value) - 30} more")
    return visible(str(value))
