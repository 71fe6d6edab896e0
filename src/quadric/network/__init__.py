"""Network: a stack of layers that checks its inputs."""

from quadric.network._network import Network

__all__ = ["Network"]
