"""Which partition a key belongs to: Kafka's murmur2, over whole Arrow columns.

Promises:
- The hash of every key, and so its partition, is the one Kafka's default partitioner computes.
- No Python per record: the keys of a batch are hashed side by side, four bytes of each per step.
  Only keys over LONG_KEY_BYTES are walked alone, so that one huge key does not make the whole batch
  take as many steps as it has words.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["murmur2", "partition_of"]

LONG_KEY_BYTES = 1024

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF

Words = npt.NDArray[np.uint32]


def partition_of(keys: Any, partitions: int) -> npt.NDArray[np.int64]:
    """Return the partition of every key of a binary array; a null's is that of an empty key."""
    positive: npt.NDArray[np.int64] = murmur2(keys).astype(np.int64) & 0x7FFFFFFF
    return positive % partitions


def murmur2(keys: Any) -> npt.NDArray[np.int32]:
    """Return Kafka's hash of every key of a binary array; a null hashes like an empty key."""
    keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if len(keys) == 0:
        return np.zeros(0, np.int32)
    _, offset_buffer, data_buffer = keys.buffers()
    bounds = np.frombuffer(offset_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    starts, lengths = bounds[:-1].astype(np.int64), np.diff(bounds).astype(np.int64)
    if keys.null_count:
        # Arrow leaves open what the offsets of a null span.
        lengths[keys.is_null().to_numpy(zero_copy_only=False)] = 0
    # Padded, so that the last word of the last key can be loaded whole.
    end = int((starts + lengths).max())
    data = np.zeros(end + 4, np.uint8)
    if data_buffer is not None:
        data[:end] = np.frombuffer(data_buffer, np.uint8, end)
    return _hash(data, starts, lengths).view(np.int32)


def _hash(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Words:
    m = np.uint32(_M)
    # A word may begin at any byte: an overlapping view makes loading it one gather.
    words: Words = np.ndarray((len(data) - 3,), np.dtype("<u4"), data, strides=(1,))
    # Longest first, so that the keys that still have a word at some step are always a prefix.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    blocks = lengths >> 2
    h: Words = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    long = int(np.count_nonzero(lengths > LONG_KEY_BYTES))
    for row in range(long):
        at = starts[row] + 4 * np.arange(blocks[row])
        h[row] = _chain(int(h[row]), _mix(words[at]))
    short_blocks = blocks[long:]
    steps = int(short_blocks[0]) if len(short_blocks) else 0
    for step in range(steps):
        active = slice(long, long + int(np.searchsorted(-short_blocks, -step, side="left")))
        h[active] = (h[active] * m) ^ _mix(words[starts[active] + 4 * step])
    rest = lengths & 3
    tail = words[starts + 4 * blocks] & ((np.uint32(1) << (8 * rest).astype(np.uint32)) - 1)
    h = np.where(rest > 0, (h ^ tail) * m, h)
    h ^= h >> np.uint32(13)
    h *= m
    h ^= h >> np.uint32(15)
    hashes = np.empty_like(h)
    hashes[order] = h
    return hashes


def _mix(words: Words) -> Words:
    k: Words = words * np.uint32(_M)
    k ^= k >> np.uint32(24)
    k *= np.uint32(_M)
    return k


def _chain(h: int, mixed: Words) -> int:
    for k in mixed.tolist():
        h = (h * _M & _MASK) ^ k
    return h
