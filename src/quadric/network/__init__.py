"""Network: a stack of layers that checks its inputs."""

from quadric.network._compile_ahead import compile_loops
from quadric.network._network import Network

__all__ = ["Network", "compile_loops"]
