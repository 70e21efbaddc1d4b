"""Messages between the engine and a process that answers queries: JSON, and open files beside it.

message := length (4 bytes, big-endian), JSON text; open files come with the length
"""

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

__all__ = ["MAX_BYTES", "MAX_FILES", "receive", "send"]

MAX_FILES = 250  # of one message; the kernel lets 253 through
MAX_BYTES = 16 << 20
_LENGTH = struct.Struct("!I")


def send(channel: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send a message and open files. OSError: the other side is gone."""
    text = json.dumps(message).encode()
    socket.send_fds(channel, [_LENGTH.pack(len(text))], list(files))
    channel.sendall(text)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its open files. EOFError, OSError: the other side is gone.

    EOFError also for a message that is too long.
    """
    head, files, _, _ = socket.recv_fds(channel, _LENGTH.size, MAX_FILES)
    head += _exactly(channel, _LENGTH.size - len(head)) if head else b""
    if not head:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > MAX_BYTES:
        raise EOFError
    return dict(json.loads(_exactly(channel, length))), files


def _exactly(channel: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        chunk = channel.recv(min(size - len(content), 1 << 20))
        if not chunk:
            raise EOFError
        content += chunk
    return bytes(content)
