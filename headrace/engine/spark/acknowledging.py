"""Java's answers come at once: they are acknowledged before they are read.

An answer of more than 8 KB leaves Java in two writes. The second one waits until the first is
acknowledged (Nagle), which Linux puts off for 40 ms. Python's side of py4j has no setting for it,
so its connections are told to acknowledge at once. TCP_QUICKACK does not stay set: it is set before
each read. Where there is no such option, as on other systems than Linux, nothing is changed.
"""

import socket
from typing import Any

from py4j.clientserver import ClientServerConnection

__all__ = ["QuickAnswers", "acknowledge_at_once"]


class QuickAnswers:
    """The stream of a connection to Java; it reads lines as the one that it is made of."""

    def __init__(self, connection: ClientServerConnection) -> None:
        self._socket: socket.socket = connection.socket
        self._stream: Any = connection.stream

    def readline(self, *limit: int) -> bytes:
        """Return the next line."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        line: bytes = self._stream.readline(*limit)
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def acknowledge_at_once() -> None:
    """Let every connection to Java that is made from now on acknowledge answers at once."""
    connect = ClientServerConnection.connect_to_java_server
    if not hasattr(socket, "TCP_QUICKACK") or hasattr(connect, "acknowledges"):
        return

    def connect_and_acknowledge(connection: ClientServerConnection) -> None:
        connect(connection)
        connection.stream = QuickAnswers(connection)

    connect_and_acknowledge.acknowledges = True  # type: ignore[attr-defined]
    ClientServerConnection.connect_to_java_server = connect_and_acknowledge
