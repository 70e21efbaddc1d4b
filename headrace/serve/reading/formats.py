"""Answers as JSON, CSV or Arrow: the same values, the same names, the same headers."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.schema.relations import Named
from headrace.serve.http.values import ARROW, arrow_bytes, plain_column
from headrace.serve.reading.positions import position_text
from headrace.serve.reading.views import Answer
from headrace.time.clocks import NEVER

__all__ = ["CSV", "JSON", "columns_json", "encode", "format_of", "headers_of", "known_us"]

JSON = "application/json"
CSV = "text/csv"
_FORMATS = {"json": JSON, "csv": CSV, "arrow": ARROW}


def format_of(asked: str | None, accept: str) -> str:
    """Return the media type of an answer: what `format=` says or, without, what is accepted."""
    if asked is not None:
        return _FORMATS[asked]
    accepted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    return next((each for each in accepted if each in (ARROW, CSV, JSON)), JSON)


def headers_of(answer: Answer) -> dict[str, str]:
    """Return what every answer says in its head, whatever its format."""
    standing = answer.standing
    watermark_us = known_us(standing.watermark_us)
    return {
        "Headrace-View": answer.name,
        "Headrace-Version": standing.version,
        "Headrace-State": standing.state,
        "Headrace-Commit": str(standing.commit),
        "Headrace-Position": position_text(answer.position),
        "Headrace-Watermark-Us": "" if watermark_us is None else str(watermark_us),
        "Headrace-More": "true" if answer.more else "false",
    }


def known_us(watermark_us: int | None) -> int | None:
    """Return a watermark as answers have it: null is -infinity."""
    return None if watermark_us in (None, NEVER) else watermark_us


def columns_json(columns: Iterable[Named]) -> list[dict[str, str]]:
    """Return columns as answers name them."""
    return [{"name": each.name, "type": each.type.sql} for each in columns]


def encode(answer: Answer, media_type: str) -> bytes:
    """Return the body of an answer."""
    if media_type == ARROW:
        return arrow_bytes(answer.rows)
    names = answer.rows.column_names
    rows = zip(*(plain_column(column) for column in answer.rows.columns), strict=True)
    if media_type == CSV:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(names)
        writer.writerows([_cell(value) for value in row] for row in rows)
        return text.getvalue().encode()
    return json.dumps(_body(answer, rows), separators=(",", ":"), ensure_ascii=False).encode()


def _cell(value: Any) -> Any:
    """Return a value as CSV has it: null is empty, what is nested is JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def _body(answer: Answer, rows: Iterable[tuple[Any, ...]]) -> Mapping[str, Any]:
    standing, names = answer.standing, answer.rows.column_names
    return {
        "view": answer.name,
        "version": standing.version,
        "state": standing.state,
        "commit": standing.commit,
        "position": position_text(answer.position),
        "watermark_us": known_us(standing.watermark_us),
        "columns": columns_json(answer.columns),
        "key": [each.name for each in standing.relation.key],
        "rows": [dict(zip(names, row, strict=True)) for row in rows],
        "more": answer.more,
    }
