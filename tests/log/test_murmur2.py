"""Partitions are Kafka's: its own published hashes, and a slow scalar murmur2 on random keys."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, integers, lists, none

from headrace.log.murmur2 import LONG_KEY_BYTES, murmur2, partition_of

# From Kafka's UtilsTest.testMurmur2.
KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def scalar_murmur2(key: bytes) -> int:
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for start in range(0, whole, 4):
        k = int.from_bytes(key[start : start + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def test_the_hashes_are_those_kafka_publishes() -> None:
    assert murmur2(pa.array(list(KAFKA), pa.binary())).tolist() == list(KAFKA.values())
    assert [scalar_murmur2(key) for key in KAFKA] == list(KAFKA.values())


def test_a_negative_hash_is_made_positive_as_kafka_does() -> None:
    assert partition_of(pa.array([b"21"]), 7).tolist() == [(-973932308 & 0x7FFFFFFF) % 7]


@settings(max_examples=100, deadline=None)
@given(keys=lists(binary(max_size=40) | none(), max_size=40), start=integers(0, 5))
def test_any_keys_hash_as_one_by_one_also_in_a_slice(keys: list[bytes | None], start: int) -> None:
    hashes = murmur2(pa.array(keys, pa.binary()).slice(start))
    assert hashes.tolist() == [scalar_murmur2(key or b"") for key in keys[start:]]


@pytest.mark.parametrize("extra", [0, 1, 2, 3, 4, 5])
def test_long_keys_hash_like_short_ones(extra: int) -> None:
    keys = [b"ab", bytes(range(256)) * 8, b"x" * (LONG_KEY_BYTES + extra), b"", b"y" * 999]
    assert murmur2(pa.array(keys)).tolist() == [scalar_murmur2(key) for key in keys]


def test_a_column_in_chunks_hashes_like_one_in_one_piece() -> None:
    chunked = pa.chunked_array([[b"21"], [], [b"foobar", b"abc"]], pa.binary())
    assert murmur2(chunked).tolist() == [KAFKA[b"21"], KAFKA[b"foobar"], KAFKA[b"abc"]]
