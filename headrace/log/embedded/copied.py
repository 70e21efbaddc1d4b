"""Records of another log, stored with the arrivals that they have there."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import APPENDS, Producer
from headrace.log.embedded.appender import Appender
from headrace.log.embedded.format import encode_payload

__all__ = ["write_copied"]


def write_copied(
    appender: Appender, records: pa.RecordBatch, producer_id: str, epoch: int, *, now_us: int
) -> None:
    """Append RECORDS durably; those without an arrival arrive now. ProducerFenced, DiskFull.

    The sequence of a record is its offset there.
    """
    arrivals_us = pc.fill_null(records["arrival"].cast(pa.int64()), now_us).to_numpy()
    # A stored batch has one arrival; all that are written share one sync.
    starts = [0, *(np.flatnonzero(np.diff(arrivals_us)) + 1).tolist(), records.num_rows]
    written = None
    for start, end in pairwise(starts):
        part = records.slice(start, end - start).select(APPENDS.names)
        sequence = records["offset"][end - 1].as_py()
        written = appender.write(
            encode_payload(part),
            end - start,
            Producer(producer_id, epoch, sequence),
            arrival_us=int(arrivals_us[start]),
        )
    if written is not None:
        appender.make_durable(written)
