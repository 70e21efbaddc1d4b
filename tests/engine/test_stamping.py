"""Stamping by the time that the log has: of arrival, or of the producer where there is none."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.engine.gears.stamping import Stamper
from headrace.engine.unit import make_decoder
from headrace.log.base import PRODUCED, RECORDS, Partition, Range
from headrace.model.definitions import Stream
from headrace.schema import Column, parse_type
from headrace.time.clocks import Clock

NOTES = Stream(
    "notes", (Column("text", parse_type("STRING")),), "notes", event_time="_arrival", delay_us=10
)
BROKEN = b"{"


def at_us(time_us: int | None) -> datetime | None:
    return None if time_us is None else datetime.fromtimestamp(time_us / 1e6, UTC)


@pytest.mark.parametrize("produced", [None, [None, None, 70, 90, None]])
def test_the_event_time_is_the_time_that_the_log_has(produced: list[int | None] | None) -> None:
    arrivals = [100, None, None, 50, None]
    values = [b"{}", b"{}", b"{}", BROKEN, BROKEN]
    records = pa.table(
        [
            pa.array(range(5), pa.int64()),
            pa.array(map(at_us, arrivals), RECORDS.field("arrival").type),
            pa.nulls(5, pa.binary()),
            pa.array(values, pa.binary()),
            pa.nulls(5, RECORDS.field("headers").type),
        ],
        schema=RECORDS,
    )
    if produced is not None:
        records = records.append_column(PRODUCED, pa.array(map(at_us, produced), PRODUCED.type))
    decoder = make_decoder(NOTES, frozenset(), None)
    stamper = Stamper(NOTES, Range(Partition("notes", 0), 0, 5), Clock(delay_us=10), decoder)
    rows = stamper.stamp(records, stamper.accept(records, decoder.decode(records)))
    summary = stamper.summary()
    readable = [0] if produced is None else [0, 2]
    assert rows["__offset"].to_pylist() == readable
    assert rows["__watermark"].to_pylist() == [None, 90][: len(readable)]
    assert summary.unguarded == len(readable) - 1
    assert (summary.read, summary.accepted) == (5, len(readable))
    assert summary.dead.offsets.to_pylist() == [at for at in range(5) if at not in readable]
    timeless = [reason for reason in summary.dead.reasons.to_pylist() if "no time" in reason]
    assert timeless == [
        "_arrival: the log has no time for this record, and it is the event time"
    ] * (3 - len(readable))
