"""Where to begin in a topic, as people write it: earliest, latest, an offset, or a time."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.log.base import Log, Partition

__all__ = ["START_HELP", "check_start", "find_offsets", "to_micros"]

START_HELP = "earliest, latest, an offset, or a time in ISO 8601, UTC unless it says otherwise"


def check_start(option: str, text: str) -> None:
    """Refuse what is no start. UsageError names the option."""
    if text not in ("earliest", "latest") and not text.isdecimal() and _parse_time(text) is None:
        raise UsageError(
            f"{option} {text}: write earliest, latest, an offset of 0 or more, or a time such as "
            f"2026-01-31T12:00:00Z"
        )


def find_offsets(log: "Log", topic: str, start: str) -> "dict[Partition, int]":
    """Return the offset that a checked start means in each partition. TopicNotFound."""
    found: dict[Partition, int] = {}
    for partition, extent in log.extents(topic).items():
        named = {"earliest": extent.first_offset, "latest": extent.end_offset}
        if start in named:
            found[partition] = named[start]
        elif start.isdecimal():
            found[partition] = int(start)
        else:
            time = _parse_time(start)
            assert time is not None, "the start was checked"
            found[partition] = log.offset_at(partition, to_micros(time))
    return found


def _parse_time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def to_micros(time: datetime) -> int:
    """Return a time as µs since 1970."""
    return int(time.timestamp()) * 1_000_000 + time.microsecond
