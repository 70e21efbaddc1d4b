"""Follow a view: its rows at a commit, then how they change, without a gap or a repeat."""

import uuid
from typing import Self

import pyarrow as pa

from headrace.errors import UsageError
from headrace.ledger.following import Page, Token
from headrace.store.base import Store

__all__ = ["MAX_PAGE_ROWS", "Follower"]

MAX_PAGE_ROWS = 10_000


class Follower:
    """A reader of a view's changes, for one thread.

    Without `after` it begins at the last commit: `rows` are all rows there, and `read` returns what
    follows. With it, `read` returns what followed that token. Changes are kept for it until it is
    closed, or further behind than `[engine] changes_retention_commits` and `changes_retention_mb`
    let it be. TokenRefused, TokenTooOld.
    """

    def __init__(self, store: Store, view: str, *, after: str | Token | None = None) -> None:
        self.view = view
        self._store = store
        self._lease = uuid.uuid4().hex
        self._rows: pa.Table | None = None
        token = Token.parse(after) if isinstance(after, str) else after
        self.token = store.follow(self._lease, view, token)
        if after is None:
            try:
                self._begin()
            except BaseException:
                self.close()
                raise

    @property
    def rows(self) -> pa.Table:
        """All rows at the commit where the reader began, with `_closed` and `_key`."""
        if self._rows is None:
            raise UsageError("a reader that began with a token has no rows of its own; read() on")
        return self._rows

    def read(self, max_rows: int = MAX_PAGE_ROWS) -> Page:
        """Return what followed the last page; no rows if nothing did. TokenRefused, TokenTooOld.

        After a page with `reset` the rows at its token are in `rows`: begin with them.
        """
        self._store.renew(self._lease, self.token)
        with self._store.open() as snapshot:
            page = snapshot.changes(self.view, self.token, max_rows=max_rows)
            if page.reset:
                self._rows = snapshot.keyed_rows(self.view)
        self.token = page.token
        self._store.renew(self._lease, self.token)
        return page

    def _begin(self) -> None:
        with self._store.open() as snapshot:
            self._rows = snapshot.keyed_rows(self.view)
            self.token = snapshot.token(self.view)
        self._store.renew(self._lease, self.token)

    def close(self) -> None:
        """Let the changes go that are kept for this reader."""
        self._store.unfollow(self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
