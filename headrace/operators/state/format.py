r"""The file of a run: entries of operator state, written once, sorted by hash.

One Arrow IPC file with one record batch, uncompressed, so that a column is one slice of the
memory-mapped file. Columns, in this order, none nullable:

    high      uint64   first 64 bits of the key's hash; rows are sorted by (high, low)
    low       uint64   second 64 bits; no key stands twice
    clock_us  int64    the partition's clock right after the key's newest record, µs since 1970

The schema's metadata has one entry, `headrace.run`, a JSON object:

    version           1; a reader refuses any other
    rows              how many rows the batch has, at least 1
    first_shard       the file holds keys of shards [first_shard, end_shard) only;
    end_shard         a key's shard is the top 10 bits of `high`
    largest_clock_us  of all rows
    checksum          xxh3-128 in hexadecimal over the four numbers above, each in decimal digits
                      and followed by "\n", and the bytes of the columns high, low, clock_us

The checksum covers all that a reader uses. It is in the metadata, before the data, because the
rows are known as a whole when the file is written. `tests/operators/golden` has a file of every
version.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from headrace.errors import StateDamaged, StoreError
from headrace.operators.state.entries import Entries, Shards

__all__ = ["BYTES_PER_ROW", "VERSION", "Described", "read_run", "run_bytes"]

VERSION = 1
BYTES_PER_ROW = 24

_NAME = b"headrace.run"
_SCHEMA = pa.schema(
    [
        pa.field("high", pa.uint64(), nullable=False),
        pa.field("low", pa.uint64(), nullable=False),
        pa.field("clock_us", pa.int64(), nullable=False),
    ]
)


class Described(NamedTuple):
    """A run as its file has it."""

    entries: Entries
    shards: Shards
    largest_clock_us: int


def run_bytes(entries: Entries, shards: Shards) -> pa.Buffer:
    """Return a run as the bytes of its file."""
    assert entries.rows > 0
    numbers = (entries.rows, *shards, int(entries.clock_us.max()))
    head = {
        "version": VERSION,
        "rows": numbers[0],
        "first_shard": numbers[1],
        "end_shard": numbers[2],
        "largest_clock_us": numbers[3],
        "checksum": _checksum(numbers, entries),
    }
    schema = _SCHEMA.with_metadata({_NAME: json.dumps(head)})
    batch = pa.record_batch([pa.array(column) for column in entries], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_run(path: Path) -> Described:
    """Map a run into memory and check it.

    StateDamaged: it is missing, or not what was written. StoreError: the system does not let us
    look, which says nothing of the file.
    """
    try:
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            head = json.loads((reader.schema.metadata or {})[_NAME])
            if head["version"] != VERSION:
                raise _damaged(path, f"is of version {head['version']}, this release reads 1")
            batch = reader.get_batch(0)
            columns = [column.to_numpy(zero_copy_only=True) for column in batch.columns]
        same_columns = reader.schema.remove_metadata().equals(_SCHEMA)
        if reader.num_record_batches != 1 or not same_columns:
            raise _damaged(path, "has other columns or batches than a run has")
        entries = Entries(*columns)
        numbers = tuple(
            head[name] for name in ("rows", "first_shard", "end_shard", "largest_clock_us")
        )
        sound = _checksum(numbers, entries) == head["checksum"] and entries.rows == head["rows"]
    except FileNotFoundError as error:
        raise _damaged(path, "is missing") from error
    except (OSError, MemoryError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        # What Arrow finds wrong with the content may be an OSError too, without a number.
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise StoreError(
                f"{path}: this file of operator state cannot be opened: {error}. The turn is not "
                f"committed, and nothing is lost. Mend what the system names (rights, limits, the "
                f"disk) and run again."
            ) from error
        raise _damaged(path, f"cannot be read ({error})") from error
    if not sound:
        raise _damaged(path, "is damaged: its checksum fails")
    return Described(entries, Shards(numbers[1], numbers[2]), numbers[3])


def _damaged(path: Path, what: str) -> StateDamaged:
    return StateDamaged(
        f"{path}: this file of operator state {what}. The log has all that it is made of: stop "
        f"the engine, move the store and its folder of state away, and run again; both are built "
        f"anew from the log."
    )


def _checksum(numbers: tuple[int, ...], entries: Entries) -> str:
    digest = xxhash.xxh3_128("".join(f"{number}\n" for number in numbers).encode())
    for column in entries:
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()
