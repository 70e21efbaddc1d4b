"""Which names and topics definitions may have, and what to answer when they may not."""

import difflib
import re
from collections.abc import Iterable

__all__ = ["MAX_NAME", "closest", "name_fault", "topic_fault"]

MAX_NAME = 63  # bytes; PostgreSQL cuts longer names off in silence
MAX_TOPIC = 249  # characters; Kafka's own limit

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
#: Names that stand within definitions, which quotes may give any characters: all rooms quote them.
_INNER = ("alias", "column", "output")
#: What quotes cannot hold: control characters, surrogates, and backquotes themselves.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff`]")


def name_fault(kind: str, name: str) -> str | None:
    """Return what is wrong with the name of a stream, view, column, output or alias, or None.

    A definition becomes a topic and a table, so its name is plain; those within it are any text.
    """
    if kind in _INNER and not name.strip():
        return f"{kind} name {name!r}: write at least one letter"
    if kind in _INNER and _UNFIT.search(name):
        return f"{kind} name {name!r}: control characters and backquotes are not allowed in names"
    if kind not in _INNER and not _NAME.fullmatch(name):
        return (
            f"{kind} name {name!r}: write a letter first, then letters, digits and underscores only"
        )
    size = len(name.encode())
    if size > MAX_NAME:
        what = "characters" if size == len(name) else "bytes in UTF-8"
        return f"{kind} name {name!r} has {size} {what}; at most {MAX_NAME} are allowed"
    if name.startswith("_"):
        return f"{kind} name {name}: names that start with _ are reserved; drop the underscore"
    if kind in ("stream", "view") and name.lower().startswith("headrace"):
        return f"{kind} name {name}: names that start with headrace are reserved; choose another"
    return None


def topic_fault(topic: str) -> str | None:
    """Return what is wrong with a topic that a stream reads, or None."""
    if not _TOPIC.fullmatch(topic) or len(topic) > MAX_TOPIC or topic in (".", ".."):
        return (
            f"topic {topic!r}: a topic has 1 to {MAX_TOPIC} letters, digits, dots, underscores "
            "and dashes"
        )
    if topic.startswith("headrace."):
        return (
            f"topic {topic}: topics that start with headrace. are reserved for the engine; "
            "choose another"
        )
    return None


def closest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean x?)` for the known name that is nearest, or nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    parts = [each for each in by_lower if name.lower() in each.split("_")]
    parts = parts if len(parts) == 1 and len(name) > 2 else []
    # `count` for `cont`, not `percentile_cont`; `allowed_lateness` for `lateness`, not `late`.
    found = [
        *difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.8),
        *parts,
        *difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6),
    ]
    return f" (did you mean {by_lower[found[0]]}?)" if found else ""
