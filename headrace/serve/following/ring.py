"""The last pages of a view's changes, for all who follow it: bounded in bytes, in their order.

A subscriber stands behind a whole commit, or behind an item. What it has not had yet of an item
that it stands within is cut out for it; from the next item on it gets what all get.
"""

from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headrace.ledger.following import Token
from headrace.schema.relations import Relation
from headrace.serve.following import messages
from headrace.serve.following.shapes import Shape
from headrace.serve.message import Message

__all__ = ["Item", "Ring", "place"]

_WHOLE = 1 << 62


def place(token: Token) -> tuple[int, int]:
    """Return where a token stands in the order of all of a view's changes."""
    return token.commit, token.rows or _WHOLE


@dataclass
class Item:
    """Changes up to a token; or progress there; or, with `reset`, that all begin anew.

    `encoded` has the message of each shape that subscribers have; None: nothing passes.
    """

    token: Token
    rows: pa.Table | None = None
    relation: Relation | None = None
    progress: Message | None = None
    reset: bool = False
    encoded: dict[Shape, Message | None] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        encoded = sum(len(each.data) for each in self.encoded.values() if each is not None)
        return 1_000 + encoded + (0 if self.rows is None else self.rows.nbytes)

    def prepare(self, shape: Shape) -> None:
        """Encode the message of a shape, before others see the item. For a thread."""
        if shape.relation == self.relation and shape not in self.encoded:
            self.encoded[shape] = self._encode(shape, self.rows)

    def encode_after(self, shape: Shape, commit: int) -> Message | None:
        """Return the message of the changes behind a commit. For a thread."""
        assert self.rows is not None
        return self._encode(shape, self.rows.filter(pc.greater(self.rows["_commit"], commit)))

    def _encode(self, shape: Shape, rows: pa.Table | None) -> Message | None:
        assert rows is not None
        assert shape.relation == self.relation, "a subscriber of other columns is told `reset`"
        found = shape.matching(rows)
        if not found.num_rows:
            return None
        return messages.changes(found, shape, self.token, self.token.commit)


class Ring:
    """Items by their number. `floor` is the token before the first one that is left."""

    def __init__(self, floor: Token, *, max_bytes: int) -> None:
        self.floor = floor
        self.first = 0
        self._items: deque[Item] = deque()
        self._sizes: deque[int] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0

    @property
    def end(self) -> int:
        """The number of the next item."""
        return self.first + len(self._items)

    def append(self, item: Item) -> None:
        """Add an item; the oldest ones go when all take too much. The newest stays."""
        self._items.append(item)
        self._sizes.append(item.bytes)
        self._bytes += self._sizes[-1]
        while len(self._items) > 1 and self._bytes > self._max_bytes:
            self.floor = self._items.popleft().token
            self._bytes -= self._sizes.popleft()
            self.first += 1

    def get(self, number: int) -> Item | None:
        """Return an item; None: it is gone."""
        return self._items[number - self.first] if number >= self.first else None

    def covers(self, token: Token) -> bool:
        """Whether all that follows a token is here, or will be."""
        return not token.rows and place(self.floor) <= place(token)

    def after(self, token: Token) -> int:
        """Return the number of the first item that has something behind a token."""
        for number, item in enumerate(self._items, self.first):
            if place(item.token) > place(token):
                return number
        return self.end
