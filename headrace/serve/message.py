"""A message of an answer that stays open, encoded once for all who get the same."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Message", "encode", "error_message"]


class Message(NamedTuple):
    """One message: its type, the token to go on after (where it has one), and its JSON."""

    type: str
    token: str | None
    data: bytes

    @property
    def event(self) -> bytes:
        """The message as an event of SSE."""
        id = "" if self.token is None else f"id: {self.token}\n"
        return b"%bdata: %b\n\n" % (f"event: {self.type}\n{id}".encode(), self.data)


def encode(type: str, token: str | None, body: Mapping[str, Any]) -> Message:
    """Return a message of a type; `body` is the rest of its JSON."""
    text = json.dumps({"type": type, **body}, separators=(",", ":"), ensure_ascii=False)
    return Message(type, token, text.encode())


def error_message(name: str, message: str) -> Message:
    """Return why a connection ends."""
    return encode("error", None, {"error": name, "message": message})
