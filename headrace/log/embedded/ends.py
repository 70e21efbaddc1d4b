"""Where a partition begins and ends: one small file that all processes share.

The *first* offset is where the oldest segment that is kept begins; files before it are about to be
removed. The *written* end is where the next batch goes; the *acknowledged* end is how far readers
see, and nothing before it is ever cut. The file holds two slots; a change goes to the older one, so
that the newer stays whole whatever happens to the write. Slots begin at the bytes 0 and 128:

    byte  size  field
       0     3  magic "HRE"
       3     1  version, 3
       4     4  zero
       8     8  generation: the slot with the larger one counts
      16     8  cuts: another number whenever bytes before the written end were cut
      24    24  acknowledged end: offset, base offset of its segment, byte position in it
      48    24  written end: offset, base offset of its segment, byte position in it
      72     8  first offset
      80     8  compactions: how often compaction has put new files in the place of old ones
      88     8  checksum: xxh3_64 of the bytes [0, 88)

Version 2 has no compactions, version 1 no first offset either; both were always 0, and the checksum
stands in their place.
A written end at byte 0 of a segment means that the segment is about to be made.

Promises:
- A reader without a lock gets ends that were true at some moment while it read.
- A writer, who holds the partition's lock, replaces both ends at once.
- What retention removes is given up here, and synced, before its files go.
Not promised: that a newer slot survives a power loss; then `appender` finds the ends again, since
what is acknowledged was synced into the segments before.
"""

import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

import xxhash

from headrace.log.embedded.files import FILE_MODE, write_whole

__all__ = ["Ends", "Mark", "encode_ends", "read_ends", "write_ends"]

_MAGIC = b"HRE\x03"
_SLOT = struct.Struct("<4sIQqqqqqqqqq")
_MAGIC_2 = b"HRE\x02"
_SLOT_2 = struct.Struct("<4sIQqqqqqqqq")
_MAGIC_1 = b"HRE\x01"
_SLOT_1 = struct.Struct("<4sIQqqqqqqq")
_CHECKSUM = struct.Struct("<Q")
_SLOT_STRIDE = 128
_GENERATION = slice(8, 16)
_READ_ATTEMPTS = 20


class Mark(NamedTuple):
    """A place in a partition: before the record `offset`, at a byte of a segment."""

    offset: int
    segment: int
    position: int


class Ends(NamedTuple):
    """Both ends of a partition, as one generation of the file says."""

    generation: int
    cuts: int
    acknowledged: Mark
    written: Mark
    first: int = 0
    compactions: int = 0


def encode_ends(ends: Ends) -> bytes:
    """Return the bytes of one slot."""
    generation, cuts, acknowledged, written, *counts = ends
    slot = _SLOT.pack(_MAGIC, 0, generation, cuts, *acknowledged, *written, *counts)
    return slot + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(slot))


def _decode_slots(data: bytes) -> Ends | None:
    slots = [data[:_SLOT_STRIDE], data[_SLOT_STRIDE:]]
    if len(slots[1]) >= _SLOT_1.size + _CHECKSUM.size:
        # The newer one first; the other is looked at only if that one is not whole.
        slots.sort(key=lambda slot: slot[_GENERATION][::-1], reverse=True)
    for slot in slots:
        layout = {_MAGIC: _SLOT, _MAGIC_2: _SLOT_2, _MAGIC_1: _SLOT_1}.get(slot[:4])
        if layout is None or len(slot) < layout.size + _CHECKSUM.size:
            continue
        _, _, generation, cuts, *marks = layout.unpack_from(slot)
        (checksum,) = _CHECKSUM.unpack_from(slot, layout.size)
        if xxhash.xxh3_64_intdigest(slot[: layout.size]) == checksum:
            return Ends(generation, cuts, Mark(*marks[:3]), Mark(*marks[3:6]), *marks[6:])
    return None


def read_ends(path: Path) -> Ends | None:
    """Return the ends; None if the file is missing or neither slot is whole."""
    for _ in range(_READ_ATTEMPTS):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            data = os.pread(descriptor, 2 * _SLOT_STRIDE, 0)
        finally:
            os.close(descriptor)
        if (ends := _decode_slots(data)) is not None:
            return ends
        # Two writers in a row can have passed while this read was on its way.
        time.sleep(0.0005)
    return None


def write_ends(path: Path, ends: Ends) -> Ends:
    """Store ends as the generation after their own, and return that. Needs the partition's lock."""
    ends = ends._replace(generation=ends.generation + 1)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        write_whole(descriptor, encode_ends(ends), ends.generation % 2 * _SLOT_STRIDE)
    finally:
        os.close(descriptor)
    return ends
