"""Answers of an engine as values, and its errors as those of `headrace.errors`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace import errors
from headrace.errors import AccessDenied, EngineError, HeadraceError, Unreachable

__all__ = ["Answer", "Appended", "Rows", "to_error", "to_value"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Appended:
    """Records that are in the log. `position` is behind them: `rows(min_position=...)` waits."""

    topic: str
    records: int
    partitions: tuple[Mapping[str, int], ...]
    position: str
    without_key: int = 0


@dataclass(frozen=True)
class Rows:
    """Rows of a view at one commit. `more`: there are others that the limit leaves out."""

    view: str
    rows: tuple[Row, ...]
    columns: tuple[Mapping[str, str], ...]
    key: tuple[str, ...]
    commit: int
    position: str
    watermark_us: int | None
    version: str
    state: str
    more: bool

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Rows":
        """Return what an answer says."""
        return cls(
            body["view"],
            tuple(body["rows"]),
            tuple(body["columns"]),
            tuple(body["key"]),
            body["commit"],
            body["position"],
            body["watermark_us"],
            body["version"],
            body["state"],
            body["more"],
        )


@dataclass(frozen=True)
class Answer:
    """The answer of a query. Iterating gives its rows as dicts; `rows` has them as lists."""

    columns: tuple[Mapping[str, str], ...]
    rows: tuple[list[Any], ...]
    commit: int | None = None
    positions: Mapping[str, str] | None = None
    truncated: bool = False

    def __iter__(self) -> Iterator[Row]:
        names = [column["name"] for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Answer":
        """Return what an answer says."""
        return cls(
            tuple(body["columns"]),
            tuple(body["rows"]),
            body.get("commit"),
            body.get("positions"),
            body.get("truncated", False),
        )


def to_value(status: int, content: bytes) -> Any:
    """Return the JSON of an answer; raise what it says went wrong."""
    try:
        body = json.loads(content)
    except ValueError as error:
        raise Unreachable(f"what answers (status {status}) is no Headrace engine") from error
    if status < 400:
        return body
    raise to_error(body.get("error", ""), body.get("message", ""), status=status)


def to_error(name: str, message: str, *, status: int = 0) -> HeadraceError:
    """Return an error of the engine as one of `headrace.errors`."""
    found = getattr(errors, name, None)
    known = isinstance(found, type) and issubclass(found, HeadraceError)
    if status in (401, 403):
        return AccessDenied(message)
    # Those with more arguments than a message keep their text under the name they descend from.
    plain = known and "__init__" not in vars(found)
    error: HeadraceError = (found if plain and found else EngineError)(message)
    return error
