"""Tables of records on their way into a log: building, checking, and sharing out to partitions.

Promises:
- `records` makes of Python lists what `append` takes.
- `check_records` refuses a table with a record over the limit before anything is written, and
  `check_keys` one without a key where every record needs one.
- `share_out` keeps the order of the rows within each partition.
- Many records without a key are dealt out to all partitions, one by one (`deal_out`): so every
  partition has a share of their times, and none holds the watermark up. Few stay together, since
  an append to several partitions is a transaction: 39 ms, not 7, for 500 records (2 cores, ext4).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import RecordTooLarge, UsageError
from headrace.log.base import APPENDS, HEADERS, MAX_RECORD_BYTES
from headrace.log.murmur2 import partition_of
from headrace.wording import counted

__all__ = [
    "DEALT_RECORDS",
    "MAX_APPEND_BYTES",
    "check_keys",
    "check_records",
    "deal_out",
    "record_bytes",
    "records",
    "share_out",
]

# What one append may bring. One append is one stored batch per partition, whole or not there, so
# it has to fit the 32-bit lengths of Arrow's binary columns, with room to spare.
MAX_APPEND_BYTES = 1 << 30

#: An append with as many records without a key deals them out; fewer go to one partition.
DEALT_RECORDS = 2_000

Bytes = bytes | str | None
Headers = Mapping[str, Bytes] | Sequence[tuple[str, Bytes]] | None


def records(
    values: Sequence[Bytes],
    *,
    keys: Sequence[Bytes] | None = None,
    headers: Sequence[Headers] | None = None,
) -> pa.Table:
    """Return a table that `append` takes. Text is stored as UTF-8; None is null.

    The headers of a record are a mapping, or pairs where a name occurs twice. UsageError: the
    lists differ in length.
    """
    for name, column in (("key", keys), ("header", headers)):
        if column is not None and len(column) != len(values):
            raise UsageError(
                f"records: {counted(len(values), 'value')} but {counted(len(column), name)}; pass "
                f"one for each value, None where there is none."
            )
    headers_column = (
        pa.nulls(len(values), HEADERS)
        if headers is None
        else pa.array([_header_list(each) for each in headers], HEADERS)
    )
    columns = [_binary([None] * len(values) if keys is None else keys), _binary(values)]
    return pa.Table.from_arrays([*columns, headers_column], schema=APPENDS)


def _binary(column: Sequence[Bytes]) -> Any:
    return pa.array([x.encode() if isinstance(x, str) else x for x in column], pa.binary())


def _header_list(headers: Headers) -> list[dict[str, Bytes]] | None:
    if headers is None:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [
        {"name": name, "value": value.encode() if isinstance(value, str) else value}
        for name, value in pairs
    ]


def check_records(
    table: pa.Table, *, topic: str, max_bytes: int = MAX_RECORD_BYTES
) -> pa.RecordBatch:
    """Return the table as one batch of APPENDS.

    RecordTooLarge names the first record over the limit. UsageError: other columns, or more than
    MAX_APPEND_BYTES.
    """
    if set(table.column_names) != set(APPENDS.names) or table.num_columns != len(APPENDS):
        raise UsageError(
            f"{topic}: cannot append columns {table.column_names}; a record has key, value and "
            f"headers. Build the table with `headrace.log.records(values, keys=…, headers=…)`."
        )
    # Adding up buffers is cheap and never too little; a slice is measured exactly only if need be.
    small = table.get_total_buffer_size() <= max_bytes
    if not small and table.nbytes > MAX_APPEND_BYTES:
        raise UsageError(
            f"{topic}: cannot append {table.nbytes} bytes at once, {MAX_APPEND_BYTES} is the most; "
            f"append slices of the table, one after the other."
        )
    try:
        # Most tables come from `records` and need no cast, which takes 21 µs.
        if not table.schema.equals(APPENDS):
            table = table.select(APPENDS.names).cast(APPENDS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(
            f"{topic}: cannot append columns of these types: {error}. Build the table with "
            f"`headrace.log.records(values, keys=…, headers=…)`."
        ) from error
    batches = table.to_batches()
    if len(batches) > 1:  # columns in chunks of different lengths
        batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], APPENDS)
    # No record can be over the limit where all of them together are not.
    if not small and batch.num_rows:
        sizes = record_bytes(batch)
        if (largest := int(sizes.max())) > max_bytes:
            index = int(np.argmax(sizes > max_bytes))
            raise RecordTooLarge(
                f"{topic}: record {index} of this append has {sizes[index]} bytes of key, value "
                f"and headers, {max_bytes} is the most (the largest here: {largest}). "
                f"Nothing was appended; store the payload elsewhere and append a reference to it."
            )
    return batch


def check_keys(batch: pa.RecordBatch, *, topic: str) -> None:
    """Refuse a record without a key, as a compacted topic must. UsageError names the first one."""
    keys = batch.column("key")
    if keys.null_count:
        index = int(np.argmax(keys.is_null().to_numpy(zero_copy_only=False)))
        raise UsageError(
            f"{topic}: record {index} of this append has no key, and a compacted topic keeps the "
            f"newest record of each key. Nothing was appended; give every record a key, or stop "
            f"compacting: `headrace topics change {topic} --no-compact`."
        )


def record_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return how many bytes of key, value and headers each record has."""
    sizes = _lengths(batch.column("key")) + _lengths(batch.column("value"))
    headers = batch.column("headers")
    if headers.null_count == len(headers):
        return sizes
    pairs = headers.values
    pair_bytes = _lengths(pairs.field("name")) + _lengths(pairs.field("value"))
    total = np.concatenate(([0], np.cumsum(pair_bytes)))
    offsets = headers.offsets.to_numpy()
    header_bytes = total[offsets[1:]] - total[offsets[:-1]]
    header_bytes[headers.is_null().to_numpy(zero_copy_only=False)] = 0
    with_headers: npt.NDArray[np.int64] = sizes + header_bytes
    return with_headers


def _lengths(column: Any) -> npt.NDArray[np.int64]:
    lengths = pc.fill_null(pc.binary_length(column), 0)
    array: npt.NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return array


def deal_out(count: int, partitions: int, *, first: int = 0) -> npt.NDArray[np.int64]:
    """Return the partitions of `count` records without a key, of which `first` came before."""
    return (first + np.arange(count)) % partitions


def share_out(
    batch: pa.RecordBatch, *, partitions: int, keyless: int | npt.NDArray[np.int64]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (partition, its rows in their order): by key, and those without one to `keyless`.

    That is one partition for all of them, or one for each.
    """
    keys = batch.column("key")
    if keys.null_count == len(keys) and isinstance(keyless, int):
        yield keyless, batch
        return
    numbers = partition_of(keys, partitions)
    if keys.null_count:
        numbers[keys.is_null().to_numpy(zero_copy_only=False)] = keyless
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    if len(present) == 1:
        yield int(present[0]), batch
        return
    for number, rows in zip(present, np.split(order, starts[1:]), strict=True):
        yield int(number), batch.take(pa.array(rows))
