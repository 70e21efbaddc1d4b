"""The types that CAST can name: Spark's, and those of other engines."""

from headrace.sql.text import words

__all__ = ["OTHER_TYPES", "SAME_TYPES", "SPARK_TYPES"]

SPARK_TYPES = words(
    "ARRAY BIGINT BINARY BOOLEAN BYTE CHAR CHARACTER DATE DEC DECIMAL DOUBLE FLOAT INT INTEGER "
    "INTERVAL LONG MAP NUMERIC REAL SHORT SMALLINT STRING STRUCT TIME TIMESTAMP TIMESTAMP_LTZ "
    "TIMESTAMP_NTZ TINYINT VARCHAR VARIANT VOID"
)
#: Types of other engines that are one of Spark's by another name.
SAME_TYPES = {
    "BOOL": "boolean",
    "BYTEA": "binary",
    "BYTES": "binary",
    "DOUBLE PRECISION": "double",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "INT2": "smallint",
    "INT4": "int",
    "INT8": "bigint",
    "TEXT": "string",
    "TIMESTAMPTZ": "timestamp",
    "VARBINARY": "binary",
}
#: What to write for others.
OTHER_TYPES = {
    "JSON": "a JSON text is a STRING, and get_json_object(x, '$.name') reads a part of it",
    "JSONB": "a JSON text is a STRING, and get_json_object(x, '$.name') reads a part of it",
    "MONEY": "write DECIMAL(18, 2)",
    "ROW": "write STRUCT<a: INT>",
    "UUID": "write STRING",
}
