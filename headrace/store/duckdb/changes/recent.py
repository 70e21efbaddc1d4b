"""The changes of the last commits, in memory: who follows closely need not ask the store for them.

What is here of a commit is all that the store has of it. Commits that swap versions or let sinks
begin are not noted here, and what was known before such a one is forgotten.
"""

import threading
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

__all__ = ["MAX_BYTES", "MAX_COMMITS", "RecentChanges"]

#: Of the changes of each view; who is further behind asks the store.
MAX_BYTES = 1 << 20
MAX_COMMITS = 16


class _Known(NamedTuple):
    """All changes of the commits in `(since, until]`, in order; one without any has no table."""

    since: int
    until: int
    tables: tuple[tuple[int, pa.Table], ...] = ()
    bytes: int = 0

    def with_more(self, commit: int, changes: pa.Table | None) -> "_Known":
        if changes is None:
            return self._replace(until=commit)
        since, tables = self.since, (*self.tables, (commit, changes))
        held = self.bytes + changes.nbytes
        while held > MAX_BYTES or len(tables) > MAX_COMMITS:
            (since, oldest), *rest = tables
            held -= oldest.nbytes
            tables = tuple(rest)
        return _Known(since, commit, tables, held)


class RecentChanges:
    """Changes by the name of their table, in the columns that this one has. Safe for threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._known: Mapping[str, _Known] = {}  # replaced, not changed

    def forget(self) -> None:
        """Forget all changes: they were put together, or belong to versions that are gone."""
        with self._mutex:
            self._known = {}

    def note(self, commit: int, made: Mapping[str, pa.Table | None]) -> None:
        """Note what a commit changed in tables; None: it is in the store alone."""
        with self._mutex:
            found = {}
            for name in {*self._known, *made}:
                known = self._known.get(name)
                if name in made and made[name] is None:
                    continue
                if known is None or known.until != commit - 1:
                    if name not in made:
                        continue
                    known = _Known(commit - 1, commit - 1)
                found[name] = known.with_more(commit, made.get(name))
            self._known = found

    def held_bytes(self, name: str) -> int:
        """Return how many bytes the changes of a table take here."""
        known = self._known.get(name)
        return 0 if known is None else known.bytes

    def between(self, name: str, after: int, upto: int) -> pa.Table | None:
        """Return the changes of the commits in `(after, upto]`; None: they are not all here."""
        known = self._known.get(name)
        if known is None or not known.since <= after <= upto <= known.until:
            return None
        if not known.tables:
            return None  # the store says which columns there are
        found = [table for commit, table in known.tables if after < commit <= upto]
        return pa.concat_tables(found) if found else known.tables[0][1].slice(0, 0)
