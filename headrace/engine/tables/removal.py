"""What a table asks of its topic: that no record goes which nothing replaced."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from headrace.errors import DefinitionError, Problem
from headrace.log.base import Log, Topic
from headrace.model.definitions import Stream

__all__ = ["check_topics"]


def check_topics(log: Log, streams: Iterable[Stream]) -> None:
    """Refuse tables whose topics remove records by their age or size. DefinitionError.

    One that says that its rows may be lost is not refused.
    """
    tables = [stream for stream in streams if stream.primary_key]
    if tables and (problems := list(_problems(log, tables))):
        raise DefinitionError(problems)


def _problems(log: Log, tables: Iterable[Stream]) -> Iterator[Problem]:
    topics = {topic.name: topic for topic in log.topics()}
    for table in tables:
        topic = topics.get(table.topic)
        if topic is None or table.may_lose_rows:
            continue
        removes = _removes(topic)
        if removes is not None:
            yield Problem(
                table.location,
                f"table {table.name} reads the topic {topic.name}, which {removes}: a row that did "
                f"not change since would be missing when the table is built anew. Keep the newest "
                f"record of each key, `headrace topics change {topic.name} --compact --retention "
                f"forever --retention-bytes unlimited`; or write removed_records = 'lose rows' in "
                f"WITH (...)",
            )


def _removes(topic: Topic) -> str | None:
    settings = topic.settings
    if settings.retention_ms is not None:
        return f"removes records after {timedelta(milliseconds=settings.retention_ms)}"
    if settings.retention_bytes is not None:
        return f"removes records past {settings.retention_bytes:,} bytes of a partition"
    return None
