"""Choose how many records the next turn may read: few when level, many when behind.

And never more than views make `max_delta_bytes` of: the driver holds that, and so does the store
until the turn is committed. How much they make of a record is known from the last turn alone, so a
turn may find out that it is too large; then it is given up and read again in smaller ones.
"""

from headrace.project.settings import Settings

__all__ = ["Pace", "TurnTooLarge"]

_SMALLEST = 1_000


class TurnTooLarge(Exception):
    """A turn's views make more of its records than may be held; nothing of it was committed."""


class Pace:
    """Adapts the size of turns to the target latency; one per unit.

    While the backlog fits, a turn takes all of it, and the size shrinks when turns take longer
    than the target. A unit that does not keep up takes larger turns, which cost less per record;
    one that is far behind takes the largest, and the log buffers meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._size = 10_000
        self._bytes_per_record = 0.0  # that views made in the last turn

    def limit(self, backlog_records: int) -> int:
        """Return the most records the next turn may read."""
        return min(self._wanted(backlog_records), self._fitting())

    def _fitting(self) -> int:
        if not self._bytes_per_record:
            return self._settings.max_turn_records
        return max(1, int(self._settings.max_delta_bytes / self._bytes_per_record))

    def _wanted(self, backlog_records: int) -> int:
        if backlog_records > 2 * self._settings.short_turn_records:
            return self._settings.max_turn_records
        if backlog_records > self._size:
            self._size = min(self._size * 2, self._settings.short_turn_records)
        return self._size

    def note_deltas(self, records: int, delta_bytes: int, *, smallest: bool) -> None:
        """Learn how much views make of a turn's records, before they are committed.

        TurnTooLarge: more than may be held, and this is not the smallest turn that there is.
        """
        if records:
            self._bytes_per_record = delta_bytes / records
        if delta_bytes > self._settings.max_delta_bytes and not smallest:
            raise TurnTooLarge

    def note(self, records: int, seconds: float) -> None:
        """Learn from a turn that is done."""
        target = self._settings.target_ms / 1000
        if records < self._size // 2 and seconds > target:
            self._size = max(_SMALLEST, 2 * records, int(self._size * target / seconds))
