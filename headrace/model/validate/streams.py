"""What holds for every stream: its columns, event time, key and unique id."""

import re

from headrace.errors import Problem
from headrace.model import nodes
from headrace.model.definitions import Computed, Stream
from headrace.model.names import closest, name_fault, topic_fault
from headrace.model.validate.findings import Findings, Locations
from headrace.model.validate.primary_keys import check_primary_key
from headrace.schema.formats import STREAM_FORMATS, TABLE_FORMATS
from headrace.schema.types import TIMESTAMP_FORMATS as COLUMN_FORMATS
from headrace.schema.types import Column

__all__ = ["DUPLICATES", "TIMESTAMP_FORMATS", "validate_stream"]

TIMESTAMP_FORMATS = ("seconds", "millis", "micros")  # of a stream; ISO 8601 is not said
DUPLICATES = ("drop", "topic")

#: Functions of Spark that keep what they collected of a record that they failed on.
_CALLED = re.compile(
    r"(?<!\w)(map|map_concat|map_from_arrays|map_from_entries|str_to_map|transform_keys)\(",
    re.IGNORECASE,
)


def validate_stream(stream: Stream, locations: Locations | None = None) -> list[Problem]:
    """Return every problem of one stream."""
    findings = Findings(stream.location, locations)
    fault = name_fault(stream.kind, stream.name)
    findings.add("name", fault)
    if fault is None or stream.topic != stream.name:  # else it is the name's own
        findings.add("topic", topic_fault(stream.topic))
    if not stream.columns:
        findings.add("name", f"{stream.kind} {stream.name} has no columns; write at least one")
    findings.add_names(
        "column",
        [column.name for column in stream.columns] + [each.name for each in stream.computed],
    )
    for index, column in enumerate(stream.columns):
        findings.add(f"column {index}", _format_fault(column))
    eager = {each.name for each in stream.eager}
    for index, computed in enumerate(stream.computed, len(stream.columns)):
        if computed.name not in eager:
            continue
        findings.add(f"column {index}", _computed_fault(stream, computed))
    names = [name for name, _ in stream.outline]
    findings.add("format", _format_of_records_fault(stream))
    if stream.timestamp_format is not None and stream.timestamp_format not in TIMESTAMP_FORMATS:
        findings.add(
            "timestamp_format",
            f"timestamp_format {stream.timestamp_format!r} is not known; write 'seconds', 'millis' "
            "or 'micros' (since 1970), or leave it out for ISO 8601",
        )
    if stream.key is not None and stream.key not in names:
        findings.add(
            "key",
            f"key {stream.key!r} is not a column of {stream.name}{closest(stream.key, names)}",
        )
    if stream.event_time is not None:
        findings.add("watermark", _event_time_fault(stream, stream.event_time))
    if stream.idle_timeout_us <= 0:
        findings.add(
            "idle_timeout",
            "idle_timeout must be positive: otherwise every pause would count as idle; write "
            "'1 minute'",
        )
    if stream.delay_us < 0:
        findings.add("watermark", "the watermark's delay is negative; write 0 or more")
    _check_unique(findings, stream)
    if stream.primary_key:
        check_primary_key(findings, stream)
    return findings.problems


def _format_of_records_fault(stream: Stream) -> str | None:
    known = TABLE_FORMATS if stream.primary_key else STREAM_FORMATS
    if stream.format in known:
        return None
    if stream.format in TABLE_FORMATS:
        return (
            f"format {stream.format!r} is that of a table; write CREATE TABLE, with a PRIMARY KEY, "
            "or format = 'json' for records that are never changed"
        )
    if stream.format in STREAM_FORMATS:
        return (
            f"format {stream.format!r} is that of a stream; the records of a table are changes: "
            "write format = 'upsert', where the record's key has the primary key"
        )
    choices = " or ".join(f"'{name}'" for name in known)
    return f"format {stream.format!r} is not built yet; write format = {choices}"


