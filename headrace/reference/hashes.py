"""XXH64 with seed 42, of values as Spark's xxhash64 sees them. Slow; for the reference alone.

Whole numbers of up to 32 bits, truth values, dates and FLOAT are four bytes, longer ones, times,
DOUBLE and decimals of up to 18 digits eight; texts and longer decimals are as many as they have.
"""

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

__all__ = ["hash_of"]

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SEED = 42
_LONG_DIGITS = 18  # of a decimal that Spark keeps as a BIGINT
_EXACT = Context(prec=100)


def hash_of(value: Any, type: pa.DataType) -> int:
    """Return the hash of a value that is not null, as 64 bits without a sign."""
    return _xxh64(_bytes(value, type))


def _bytes(value: Any, type: pa.DataType) -> bytes:
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, float):
        # Adding nothing makes -0.0 the other zero.
        return struct.pack("<f" if pa.types.is_float32(type) else "<d", value + 0.0)
    if isinstance(value, datetime):
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return struct.pack("<q", (value - epoch) // timedelta(microseconds=1))
    if isinstance(value, date):
        return struct.pack("<i", (value - date(1970, 1, 1)).days)
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(type.scale, _EXACT))
        if type.precision <= _LONG_DIGITS:
            return struct.pack("<q", unscaled)
        # As Java's BigInteger: the fewest bytes with room for the sign, the largest first.
        length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)
    return struct.pack("<q" if pa.types.is_int64(type) else "<i", int(value))


def _xxh64(data: bytes) -> int:
    at = 0
    if len(data) >= 32:
        lanes = [_SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1]
        while len(data) - at >= 32:
            lanes = [_round(lane, _u64(data, at + 8 * i)) for i, lane in enumerate(lanes)]
            at += 32
        found = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = _SEED + _P5
    found = (found + len(data)) & _MASK
    while len(data) - at >= 8:
        found = (_rotate(found ^ _round(0, _u64(data, at)), 27) * _P1 + _P4) & _MASK
        at += 8
    if len(data) - at >= 4:
        word = struct.unpack_from("<I", data, at)[0]
        found = (_rotate(found ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotate(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    found = (found ^ (found >> 33)) * _P2 & _MASK
    found = (found ^ (found >> 29)) * _P3 & _MASK
    return found ^ (found >> 32)


def _u64(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<Q", data, at)[0])


def _rotate(number: int, by: int) -> int:
    number &= _MASK
    return (number << by | number >> (64 - by)) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate(lane + word * _P2, 31) * _P1 & _MASK
