"""The names that a log gives meaning to: of groups, queues and instances, and its own topics.

Promises:
- A name that is accepted here is accepted by Kafka too.
- A reserved topic is the log's own: its users neither see it among the others nor change it.
"""

import re

from headrace.errors import InvalidTopic, TopicNotFound, UsageError

__all__ = [
    "CLOSED_TOPICS",
    "GROUPS_TOPIC",
    "REQUESTS_TOPIC",
    "RESERVED_TOPICS",
    "TIME_TOPIC",
    "check_group_name",
    "check_plain_name",
    "refuse_closed",
    "refuse_reserved",
    "refuse_reserved_as_new",
]

#: Where an engine writes what it learns of time; everybody reads it, the engine alone writes.
TIME_TOPIC = "headrace.time"
#: Where groups keep the offsets that they have committed.
GROUPS_TOPIC = "headrace.groups"
RESERVED_TOPICS = frozenset({GROUPS_TOPIC})
#: Where an engine keeps which requests to append it has carried out, so that none is twice.
REQUESTS_TOPIC = "headrace.requests"
#: Topics that everybody reads, and their own producer alone writes; and why.
CLOSED_TOPICS = {
    TIME_TOPIC: "the engine alone writes there what it learns of time, and every answer depends on "
    "it",
    REQUESTS_TOPIC: "the engine alone writes there which requests it has carried out, so that none "
    "is stored twice",
}

MAX_NAME_CHARACTERS = 249
_PLAIN = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_NAME_CHARACTERS}}}")


def check_group_name(name: str) -> None:
    """Refuse what cannot be a group's name. UsageError."""
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise UsageError(
            f"{name[:MAX_NAME_CHARACTERS]!r} cannot be a group's name. Use 1 to "
            f"{MAX_NAME_CHARACTERS} printable characters."
        )


def check_plain_name(name: str, what: str) -> None:
    """Refuse what cannot stand in a topic's name, where `what` may have to. UsageError."""
    if not _PLAIN.fullmatch(name):
        raise UsageError(
            f"{name[:MAX_NAME_CHARACTERS]!r} cannot be {what}. Use 1 to {MAX_NAME_CHARACTERS} of "
            f"the letters a-z and A-Z, digits, '.', '_' and '-'."
        )


def refuse_reserved(topic: str) -> None:
    """Answer as if the log's own topics were not there. TopicNotFound."""
    if topic in RESERVED_TOPICS:
        raise TopicNotFound(
            f"{topic!r}: no topic for users; the log keeps books of its own in it. Use another one."
        )


def refuse_closed(topic: str, producer_id: str | None = None) -> None:
    """Keep everybody but its own producer from changing a topic of the engine's. UsageError."""
    if topic in CLOSED_TOPICS and producer_id != topic:
        raise UsageError(
            f"{topic!r}: {CLOSED_TOPICS[topic]}. Append to another topic; reading it is free."
        )


def refuse_reserved_as_new(topic: str) -> None:
    """Keep users from making a topic that the log makes for itself. InvalidTopic."""
    if topic in RESERVED_TOPICS:
        raise InvalidTopic(
            f"{topic!r} cannot be a topic's name: the log keeps books of its own under it. Use "
            f"another one."
        )
