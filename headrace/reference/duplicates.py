"""Which records are duplicates: a plain memory of ids, one per partition.

A record is a duplicate when an earlier non-duplicate of the same id stands in the same partition
and `c <= unique_within + max(its c, its min(event time, arrival))`.
"""

__all__ = ["Memory"]

Time = float  # microseconds since 1970, or minus infinity


class Memory:
    """The non-duplicates of one partition so far: of each id, the clock right after the last."""

    def __init__(self, within_us: int) -> None:
        self._within_us = within_us
        self._after: dict[object, Time] = {}

    def is_duplicate(self, id: object, *, clock: Time, after: Time) -> bool:
        """Tell whether the next record is a duplicate, and remember it if it is not."""
        if id in self._after and clock <= self._within_us + self._after[id]:
            return True
        self._after[id] = after
        return False
