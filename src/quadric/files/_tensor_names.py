"""The names of the tensors that the description of a model uses, known before any is read."""

from typing import Any


def tensor_names(value: Any) -> set[str]:
    """All names of tensors in a description, valid or not."""
    names: set[str] = set()
    left = [value]
    while left:
        found = left.pop()
        if isinstance(found, dict):
            names.update(_own_names(found))
            left.extend(inner for inner in found.values() if isinstance(inner, (dict, list)))
        else:
            left.extend(inner for inner in found if isinstance(inner, (dict, list)))
    return names


def _own_names(entry: dict[str, Any]) -> list[str]:
    layers, tensor = entry.get("layers"), entry.get("tensor")
    if entry.get("type") == "network" and isinstance(layers, list):
        return [f"layers.{l}.{name}" for l in range(len(layers)) for name in "WbQUc"]
    if isinstance(tensor, str):
        return [tensor, f"{tensor}.lengths"] if entry.get("dtype") == "object" else [tensor]
    return []
