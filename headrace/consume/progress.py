"""How far a member has read its partitions, and what of that is not committed."""

from collections.abc import Iterable, Mapping

from headrace.log.base import Partition

__all__ = ["Progress"]


class Progress:
    """Positions of one member. For one thread at a time."""

    def __init__(self) -> None:
        #: What is next to read of partitions that are ours.
        self.positions: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}  # as far as we know: positions where we began
        #: What was polled and not committed: of partitions that are ours, and of others by now.
        self.moved: set[Partition] = set()
        self.lost: set[Partition] = set()

    def begin(self, positions: Mapping[Partition, int]) -> None:
        """Begin to read partitions where the group has committed to."""
        self.positions |= positions
        self._committed |= positions

    def move(self, place: Partition, position: int, *, polled: bool) -> None:
        """Go on in a partition, of which records were polled or not."""
        self.positions[place] = position
        if polled:
            self.moved.add(place)

    def lose(self, places: Iterable[Partition]) -> None:
        """Take note that others read partitions: what we polled of them cannot be committed."""
        gone = self.moved & set(places)
        self.lost |= gone
        self.moved -= gone

    def stop(self, places: Iterable[Partition]) -> None:
        """Read partitions no further; those that are ours are to begin anew."""
        for place in list(places):
            self.positions.pop(place, None)
            self._committed.pop(place, None)

    def uncommitted(self) -> dict[Partition, int]:
        """Return the positions to commit, by partition."""
        return {
            place: position
            for place, position in sorted(self.positions.items())
            if position != self._committed[place]
        }

    def note_committed(self, positions: Mapping[Partition, int]) -> None:
        """Take note that all that was polled is committed."""
        self._committed |= positions
        self.moved.clear()

    def forget_polled(self) -> None:
        """Take back what was polled: a commit failed, and what is committed decides."""
        self.moved.clear()
        self.lost.clear()
