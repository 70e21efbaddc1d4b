"""The type of a column of UNION ALL, from those of its branches, as Spark with ANSI on has it.

Types of any depth are the same or refused: what Spark makes of two different ones is not told here.
"""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

__all__ = ["common_type", "spark_name"]

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = dict(zip(_WHOLE, (3, 5, 10, 20), strict=True))  # that a DECIMAL needs for them
_MAX_DIGITS = 38
_NAMES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type that the branches of a union share. NotImplementedError: none is known."""
    return reduce(_wider, types)


def spark_name(type: pa.DataType) -> str:
    """Return a type as Spark SQL. NotImplementedError."""
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision}, {type.scale})"
    if type not in _NAMES:
        raise NotImplementedError(f"the reference cannot cast to {type}")
    return _NAMES[type]


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if _is_number(left) and _is_number(right):
        return _wider_number(left, right)
    for text, other in ((left, right), (right, left)):
        if text == pa.string() and not pa.types.is_nested(other):
            # A text beside a number is read as one: it must be one in every row.
            if _is_number(other):
                return pa.int64() if other in _WHOLE else pa.float64()
            return other
    for date, time in ((left, right), (right, left)):
        if date == pa.date32() and pa.types.is_timestamp(time):
            return time
    raise NotImplementedError(f"the reference does not unite {left} and {right}")


def _is_number(type: pa.DataType) -> bool:
    return type in _WHOLE or pa.types.is_floating(type) or pa.types.is_decimal(type)


def _wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left in _WHOLE and right in _WHOLE:
        return max(left, right, key=_WHOLE.index)
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()  # also of FLOAT and a whole number, which FLOAT would cut
    (left_digits, left_scale), (right_digits, right_scale) = map(_decimal, (left, right))
    scale = max(left_scale, right_scale)
    digits = max(left_digits - left_scale, right_digits - right_scale) + scale
    if digits > _MAX_DIGITS:
        raise NotImplementedError(f"the reference does not unite {left} and {right}")
    return pa.decimal128(digits, scale)


def _decimal(type: pa.DataType) -> tuple[int, int]:
    return (_DIGITS[type], 0) if type in _WHOLE else (type.precision, type.scale)
