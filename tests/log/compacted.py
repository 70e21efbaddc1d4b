"""What the tests of compaction share: a topic `t` of one partition, and a clock to turn."""

from pathlib import Path

from headrace.log import EmbeddedLog, Partition, Producer, TopicSettings, records
from headrace.testing.log.suite import rows

PARTITION_0 = Partition("t", 0)
TOMBSTONE_MS = 1_000
COMPACTED = TopicSettings(compact=True, tombstone_ms=TOMBSTONE_MS)


class Clock:
    """Time in milliseconds, as a test sets it."""

    ms = 1_000_000

    def __call__(self) -> int:
        return self.ms * 1000


def make_log(
    path: Path, clock: Clock, *, segment_bytes: int = 2_000, settings: TopicSettings = COMPACTED
) -> EmbeddedLog:
    log = EmbeddedLog(path, clock=clock, sync=False, segment_bytes=segment_bytes)
    log.create_topic("t", partitions=1, settings=settings)
    return log


def put(log: EmbeddedLog, text: str | None, *keys: str, producer: Producer | None = None) -> None:
    table = records([text] * len(keys), keys=keys)
    log.append("t", table, partition=0, producer=producer)


def pairs(log: EmbeddedLog) -> list[tuple[bytes, bytes | None]]:
    return [(row["key"], row["value"]) for row in rows(log, PARTITION_0)]


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "t" / "0").iterdir())


def sound(log: EmbeddedLog) -> bool:
    return not [segment for segment in log.verify("t") if segment.damages]
