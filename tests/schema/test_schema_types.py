"""Types: what users and Spark write is read, and every spelling of a type means the same."""

import pickle
import re

import duckdb
import pyarrow as pa
import pytest

from headrace import schema
from headrace.schema import Column, DataType, parse_type

READ = [
    ("boolean", "BOOLEAN", pa.bool_(), "BOOLEAN"),
    ("tinyint", "TINYINT", pa.int8(), "TINYINT"),
    ("BYTE", "TINYINT", pa.int8(), "TINYINT"),
    ("smallint", "SMALLINT", pa.int16(), "SMALLINT"),
    ("SHORT", "SMALLINT", pa.int16(), "SMALLINT"),
    (" int ", "INT", pa.int32(), "INTEGER"),
    ("Integer", "INT", pa.int32(), "INTEGER"),
    ("bigint", "BIGINT", pa.int64(), "BIGINT"),
    ("LONG", "BIGINT", pa.int64(), "BIGINT"),
    ("float", "FLOAT", pa.float32(), "FLOAT"),
    ("REAL", "FLOAT", pa.float32(), "FLOAT"),
    ("double", "DOUBLE", pa.float64(), "DOUBLE"),
    ("decimal", "DECIMAL(10,0)", pa.decimal128(10, 0), "DECIMAL(10,0)"),
    ("NUMERIC(5)", "DECIMAL(5,0)", pa.decimal128(5, 0), "DECIMAL(5,0)"),
    ("decimal( 12 , 2 )", "DECIMAL(12,2)", pa.decimal128(12, 2), "DECIMAL(12,2)"),
    ("decimal(38,38)", "DECIMAL(38,38)", pa.decimal128(38, 38), "DECIMAL(38,38)"),
    ("string", "STRING", pa.string(), "VARCHAR"),
    ("binary", "BINARY", pa.binary(), "BLOB"),
    ("date", "DATE", pa.date32(), "DATE"),
    ("timestamp", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("TIMESTAMP_LTZ", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("array<string>", "ARRAY<STRING>", pa.list_(pa.string()), "VARCHAR[]"),
    (
        "map<string,array<int>>",
        "MAP<STRING, ARRAY<INT>>",
        pa.map_(pa.string(), pa.list_(pa.int32())),
        "MAP(VARCHAR, INTEGER[])",
    ),
    (
        "struct<a:int,`b ``c`: decimal(3,1), d STRING>",
        "STRUCT<a: INT, `b ``c`: DECIMAL(3,1), d: STRING>",
        pa.struct([("a", pa.int32()), ("b `c", pa.decimal128(3, 1)), ("d", pa.string())]),
        'STRUCT("a" INTEGER, "b `c" DECIMAL(3,1), "d" VARCHAR)',
    ),
    # As other systems write them; what a length or a precision says is not kept.
    ("VARCHAR(255)", "STRING", pa.string(), "VARCHAR"),
    ("varchar", "STRING", pa.string(), "VARCHAR"),
    ("CHAR(2)", "STRING", pa.string(), "VARCHAR"),
    ("character varying(10)", "STRING", pa.string(), "VARCHAR"),
    ("text", "STRING", pa.string(), "VARCHAR"),
    ("BYTES", "BINARY", pa.binary(), "BLOB"),
    ("VARBINARY(16)", "BINARY", pa.binary(), "BLOB"),
    ("DOUBLE PRECISION", "DOUBLE", pa.float64(), "DOUBLE"),
    ("TIMESTAMP(0)", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("timestamp( 9 )", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    ("ROW<a INT>", "STRUCT<a: INT>", pa.struct([("a", pa.int32())]), 'STRUCT("a" INTEGER)'),
    ("row(a INT)", "STRUCT<a: INT>", pa.struct([("a", pa.int32())]), 'STRUCT("a" INTEGER)'),
]

# What is written, our spelling of it, and Spark's, which does not say NOT NULL within a type.
NOT_NULL = [
    ("array<int not null>", "ARRAY<INT NOT NULL>", "ARRAY<INT>"),
    ("array<int null>", "ARRAY<INT>", "ARRAY<INT>"),
    ("MAP<STRING, INT NOT NULL>", "MAP<STRING, INT NOT NULL>", "MAP<STRING, INT>"),
    ("MAP<STRING NOT NULL, INT>", "MAP<STRING, INT>", "MAP<STRING, INT>"),
    ("STRUCT<a INT NOT NULL, b: INT>", "STRUCT<a: INT NOT NULL, b: INT>", "STRUCT<a: INT, b: INT>"),
    (
        "ROW<a ARRAY<VARCHAR(3) NOT NULL> NOT NULL>",
        "STRUCT<a: ARRAY<STRING NOT NULL> NOT NULL>",
        "STRUCT<a: ARRAY<STRING>>",
    ),
]

REFUSED = [
    ("VARCHAR(0)", "VARCHAR(0) is not a type; write 1 to 2147483647, or STRING"),
    ("VARCHAR(max)", "VARCHAR(max) is not a type"),
    ("TIMESTAMP(10)", "TIMESTAMP(10) is not a type; write 0 to 9, or TIMESTAMP"),
    ("TEXT(5)", "TEXT takes no parameters; write STRING"),
    ("TIMESTAMP WITH TIME ZONE", "write TIMESTAMP"),
    ("timestamp_ntz", "write TIMESTAMP; a time without a zone is read as UTC"),
    ("array<uuid>", "UUID is not a type of Headrace: write STRING"),
    ("strng", "there is no type STRNG; the types are BOOLEAN"),
    ("", "a type is missing before its end"),
    ("int int", "unexpected 'int' after INT"),
    ("int $", "unexpected '$'"),
    ("int(3)", "INT takes no parameters; write INT"),
    ("decimal(39,2)", "write 1 to 38"),
    ("decimal(0)", "write 1 to 38"),
    ("decimal(2,3)", "DECIMAL(2,3) has 3 decimals; write 0 to 2"),
    ("decimal(a)", "'a' is not a number of digits"),
    ("decimal(12,2", "')' is missing before its end"),
    ("array", "'<' is missing before its end"),
    ("array<int", "'>' is missing before its end"),
    ("struct<>", "a field's name is missing"),
    ("struct<a:int NOT>", "NULL is missing after NOT"),
    ("array<int> NOT NULL", "unexpected 'NOT' after ARRAY<INT>"),
    ("struct<a:int,A:int>", "have the same name (case does not count)"),
    ("map<array<int>,int>", "a MAP's key is a single value, not ARRAY<INT>"),
    ("array<" * 40 + "int" + ">" * 40, "nested more than 32 deep"),
]


@pytest.mark.parametrize(("text", "sql", "arrow", "duckdb_type"), READ)
def test_a_type_is_read_as_users_and_spark_write_it(
    text: str, sql: str, arrow: pa.DataType, duckdb_type: str
) -> None:
    parsed = parse_type(text)
    assert (parsed.sql, parsed.arrow, parsed.duckdb) == (sql, arrow, duckdb_type)
    assert parse_type(sql) == parsed
    assert pickle.loads(pickle.dumps(parsed)) == parsed
    assert hash(parse_type(sql)) == hash(parsed)


@pytest.mark.parametrize(("text", "ddl", "sql"), NOT_NULL)
def test_a_type_may_be_not_null_within(text: str, ddl: str, sql: str) -> None:
    parsed = parse_type(text)
    assert (parsed.ddl, parsed.sql, str(parsed)) == (ddl, sql, ddl)
    assert parse_type(ddl) == parsed
    assert (parse_type(sql) == parsed) is (ddl == sql)
    assert parse_type(sql).arrow == parsed.arrow


@pytest.mark.parametrize("sql", [sql for _, sql, _, _ in READ])
def test_duckdb_and_arrow_agree_on_every_type(sql: str) -> None:
    parsed = parse_type(sql)
    with duckdb.connect() as connection:
        made = connection.sql(f"SELECT NULL::{parsed.duckdb} AS a").to_arrow_table()
        column = made.column("a")
    assert column.cast(parsed.arrow).type == parsed.arrow


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_a_type_is_refused_with_advice(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_type(text)


def test_types_know_what_they_are_good_for() -> None:
    kinds = {sql: parse_type(sql) for _, sql, _, _ in READ}
    integers = {sql for sql, kind in kinds.items() if kind.is_integer}
    assert integers == {"TINYINT", "SMALLINT", "INT", "BIGINT"}
    numbers = {sql.split("(")[0] for sql, kind in kinds.items() if kind.is_numeric}
    assert numbers == {"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"}
    unordered = {sql.split("<")[0] for sql, kind in kinds.items() if not kind.is_orderable}
    assert unordered == {"ARRAY", "MAP", "STRUCT"}
    nested = {
        "STRUCT<a: ARRAY<INT>>": (True, False),
        "ARRAY<STRUCT<a: FLOAT>>": (True, True),
        "MAP<STRING, DOUBLE>": (False, True),
        "STRUCT<a: ARRAY<MAP<STRING, INT>>>": (False, False),
        "DOUBLE": (True, True),
    }
    for sql, expected in nested.items():
        type = parse_type(sql)
        assert (type.is_comparable, type.has_two_zeros) == expected, sql


def test_a_column_is_nullable_unless_it_says_otherwise() -> None:
    assert Column("a", DataType("INT")).nullable


@pytest.mark.parametrize("name", schema.__all__)
def test_what_the_room_exports_is_there(name: str) -> None:
    assert hasattr(schema, name)
