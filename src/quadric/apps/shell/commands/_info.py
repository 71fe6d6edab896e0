"""`quadric info`: print the description in a model file."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from quadric.apps.shell.commands._console import errors_as_one_line, print_json, print_table
from quadric.apps.shell.commands._inputs import ModelArgument, check_exists
from quadric.apps.shell.tables._options import is_table_description
from quadric.errors import ModelFileError
from quadric.utils import shown, visible

MOST_ITEMS = 30


def info(
    model: ModelArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what a model file contains: layers, parameters, classes, columns, scores, versions."""
    check_exists(model)
    with errors_as_one_line():
        from quadric import files

        try:
            facts = _facts(files.info(model))
            if facts["kind"] != "Network" and not facts["columns"]:
                facts |= _fitted_names(model)
        except (AttributeError, LookupError, TypeError):
            raise ModelFileError(
                "the file does not describe a model. Use another copy of it, or save the model "
                "again."
            ) from None
    if as_json:
        print_json(facts)
        return
    columns, title = ("", Column(overflow="fold")), visible(str(model))
    print_table(
        Table(*columns, show_header=False, title=title, title_justify="left"),
        (
            (name.replace("_", " "), "\n".join(map(visible, _lines(value))))
            for name, value in facts.items()
            if value not in (None, [], {})
        ),
    )


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    """Return the facts by name; values that users stored in `extra` may have any type."""
    estimator, steps = _estimator_and_steps(found["model"])
    extra = _dict(found["extra"])
    table, report = extra.get("table"), _dict(extra.get("report"))
    if not is_table_description(table):
        table = _names_in(extra) if estimator.get("type") == "network" else {}
    columns, tensors = table.get("columns"), found["tensors"]
    return {
        "kind": estimator.get("class", "Network"),
        "preprocessing": steps,
        "layers": [
            f"{layer['inputs']} -> {layer['neurons']} {layer['kind']} ({layer['activation']})"
            for layer in _dict(estimator.get("facts")).get("network_", estimator)["layers"]
        ],
        "parameters": sum(
            math.prod(tensors[name]["shape"]) for name in tensors if name.startswith("layers.")
        ),
        "task": table.get("task"),
        "target": table.get("target"),
        "classes": table.get("classes", []),
        "columns": _columns(columns),
        "left_out": table.get("left_out", {}),
        "trained_on": extra.get("data"),
        "rows": table.get("rows"),
        "metric": report.get("metric"),
        "scores": report.get("scores", {}),
        "scores_on": report.get("how"),
        "versions": found["versions"],
        "format": found["format"],
        "hash": found["hash"],
    }


def _fitted_names(path: Path) -> dict[str, Any]:
    """Return the columns and classes of a model that was fitted in Python; nothing if damaged."""
    from quadric import files
    from quadric.models import classes_of, input_names_of

    try:
        model = files.load(path)
    except ModelFileError:  # info describes the other parts of the file
        return {}
    found = {"columns": input_names_of(model), "classes": classes_of(model)}
    return {name: [] if values is None else values.tolist() for name, values in found.items()}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _estimator_and_steps(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the estimator's description and the names of the steps before it."""
    if model.get("class") != "Pipeline":
        return model, []
    steps = [_items(step)[1] for step in _items(model["parameters"]["steps"])]
    names = [step if isinstance(step, str) else step["class"] for step in steps[:-1] if step]
    return _dict(steps[-1]), names


def _items(value: Any) -> Any:
    return value["items"] if isinstance(value, dict) else value


def _names_in(extra: dict[str, Any]) -> dict[str, Any]:
    """Return the names that were saved with a bare Network."""
    lists = {key: extra[key] for key in ("columns", "classes") if isinstance(extra.get(key), list)}
    return lists | ({"target": extra["target"]} if "target" in extra else {})


def _columns(columns: Any) -> list[str]:
    """Return the columns of a table, each with its kind, or the names of a bare Network."""
    if isinstance(columns, list):
        return list(map(str, columns))
    names, kinds = _dict(columns).get("name"), _dict(_dict(columns).get("kind"))
    if not isinstance(names, list):
        return []
    return [f"{name} ({kinds.get(str(j), 'number')})" for j, name in enumerate(names)]


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {_text(inner)}" for key, inner in value.items()]
    if not isinstance(value, list):
        return [str(value)]
    more = [f"... and {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else []
    return [*map(str, value[:MOST_ITEMS]), *more]


def _text(value: Any) -> str:
    """Return a score with three digits, a hyphen if it is not defined, other values unchanged."""
    return shown(value) if value is None or isinstance(value, float) else str(value)
