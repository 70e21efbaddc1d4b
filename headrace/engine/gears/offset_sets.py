"""Some offsets of a range, a bit for each offset: 4 million of them travel to tasks as 500 kB."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NO_OFFSETS", "OffsetSet", "Offsets"]

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OffsetSet:
    """Offsets from `start` on whose bit is set; none by default."""

    start: int = 0
    bits: bytes = b""

    @staticmethod
    def of(start: int, flags: npt.NDArray[np.bool_]) -> "OffsetSet":
        """Return the offsets whose flag is set; the first flag is that of `start`."""
        return OffsetSet(start, np.packbits(flags).tobytes() if flags.any() else b"")

    @staticmethod
    def from_offsets(offsets: Offsets) -> "OffsetSet":
        """Return the set of some offsets, which grow."""
        if not len(offsets):
            return NO_OFFSETS
        flags = np.zeros(int(offsets[-1] - offsets[0]) + 1, dtype=bool)
        flags[offsets - offsets[0]] = True
        return OffsetSet.of(int(offsets[0]), flags)

    def holds(self, offsets: Offsets) -> npt.NDArray[np.bool_]:
        """Return which of some offsets are in the set."""
        flags = self._flags()
        places = offsets - self.start
        inside = (places >= 0) & (places < len(flags))
        found = np.zeros(len(offsets), dtype=bool)
        found[inside] = flags[places[inside]]
        return found

    def offsets(self) -> Offsets:
        """Return the offsets of the set, in order."""
        return np.flatnonzero(self._flags()) + self.start

    def _flags(self) -> npt.NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8)).view(bool)


NO_OFFSETS = OffsetSet()
