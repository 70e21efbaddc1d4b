"""The limits that queries of others are held to."""

from dataclasses import dataclass

from headrace.store.base import MAX_SECONDS

__all__ = ["QueryLimits"]

_MB = 1 << 20


@dataclass(frozen=True)
class QueryLimits:
    """What one query may take, and how many are answered at once.

    A query waits at most `patience_seconds` for a process that is free, once there is one, runs at
    most `seconds`, and is killed `grace_seconds` later if it does not end by itself.
    """

    workers: int = 2
    waiting: int = 16
    patience_seconds: float = 3.0
    seconds: float = MAX_SECONDS
    grace_seconds: float = 0.5
    memory_bytes: int = 1024 * _MB  # of a process, beside what it was handed
    export_bytes: int = 512 * _MB  # that are handed out for one query
    answer_bytes: int = 64 * _MB
