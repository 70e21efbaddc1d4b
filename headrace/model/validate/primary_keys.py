"""What holds for the primary key of every table."""

from collections import Counter

from headrace.model.definitions import Stream
from headrace.model.names import closest
from headrace.model.validate.findings import Findings
from headrace.schema.debezium_values import DECIMAL_FORMATS
from headrace.schema.types import Column

__all__ = ["KEYS_FROM", "check_primary_key"]

#: What `key_from` may say.
KEYS_FROM = ("key", "value")


def check_primary_key(findings: Findings, table: Stream) -> None:
    """Note what is wrong with the primary key of a table."""
    columns = {column.name: (at, column) for at, column in enumerate(table.columns)}
    for name, count in Counter(table.primary_key).items():
        if name not in columns:
            fault = f"PRIMARY KEY: {table.name} has no column {name}{closest(name, columns)}"
            findings.add("name", fault)
            continue
        at, column = columns[name]
        findings.add(f"column {at}", _column_fault(table, column))
        if count > 1:
            findings.add(f"column {at}", f"PRIMARY KEY: {name} stands twice; remove one")
    of_envelopes = {
        "decimal_format": table.decimal_format,
        "source_table": table.source_table,
    }
    for option, value in of_envelopes.items():
        if value is not None and table.format != "debezium":
            fault = f"{option} is of format = 'debezium'; remove it, or write that format"
            findings.add(option, fault)
    if table.decimal_format not in (None, *DECIMAL_FORMATS):
        findings.add(
            "decimal_format",
            f"decimal_format {table.decimal_format!r} is not known; write 'text', or 'base64' for "
            "decimal.handling.mode = precise",
        )
    if table.key_from != "key" and table.format == "debezium":
        findings.add(
            "key_from",
            "the key of a change event is read from the event itself; remove key_from",
        )
    if table.key_from not in KEYS_FROM:
        findings.add(
            "key_from",
            f"key_from {table.key_from!r} is not known; write 'key', which reads the primary key "
            "from the record's key, or 'value'",
        )


def _column_fault(table: Stream, column: Column) -> str | None:
    if column.type.kind in ("FLOAT", "DOUBLE", "ARRAY", "MAP", "STRUCT"):
        return (
            f"PRIMARY KEY {column.name!r}: values of {column.type.sql} cannot be compared exactly; "
            f"write {column.name} STRING or {column.name} DECIMAL(18,2)"
        )
    if column.path and table.key_from == "key" and table.format == "upsert":
        return (
            f"PRIMARY KEY {column.name!r}: it is read from the record's key, so FROM has no "
            "meaning here; remove it, or write key_from = 'value'"
        )
    return None
