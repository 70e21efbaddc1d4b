"""Requests to an engine, as values: both clients send the same, and try again by the same rule."""

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import quote

from headrace.errors import UsageError

__all__ = [
    "MAX_TRIES",
    "Request",
    "Where",
    "append_requests",
    "changes_path",
    "listed",
    "pause_before_retry",
    "query_request",
    "rows_request",
    "where_texts",
]

MAX_BATCH_BYTES = 4 << 20
MAX_BATCH_RECORDS = 10_000
MAX_TRIES = 6
_FIRST_PAUSE_SECONDS = 0.1
_LAST_PAUSE_SECONDS = 5.0

#: `{"country": "NO", "n": (">=", 5)}`, or conditions as texts: `["n>=5"]`.
Where: TypeAlias = Mapping[str, object] | Sequence[str]

_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Request:
    """One request, sent at most so many times. `repeatable`: twice does what once does."""

    method: str
    path: str
    parameters: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = True
    tries: int = 1


def append_requests(
    topic: str,
    records: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    key: str | None,
    partition: int | None,
    idempotent: bool,
    deletes: bool = False,
) -> Iterator[Request]:
    """Yield the requests that append records, each with as many as a body may have."""
    parameters = [("key", key)] if key is not None else []
    if deletes:
        parameters.append(("delete", "true"))
    if partition is not None:
        parameters.append(("partition", str(partition)))
    every = [records] if isinstance(records, Mapping) else records
    for body in _bodies(every):
        headers = {"Content-Type": "application/x-ndjson"}
        if idempotent:
            headers["Idempotency-Key"] = uuid.uuid4().hex
        path = f"/v1/topics/{quote(topic, safe='')}"
        yield Request("POST", path, parameters, headers, body, idempotent, MAX_TRIES)


def _bodies(records: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for record in records:
        line = json.dumps(record, default=_plain, ensure_ascii=False).encode()
        if lines and (size + len(line) > MAX_BATCH_BYTES or len(lines) >= MAX_BATCH_RECORDS):
            yield b"\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield b"\n".join(lines)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return _time_text(value)
    if isinstance(value, date | Decimal | uuid.UUID):
        return str(value)
    raise UsageError(f"{value!r} cannot be appended: a record is made of JSON values")


def _time_text(value: datetime) -> str:
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def query_request(sql: str, max_rows: int | None) -> Request:
    """Return the request that asks a query."""
    body: dict[str, object] = {"sql": sql}
    if max_rows is not None:
        body["max_rows"] = max_rows
    headers = {"Content-Type": "application/json"}
    return Request("POST", "/v1/sql", headers=headers, content=json.dumps(body).encode())


def rows_request(
    view: str,
    *,
    where: Where,
    order: Sequence[str],
    limit: int | None,
    columns: Sequence[str],
    min_position: str | None,
    timeout_s: float,
) -> Request:
    """Return the request for rows of a view."""
    parameters = [("where", text) for text in where_texts(where)]
    parameters += [("order", listed(order))] if order else []
    parameters += [("columns", listed(columns))] if columns else []
    if limit is not None:
        parameters.append(("limit", str(limit)))
    if min_position:
        parameters.append(("min_position", min_position))
        parameters.append(("timeout_ms", str(int(timeout_s * 1000))))
    headers = {"Accept": "application/json"}
    return Request("GET", f"/v1/views/{quote(view, safe='')}", parameters, headers)


def changes_path(view: str) -> str:
    """Return where the changes of a view are."""
    return f"/v1/views/{quote(view, safe='')}/changes"


def where_texts(where: Where) -> list[str]:
    """Return conditions as the API takes them. UsageError: a value or an operator is none."""
    if isinstance(where, str):
        return [where]
    if not isinstance(where, Mapping):
        return list(where)
    found = []
    for column, asked in where.items():
        operator, value = asked if isinstance(asked, tuple) else ("=", asked)
        if operator not in _OPERATORS:
            raise UsageError(f"{operator!r} is no operator; write one of {' '.join(_OPERATORS)}")
        found.append(f"{column}{operator}{_value(value)}")
    return found


def _value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value.replace(chr(39), chr(39) * 2)}'"  # as it is, be it `null`
    if isinstance(value, int | float):
        return str(value)
    return _plain(value)


def listed(names: Sequence[str]) -> str:
    """Return names of columns as the API takes them, whatever characters they have."""
    every = [names] if isinstance(names, str) else names
    return ",".join('"' + name.replace('"', '""') + '"' for name in every)


def pause_before_retry(attempt: int, retry_after: str | None = None) -> float:
    """Return how long to wait before the next attempt; `attempt` counts from 0."""
    pause = min(_LAST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * float(1 << attempt))
    try:
        return max(pause, min(float(retry_after or 0), 30.0))
    except ValueError:
        return pause
