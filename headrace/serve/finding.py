"""Find a topic, or say which ones there are."""

from headrace.errors import TopicNotFound
from headrace.log.base import Log
from headrace.log.checks import is_topic_name

__all__ = ["find_topic"]

_SHOWN_NAMES = 20


def find_topic(log: Log, name: str) -> None:
    """Return if there is such a topic. TopicNotFound names those there are."""
    try:
        if is_topic_name(name):
            log.topic(name)
            return
        cause = None
    except TopicNotFound as error:
        cause = error
    names = [topic.name for topic in log.topics()]
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    known = f"there are {', '.join(names[:_SHOWN_NAMES])}{more}" if names else "there is none"
    raise TopicNotFound(
        f"{name[:249]!r}: no such topic; {known}. Make it with `headrace topics create`, or define "
        f"a stream that reads it."
    ) from cause
