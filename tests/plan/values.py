"""Values of every type for expressions over aggregates: extreme ones, and some at random."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext

import pyarrow as pa

from headrace.schema.types import parse_type

__all__ = ["COLUMNS", "make_rows"]

COLUMNS = {
    "tiny": "TINYINT",
    "few": "INT",
    "whole": "INT",
    "big": "BIGINT",
    "other": "BIGINT",
    "narrow": "FLOAT",
    "wide": "DOUBLE",
    "broad": "DOUBLE",
    "money": "DECIMAL(22,2)",
    "rate": "DECIMAL(10,4)",
    "huge": "DECIMAL(38,10)",
    "word": "STRING",
    "part": "STRING",
    "flag": "BOOLEAN",
    "day": "DATE",
    "date2": "DATE",
    "moment": "TIMESTAMP",
    "time2": "TIMESTAMP",
    "numbers": "ARRAY<BIGINT>",
    "fractions": "ARRAY<DOUBLE>",
    "words": "ARRAY<STRING>",
    "counts": "MAP<STRING, BIGINT>",
    "pair": "STRUCT<item: STRING, Count: BIGINT>",
    "top": "ARRAY<STRUCT<item: STRING, count: BIGINT>>",
}
_FLOATS = [
    0.0, -0.0, 0.1, 0.5, 1.5, 2.5, -2.5, 2.675, 1.005, -0.001, 0.0049999, 127.9, -128.9, 123456.789,
    math.nan, math.inf, -math.inf, 2.0**24, 1e15, 1e16, -1e-7, 2.0**31, 2.0**53 + 2, 2.0**63,
    -(2.0**63), -9.3e18, 1e22, 3e38, 2.0**-149,
]  # fmt: skip
_TEXTS = [
    "", " ", "a", "ab", "abc", " a b ", "ä", "日本語", "😀x", "a\tb", "\n", "%", "_", "A", "aa",
    "ba", "it's", '"', "x" * 20, "é", "e\u0301",
]  # fmt: skip
_DATES = [
    "0001-01-01", "0001-12-31", "1582-10-04", "1582-10-15", "1900-02-28", "1969-12-31",
    "1970-01-01", "2000-02-29", "2023-12-31", "2024-01-31", "2024-02-29", "2024-12-30",
    "9999-12-31", "9998-01-01",
]  # fmt: skip
_TIMES = [
    "00:00:00", "23:59:59.999999", "12:00:00", "00:00:00.000001", "01:02:03.5", "11:59:59.123",
]  # fmt: skip
_DECIMALS = ["0", "0.01", "-0.01", "0.05", "1", "-1", "2.5", "-2.5", "12.34", "99.995", "-7", "3"]


def make_rows(count: int, seed: int) -> pa.Table:
    """Return so many rows; every column is NULL in some of them."""
    chance = random.Random(seed)

    def decimals(precision: int, scale: int) -> list[Decimal]:
        with localcontext(prec=precision):
            step = Decimal(1).scaleb(-scale)
            found = [Decimal(each).quantize(step) for each in _DECIMALS]
            wholes = [10**precision - 1, 1 - 10**precision, 1, -1]
            wholes += [chance.randrange(10**precision), -chance.randrange(10 ** (precision // 2))]
            return found + [Decimal(each).scaleb(-scale) for each in wholes]

    def integers(bits: int) -> list[int]:
        limit = 2 ** (bits - 1)
        near = [0, 1, -1, 2, 3, -3, 5, 7, -7, 10, 100, limit - 1, -limit, limit // 3]
        return [*near, chance.randrange(-limit, limit)]

    floats = [*_FLOATS, *(chance.uniform(-1e4, 1e4) for _ in range(4))]
    floats += [round(chance.uniform(0, 100), 3) for _ in range(4)]
    doubles = [*floats, 1e308, -1e308, 5e-324, chance.uniform(-1e18, 1e18)]
    narrow = [struct32(each) for each in floats]
    days = [date.fromisoformat(each) for each in _DATES]
    moments = [
        datetime.fromisoformat(f"{each}T{time}").replace(tzinfo=UTC)
        for each in _DATES
        for time in _TIMES
    ]

    def some(values: Sequence[object]) -> list[object]:
        return [chance.choice([*values, None]) for _ in range(chance.randrange(5))]

    def item() -> dict[str, object]:
        return {"item": chance.choice([*_TEXTS, None]), "count": chance.choice([1, 2, None])}

    def pick(name: str) -> object:
        match name:
            case "tiny":
                return chance.choice(integers(8))
            case "few":
                return chance.choice(range(-4, 12))
            case "whole":
                return chance.choice(integers(32))
            case "big" | "other":
                return chance.choice(integers(64))
            case "narrow":
                return chance.choice(narrow)
            case "wide" | "broad":
                return chance.choice(doubles)
            case "money":
                return chance.choice(decimals(22, 2))
            case "rate":
                return chance.choice(decimals(10, 4))
            case "huge":
                return chance.choice(decimals(38, 10))
            case "word" | "part":
                return chance.choice(_TEXTS)
            case "flag":
                return chance.choice([True, False])
            case "day" | "date2":
                return chance.choice(days)
            case "moment" | "time2":
                return chance.choice(moments)
            case "numbers":
                return some(integers(64)[:8])
            case "fractions":
                return some([0.5, 1.5, math.nan, math.inf, -2.0])
            case "words":
                return some(_TEXTS)
            case "counts":
                return [(key, chance.choice([1, None])) for key in chance.sample(_TEXTS, 3)]
            case "pair":
                return {"item": chance.choice(_TEXTS), "Count": chance.choice(integers(64))}
            case "top":
                return [item() for _ in range(chance.randrange(4))]
        raise AssertionError(name)

    rows = [
        {name: None if chance.random() < 0.07 else pick(name) for name in COLUMNS}
        for _ in range(count - 1)
    ]
    schema = pa.schema([(name, parse_type(type).arrow) for name, type in COLUMNS.items()])
    table = pa.Table.from_pylist([*rows, dict.fromkeys(COLUMNS)], schema=schema)
    return table.append_column("row", pa.array(range(count)))


def struct32(value: float) -> float:
    """Return the nearest value of 32 bits."""
    return float(pa.array([value], pa.float32())[0].as_py())
