"""The messages of a subscription, encoded once for all who get the same.

| type | what it says |
|---|---|
| `reset` | forget what you have; rows follow. Columns and key of these rows |
| `changes` | rows with a sign; the token behind them, null within a snapshot |
| `progress` | everything up to this token was sent; the commit, position and watermark there |
| `error` | why the connection ends |
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headrace.ledger.following import Token
from headrace.log.base import Partition
from headrace.serve.following.shapes import Shape
from headrace.serve.http.values import plain_column
from headrace.serve.message import Message, encode
from headrace.serve.reading.formats import columns_json, known_us
from headrace.serve.reading.positions import position_text

__all__ = ["changes", "no_rows", "progress", "reset", "snapshot_pages"]


def reset(view: str, version: str, shape: Shape) -> Message:
    """Return the message before all rows."""
    body = {
        "view": view,
        "version": version,
        "columns": columns_json(shape.columns),
        "key": [each.name for each in shape.relation.key],
    }
    return encode("reset", None, body)


def changes(rows: pa.Table, shape: Shape, token: Token | None, commit: int) -> Message:
    """Return rows with a `_sign`; without that column they come."""
    text = None if token is None else str(token)
    body = {"changes": list(_changes(rows, shape)), "token": text, "commit": commit}
    return encode("changes", text, body)


def _changes(rows: pa.Table, shape: Shape) -> Iterator[dict[str, Any]]:
    names = [each.name for each in shape.columns]
    columns = [plain_column(rows[name]) for name in names]
    signs = plain_column(rows["_sign"]) if "_sign" in rows.column_names else [1] * rows.num_rows
    # A view without a key has one row, and the key of that is NULL.
    keys = plain_column(rows["_key"])
    values = zip(*columns, strict=True) if columns else iter([()] * rows.num_rows)
    every = zip(signs, plain_column(rows["_closed"]), keys, values, strict=True)
    for sign, closed, key, row in every:
        yield {
            "sign": sign,
            "closed": closed,
            "key": key or {},
            "row": dict(zip(names, row, strict=True)),
        }


def no_rows(token: Token) -> Message:
    """Return the last page of a snapshot that has no rows."""
    body = {"changes": [], "token": str(token), "commit": token.commit}
    return encode("changes", str(token), body)


def progress(token: Token, position: Mapping[Partition, int], watermark_us: int | None) -> Message:
    """Return that everything up to a token was sent."""
    body = {
        "token": str(token),
        "commit": token.commit,
        "position": position_text(position),
        "watermark_us": known_us(watermark_us),
    }
    return encode("progress", str(token), body)


def snapshot_pages(batches: Iterator[pa.RecordBatch], max_bytes: int) -> Iterator[pa.Table]:
    """Yield batches of rows as pages that are no larger than a message may be."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        fit = rows.num_rows
        if rows.nbytes > max_bytes:
            fit = max(1, rows.num_rows * max_bytes // rows.nbytes)
        for at in range(0, rows.num_rows, fit or 1):
            yield rows.slice(at, fit)
