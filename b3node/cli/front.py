"""The HTTP side of `b3node serve`: a second to import, which `node_runner` does while engines load."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from b3node.api.app import create_app
from b3node.api.host_check import HostCheck
from b3node.api.server import Server, serve
from b3node.config import Config
from b3node.service import respond
from b3node.service.node import Node
from b3node.workers.served_model import ServedModel

__all__ = ["front", "respond", "serve"]


def front(config: Config, models: Iterable[ServedModel], listener: socket.socket, name: str) -> Server:
    """Returns the server of a configured node on its bound socket; `name` is its host in URLs."""
    node = Node(config.node, models)
    host_check = HostCheck.on_loopback((*config.hosts, name), config.origins)
    return Server(create_app(node, host_check), node, listener=listener)