def _computed_fault(stream: Stream, computed: Computed) -> str | None:
    """Return what is wrong with a computed column that records are read with."""
    name = computed.name
    role, example = "the unique id", "STRING"
    if name == stream.event_time:
        role, example = "the event time", "TIMESTAMP"
    if computed.type is None:
        return f"column {name}: {role} has a type; write {name} {example} AS ..."
    if stream.format == "debezium":
        return (
            f"column {name}: {role} of change events is read, not computed; write {name} {example} "
            "FROM '$.source.ts_ms', with its FORMAT"
        )
    declared = {column.name for column in stream.columns}
    others = [ref for ref in computed.scalar.refs if ref not in declared]
    if others:
        return (
            f"column {name}: {role} is computed from the columns of the record's value, and "
            f"{others[0]} is none of them"
        )
    built = next(iter(_CALLED.findall(computed.scalar.text)), None)
    if built is not None:
        return (
            f"column {name}: {built}() makes a map, which {role} cannot be computed from: Spark "
            "takes keys of a record that fails for those of the next. Read the value with "
            f"{name} {example} FROM '$.path.to.it', or compute it with get_json_object"
        )
    return None


def _format_fault(column: Column) -> str | None:
    if column.format is None:
        return None
    name = column.name
    if not column.type.holds_timestamp:
        return (
            f"column {name}: FORMAT says how timestamps are written, and {column.type.sql} has "
            f"none; remove it, or write {name} TIMESTAMP FORMAT '{column.format}'"
        )
    if column.format not in COLUMN_FORMATS:
        return (
            f"column {name}: FORMAT {column.format!r} is not known; write 'iso8601', 'seconds', "
            "'millis' or 'micros' (since 1970). For other texts read a STRING, and compute the "
            f"time from it: {name} TIMESTAMP AS to_timestamp(<column>, 'yyyy-MM-dd HH:mm:ss')"
        )
    return None


def _check_unique(findings: Findings, stream: Stream) -> None:
    if stream.duplicates not in DUPLICATES:
        findings.add(
            "duplicates",
            f"duplicates = {stream.duplicates!r} is not known; write 'drop', which counts them, or "
            f"'topic', which also keeps them in {stream.name}.duplicate",
        )
    if stream.unique is None:
        for option, is_set in (
            ("unique_within", stream.unique_within_us != 0),
            ("duplicates", stream.duplicates != Stream.duplicates),
        ):
            if is_set:
                findings.add(
                    option,
                    f"{option} of {stream.name} has no effect without a unique id; write "
                    "unique = '<column>' as well, or remove it",
                )
        return
    findings.add("unique", _unique_fault(stream, stream.unique))
    if stream.event_time is None:
        findings.add(
            "unique",
            f"unique needs the event time of {stream.name}, whose clock measures how long ids are "
            "remembered; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 "
            "SECONDS",
        )
    if stream.unique_within_us <= 0:
        findings.add(
            "unique_within" if "unique_within" in findings.locations else "unique",
            f"unique = '{stream.unique}' needs a horizon, since ids are not remembered for ever; "
            "write unique_within = '1 hour'",
        )


def _unique_fault(stream: Stream, name: str) -> str | None:
    if _is_untyped(stream, name):
        return None
    column = next((column for column in stream.scanned if column.name == name), None)
    if column is None:
        known = [name for name, _ in stream.outline]
        return f"unique {name!r} is not a column of {stream.name}{closest(name, known)}"
    if column.type.kind in ("FLOAT", "DOUBLE", "ARRAY", "MAP", "STRUCT"):
        return (
            f"unique {name!r}: values of {column.type.sql} cannot be compared exactly; write "
            f"{name} STRING NOT NULL, which takes any value as its text"
        )
    if column.nullable:
        return (
            f"unique {name!r}: records without an id cannot be told apart; "
            f"write {name} {column.type.sql} NOT NULL"
        )
    return None


def _is_untyped(stream: Stream, name: str) -> bool:
    """Whether a column is a computed one without a type, which is said of the column itself."""
    return any(each.name == name and each.type is None for each in stream.eager)


def _event_time_fault(stream: Stream, name: str) -> str | None:
    if name == nodes.ARRIVAL or _is_untyped(stream, name):
        return None
    column = next((column for column in stream.scanned if column.name == name), None)
    if column is None:
        known = [name for name, _ in stream.outline]
        return f"WATERMARK FOR {name}: {stream.name} has no such column{closest(name, known)}"
    if column.type.kind != "TIMESTAMP":
        return (
            f"WATERMARK FOR {name}: the event time must be a TIMESTAMP, not {column.type.sql}; "
            f"write {name} TIMESTAMP {'NOT NULL' if column in stream.columns else 'AS ...'}"
        )
    if column.nullable:
        return (
            f"WATERMARK FOR {name}: a record without an event time has no place in time; "
            f"write {name} TIMESTAMP NOT NULL"
        )
    return None
