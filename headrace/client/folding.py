"""Fold the messages of a subscription into the rows of the view."""

import json
from collections.abc import Mapping
from typing import Any

from headrace.client.messages import Change, Changes, Message, Progress, Reset
from headrace.errors import EngineError

__all__ = ["Fold"]

Key = tuple[Any, ...]


class Fold:
    """The rows of a view by their key; each row also has `_closed`.

    They are those of `commit` whenever `take` returned True, and on their way to the next one
    otherwise. A change that does not fit what is there raises EngineError: it never happens while
    all messages of one subscription are taken in their order.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, dict[str, Any]] = {}
        self.key: tuple[str, ...] = ()
        self.columns: tuple[Mapping[str, str], ...] = ()
        self.token: str | None = None
        self.commit: int | None = None
        self.position = ""
        self.watermark_us: int | None = None

    def take(self, message: Message) -> bool:
        """Take the next message; return whether the rows are those of a commit now."""
        match message:
            case Reset():
                self.rows = {}
                self.key, self.columns, self.token = message.key, message.columns, None
            case Changes():
                for change in message.changes:
                    self._take(change)
                self.token = message.token or self.token
            case Progress():
                self.token, self.commit = message.token, message.commit
                self.position, self.watermark_us = message.position, message.watermark_us
                return True
        return False

    def _take(self, change: Change) -> None:
        key = tuple(_hashable(value) for value in change.key.values())
        held = self.rows.get(key)
        row = {**change.row, "_closed": change.closed}
        if change.sign > 0:
            fits = held is None
        elif change.sign < 0:
            fits = held == row
        else:
            fits = held == {**row, "_closed": False}
        if not fits:
            raise EngineError(
                f"a change of sign {change.sign} does not fit: {str(row)[:200]}, and there is "
                f"{str(held)[:200]}; subscribe anew, without a token"
            )
        if change.sign < 0:
            del self.rows[key]
        else:
            self.rows[key] = row


def _hashable(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, list | dict) else value
