"""Choose how many records the next turn may read: few when level, many when behind."""

from headrace.project.settings import Settings

__all__ = ["Pace"]

_SMALLEST = 1_000


class Pace:
    """Adapts the size of turns to the target latency; one per unit.

    While the backlog fits, a turn takes all of it, and the size shrinks when turns take longer
    than the target. A unit that does not keep up takes larger turns, which cost less per record;
    one that is far behind takes the largest, and the log buffers meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._size = 10_000

    def limit(self, backlog_records: int) -> int:
        """Return the most records the next turn may read."""
        if backlog_records > 2 * self._settings.short_turn_records:
            return self._settings.max_turn_records
        if backlog_records > self._size:
            self._size = min(self._size * 2, self._settings.short_turn_records)
        return self._size

    def note(self, records: int, seconds: float) -> None:
        """Learn from a turn that is done."""
        target = self._settings.target_ms / 1000
        if records < self._size // 2 and seconds > target:
            self._size = max(_SMALLEST, 2 * records, int(self._size * target / seconds))
