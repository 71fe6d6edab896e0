"""The trained networks, as model files in a directory next to the store."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from quadric.apps.paper.sweep import Store, Study, StudyTask
from quadric.datasets import ImageData
from quadric.files import load, save
from quadric.network import Network

DIRECTORY = "bilinear"


def path_of(store: Store, study: Study, data: ImageData, task: StudyTask) -> Path:
    """Return the file of a run, whose name depends on the settings and the data.

    It ends with the first eight digits of a SHA-256 digest of both.
    """
    key = hashlib.sha256(f"{study.key()} {data.checksum} {task.size} {task.hidden}".encode())
    name = f"{data.name}-{task.kind}-seed-{task.seed}-{key.hexdigest()[:8]}.quadric"
    return store.path.parent / DIRECTORY / name


def saver(store: Store, study: Study, data: ImageData) -> Callable[[StudyTask, Network], None]:
    """Return a function that writes the network of a run to its file."""

    def save_network(task: StudyTask, network: Network) -> None:
        path = path_of(store, study, data, task)
        path.parent.mkdir(exist_ok=True)
        save(network, path)

    return save_network


def saved_network(store: Store, study: Study, data: ImageData, task: StudyTask) -> Network | None:
    """Return the network of a run, or None if its file does not exist."""
    path = path_of(store, study, data, task)
    if not path.exists():
        return None
    network = load(path)
    assert isinstance(network, Network)
    return network
