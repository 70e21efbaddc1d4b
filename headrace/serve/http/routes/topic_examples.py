"""How bodies and answers of topics look, for the description of the API."""

from typing import Any

from headrace.serve.http.values import ARROW

__all__ = ["APPENDED", "BODIES", "RECORDS"]

_RECORD = {"id": 17, "card": "c-1", "amount": "12.50", "ts": "2026-01-31T12:00:00Z"}
_OTHER = {"id": 18, "card": "c-2", "amount": "3.00", "ts": "2026-01-31T12:00:01Z"}
_LINES = (
    '{"id": 17, "card": "c-1", "amount": "12.50", "ts": "2026-01-31T12:00:00Z"}\n'
    '{"id": 18, "card": "c-2", "amount": "3.00", "ts": "2026-01-31T12:00:01Z"}\n'
)
_LINES_CONTENT = {
    "schema": {"type": "string", "description": "One JSON object in each line, UTF-8."},
    "examples": {"two records": {"value": _LINES}},
}

BODIES: dict[str, Any] = {
    "required": True,
    "description": "Records, each a JSON object. All of them are stored, or none.",
    "content": {
        "application/json": {
            "schema": {
                "oneOf": [
                    {"type": "object", "title": "one record"},
                    {
                        "type": "array",
                        "title": "several records",
                        "items": {"type": "object"},
                        "minItems": 1,
                    },
                ]
            },
            "examples": {
                "one record": {"value": _RECORD},
                "several records": {"value": [_RECORD, _OTHER]},
                "envelopes": {
                    "summary": "with envelope=true: a key and headers of its own",
                    "value": [
                        {"key": "c-1", "value": _RECORD, "headers": {"source": "web"}},
                        {"value": _OTHER},
                    ],
                },
            },
        },
        "application/x-ndjson": _LINES_CONTENT,
        "application/jsonl": _LINES_CONTENT,
        ARROW: {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": "A stream of Arrow, without compression: the columns `value` and "
                "perhaps `key` and `headers`, or any others, whose rows become JSON objects.",
            }
        },
    },
}

APPENDED: dict[str, Any] = {
    "application/json": {
        "example": {
            "topic": "payments",
            "records": 2,
            "partitions": [
                {"partition": 0, "first_offset": 120, "end_offset": 121},
                {"partition": 1, "first_offset": 33, "end_offset": 34},
            ],
            "position": "payments/0@121,payments/1@34",
            "without_key": 0,
        }
    }
}

_SHOWN = {
    "partition": 0,
    "offset": 120,
    "arrival_us": 1769860800000000,
    "key": "c-1",
    "value": '{"id": 17, "card": "c-1", "amount": "12.50", "ts": "2026-01-31T12:00:00Z"}',
    "headers": {"source": "web"},
}
_TEXT_OR_NULL = {"type": ["string", "null"]}

RECORDS: dict[str, Any] = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["topic", "position", "records"],
            "properties": {
                "topic": {"type": "string"},
                "position": {"type": "string", "description": "Where the next page begins."},
                "records": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": [
                            "partition",
                            "offset",
                            "arrival_us",
                            "key",
                            "value",
                            "headers",
                        ],
                        "properties": {
                            "partition": {"type": "integer"},
                            "offset": {"type": "integer"},
                            "arrival_us": {"type": ["integer", "null"]},
                            "key": _TEXT_OR_NULL,
                            "key_base64": {"type": "string"},
                            "value": _TEXT_OR_NULL,
                            "value_base64": {"type": "string"},
                            "headers": {"type": "object", "additionalProperties": _TEXT_OR_NULL},
                        },
                    },
                },
            },
        },
        "example": {"topic": "payments", "position": "payments/0@121", "records": [_SHOWN]},
    },
    "text/event-stream": {
        "schema": {"type": "string"},
        "example": 'event: progress\nid: payments/0@121\ndata: {"type": "progress", "token": '
        '"payments/0@121"}\n\n',
    },
}
