"""What a subscription yields: a reset, changes, progress."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.client.answers import to_error
from headrace.errors import EngineError

__all__ = ["Change", "Changes", "Message", "Progress", "Reset", "parse_message"]


@dataclass(frozen=True)
class Reset:
    """Forget what you have: all rows follow. Columns and key of these rows."""

    view: str
    version: str
    columns: tuple[Mapping[str, str], ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A row that leaves (-1), comes (+1), or is closed and otherwise the same (0)."""

    sign: int
    closed: bool
    key: Mapping[str, Any]
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Changes:
    """Changes in their order. `token` is behind them; None: within the first rows."""

    changes: tuple[Change, ...]
    token: str | None
    commit: int


@dataclass(frozen=True)
class Progress:
    """All changes up to this commit have come; the view has read up to `position`."""

    token: str
    commit: int
    position: str
    watermark_us: int | None


Message: TypeAlias = Reset | Changes | Progress


def parse_message(text: str | bytes) -> Message:
    """Return a message of an engine; raise the error that it is."""
    body = json.loads(text)
    match body.get("type"):
        case "reset":
            return Reset(body["view"], body["version"], tuple(body["columns"]), tuple(body["key"]))
        case "changes":
            every = tuple(
                Change(each["sign"], each["closed"], each["key"], each["row"])
                for each in body["changes"]
            )
            return Changes(every, body["token"], body["commit"])
        case "progress":
            return Progress(body["token"], body["commit"], body["position"], body["watermark_us"])
        case "error":
            raise to_error(body.get("error", ""), body.get("message", ""))
    raise EngineError(f"the engine sent a message of a later release: {body.get('type')!r}")
