"""Which versions of a view readers see, and saw: where its changes are, commit by commit."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.schema.relations import Relation
from headrace.store.duckdb.changes.layout import changes_table

__all__ = ["Rows", "ShownVersion", "read_shown", "version_at"]

_relation = lru_cache(maxsize=256)(Relation.from_json)

#: What answers a statement with rows: the writer's connection, or a snapshot's.
Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


class ShownVersion(NamedTuple):
    """A version of a view that readers see from a commit on, until the next one's."""

    view: str
    version: str
    since: int
    relation: Relation
    same: bool  # key and columns are those of the version before

    @property
    def changes(self) -> str:
        """The qualified name of its table of changes."""
        return changes_table(self.view, self.version, self.since)


def read_shown(rows: Rows, view: str) -> list[ShownVersion]:
    """Return the versions of a view that are known, the one that readers see last."""
    found = rows(
        "SELECT view, version, since, relation, same FROM headrace.shown WHERE view = ? "
        "ORDER BY since",
        [view],
    )
    return [
        ShownVersion(view, version, since, _relation(relation), same)
        for view, version, since, relation, same in found
    ]


def version_at(shown: Sequence[ShownVersion], commit: int) -> int | None:
    """Return which of a view's versions readers saw at a commit; None: none, or not known."""
    places = [at for at, each in enumerate(shown) if each.since <= commit]
    return places[-1] if places else None
