"""Random columns of every type, as the aggregates' law tests draw them."""

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from headrace.schema.types import DataType, parse_type

__all__ = ["COLUMNS", "column_type", "draw_columns", "same"]

EXACT = Context(prec=100)
Draw = Callable[[random.Random], Any]


def decimals(precision: int, scale: int) -> Draw:
    def draw(rng: random.Random) -> Decimal:
        digits = rng.randint(0, precision)
        return Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale, EXACT)

    return draw


def integers(bits: int) -> Draw:
    return lambda rng: rng.randint(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def moment(rng: random.Random) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randint(-(10**16), 10**16))


def words(alphabet: str, longest: int) -> Draw:
    return lambda rng: "".join(rng.choices(alphabet, k=rng.randint(0, longest)))


#: Name to type and how to draw a value; where a name is not the type, the values are special.
COLUMNS: dict[str, tuple[str, Draw]] = {
    "BIGINT": ("BIGINT", integers(64)),
    "INT": ("INT", integers(32)),
    "SMALLINT": ("SMALLINT", integers(16)),
    "TINYINT": ("TINYINT", integers(8)),
    "DECIMAL(28,4)": ("DECIMAL(28,4)", decimals(28, 4)),
    "DECIMAL(24,10)": ("DECIMAL(24,10)", decimals(24, 10)),
    "DECIMAL(24,24)": ("DECIMAL(24,24)", decimals(24, 24)),
    "DECIMAL(24,0)": ("DECIMAL(24,0)", decimals(24, 0)),
    "DECIMAL(3,1)": ("DECIMAL(3,1)", decimals(3, 1)),
    "DOUBLE": ("DOUBLE", lambda rng: rng.uniform(-1, 1) * 10.0 ** rng.randint(-15, 15)),
    "FLOAT": ("FLOAT", lambda rng: float(rng.randint(-(2**20), 2**20)) / 64),
    "BOOLEAN": ("BOOLEAN", lambda rng: rng.random() < 0.5),
    "STRING": ("STRING", words("aZ é\U0001f600\uffee0", 4)),
    "BINARY": ("BINARY", lambda rng: rng.randbytes(rng.randint(0, 3))),
    "TIMESTAMP": ("TIMESTAMP", moment),
    "DATE": ("DATE", lambda rng: date(1970, 1, 1) + timedelta(days=rng.randint(-(10**5), 10**5))),
    "no number": (
        "DOUBLE",
        lambda rng: rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5]),
    ),
    "infinite": ("DOUBLE", lambda rng: rng.choice([math.inf, 0.0, -0.0, 1.5])),
    "huge": ("DOUBLE", lambda rng: rng.choice([1.7e308, -1.7e308, 1e308, 3.0])),
    "huge and equal": ("DOUBLE", lambda _: 1.7e308),
    "large": ("DOUBLE", lambda rng: rng.choice([1e144, -1e144, 9e143])),
    "close": ("DOUBLE", lambda rng: 1e9 + rng.random()),
    "cancelling": ("DOUBLE", lambda _: 1.0),
    "same": ("DOUBLE", lambda _: 0.1),
    "few": ("STRING", words("ab", 2)),
    "few numbers": ("INT", lambda rng: rng.randint(0, 3)),
    "few doubles": ("DOUBLE", lambda rng: rng.choice([math.nan, 0.0, -0.0, 1.0])),
    "all true": ("BOOLEAN", lambda _: True),
    "all false": ("BOOLEAN", lambda _: False),
    "null": ("INT", lambda _: None),
    "null condition": ("BOOLEAN", lambda _: None),
    "ARRAY": ("ARRAY<INT>", lambda rng: [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]),
    "MAP": ("MAP<STRING, INT>", lambda rng: [("a", rng.randint(0, 3))]),
    "few arrays": (
        "ARRAY<DOUBLE>",
        lambda rng: rng.choice([[], [None], [0.0], [-0.0], [math.nan]]),
    ),
    "few structs": (
        "STRUCT<a: DOUBLE, `b c`: ARRAY<STRUCT<d: STRING>>>",
        lambda rng: {
            "a": rng.choice([None, 0.0, -0.0, math.nan]),
            "b c": rng.choice([None, [None], [{"d": None}], [{"d": "e"}]]),
        },
    ),
    "STRUCT": ("STRUCT<a: INT, b: STRING>", lambda rng: {"a": rng.randint(0, 3), "b": None}),
}


def column_type(name: str) -> DataType:
    """Return the type of a column."""
    return parse_type(COLUMNS[name][0])


def draw_columns(rng: random.Random, records: int) -> dict[str, list[Any]]:
    """Return as many values of every column, a tenth of them null."""
    columns = {
        name: [None if rng.random() < 0.1 else draw(rng) for _ in range(records)]
        for name, (_, draw) in COLUMNS.items()
    }
    # All the large ones first, then their opposites: the sum passes BIGINT and comes back.
    third = records // 3
    wide = [2**63 - 1] * third + [None] + [-(2**63 - 1)] * third
    columns["BIGINT"] = wide + [rng.randint(-(10**17), 10**17) for _ in range(records - len(wide))]
    # What is left of these is within the last digit of each.
    columns["cancelling"][: 2 * third] = [1e16] * third + [-1e16] * third
    return columns


def same(found: Any, expected: Any) -> bool:
    """Whether two values are the same to SQL: all NaN are one, and so are 0.0 and -0.0."""
    return bool(_plain(found) == _plain(expected))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value
