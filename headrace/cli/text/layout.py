"""How wide the columns of a table are where there is not room for all of every cell.

Promises:
- A column of numbers or times (*rigid*) keeps room for its longest value, so none is ever cut.
- Others give way, the widest first, and none below `TEXT_FLOOR` columns of the terminal.
- A name gives way to `NAME_FLOOR`, but never below the values under it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["GAP", "Column", "fit_widths"]

GAP = 2  # between two columns
TEXT_FLOOR = 12
NAME_FLOOR = 6


@dataclass(frozen=True)
class Column:
    """What a column asks for: the width of its name and of its longest value."""

    name_width: int
    value_width: int
    rigid: bool = False

    @property
    def wanted(self) -> int:
        """The width at which nothing is cut."""
        return max(self.name_width, self.value_width)

    @property
    def least(self) -> int:
        """The width below which it is no use."""
        values = self.value_width if self.rigid else min(self.value_width, TEXT_FLOOR)
        return max(values, min(self.name_width, NAME_FLOOR))


def fit_widths(columns: Sequence[Column], room: int) -> list[int] | None:
    """Return the width of each column so that all fit into `room`; None if they cannot."""
    left = room - GAP * (len(columns) - 1)
    if sum(column.least for column in columns) > left:
        return None
    widths = [min(column.wanted, left) for column in columns]
    for _ in range(sum(widths) - left):
        able = [at for at, column in enumerate(columns) if widths[at] > column.least]
        widths[max(able, key=lambda at: widths[at])] -= 1
    return widths
