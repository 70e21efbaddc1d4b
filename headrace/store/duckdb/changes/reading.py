"""Read the changes of a view after a token, in pages, across the versions that took over."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from headrace.errors import TokenRefused, TokenTooOld
from headrace.ledger.following import Page, Token
from headrace.schema.relations import Named, Relation, distinct_names
from headrace.store.duckdb.changes.following import head_of
from headrace.store.duckdb.changes.recent import RecentChanges
from headrace.store.duckdb.changes.shown import Rows, ShownVersion, read_shown
from headrace.store.duckdb.tables.names import quote

__all__ = ["Reading", "check_token", "head_token", "keyed_columns", "page_after", "rows_of"]

_BEGIN_ANEW = "begin with all rows of the view, without a token"

#: Answers a statement with parameters.
Few = Callable[[str, Sequence[object]], pa.Table]


def head_token(rows: Rows, view: str) -> Token:
    """Return the token of the last commit. TokenRefused: readers do not see such a view."""
    shown = read_shown(rows, view)
    if not shown:
        raise TokenRefused(f"there is no view {view} that readers see yet; `headrace status` tells")
    return Token(_store_id(rows), shown[-1].version, head_of(rows))


class Reading(NamedTuple):
    """How a snapshot is read: for rows, and for few rows as a table.

    `recent` has the changes of the last commits, `shown` are the versions of the view.
    """

    rows: Rows
    few: Few
    recent: RecentChanges
    shown: Sequence[ShownVersion]


def page_after(
    reading: Reading,
    view: str,
    after: Token,
    *,
    max_rows: int,
    max_bytes: int | None = None,
) -> Page:
    """Return the next changes after a token, at most so many. TokenRefused, TokenTooOld."""
    shown = reading.shown
    at, head = _check(reading.rows, shown, view, after)
    found: list[pa.Table] = []
    token, left = after, max_rows
    while True:
        version = shown[at]
        last = shown[at + 1].since - 1 if at + 1 < len(shown) else head
        part = _changes_after(reading, version, token, last, left + 1)
        fit = left if max_bytes is None else _that_fit(part, left, max_bytes)
        cut = part.num_rows > fit
        if cut:
            part, rest = part.slice(0, fit), part.slice(fit, 1)
            token = _behind(token, version, part, rest)
        found.append(part)
        left -= part.num_rows
        max_bytes = None if max_bytes is None else max(0, max_bytes - part.nbytes)
        if cut:
            break
        if at + 1 == len(shown):
            token = Token(token.store_id, version.version, head)
            break
        at += 1
        if not shown[at].same:
            token = Token(token.store_id, shown[-1].version, head)
            left_over, now = _named(found, version.relation), shown[-1].relation
            return Page(left_over, token, at_head=True, reset=True, relation=now)
        # All of the version before is read: the first commit of the next one is the swap.
        token = Token(token.store_id, shown[at].version, shown[at].since - 1)
    at_head = token.commit == head and not token.rows
    relation = shown[at].relation
    return Page(_named(found, relation), token, at_head, relation=relation)


def rows_of(relation: Relation) -> str:
    """Return the columns of a table of changes as readers get them."""
    return ", ".join(keyed_columns(relation, relation.columns))


def keyed_columns(relation: Relation, columns: Sequence[Named]) -> list[str]:
    """Return the key of a table of changes, and some of its columns, as readers get them."""
    places = {each.name: at for at, each in enumerate(relation.columns)}
    named = [f"c{places[each.name]} AS {quote(each.name)}" for each in columns]
    return [f"{_struct(relation)} AS _key", *named]


def _struct(relation: Relation) -> str:
    names = distinct_names([each.name for each in relation.key])
    parts = [f"{quote(name)} := k{at}" for at, name in enumerate(names)]
    return f"struct_pack({', '.join(parts)})" if parts else "NULL"


def _changes_after(
    reading: Reading, version: ShownVersion, token: Token, last: int, limit: int
) -> pa.Table:
    """Return the next changes of a version after a token, up to a commit, at most so many."""
    if not token.rows:
        recent = reading.recent.between(version.changes, token.commit, last)
        if recent is not None:
            return _read(recent.slice(0, limit), version.relation)
    return reading.few(*_select(version, token, last, limit))


def _read(changes: pa.Table, relation: Relation) -> pa.Table:
    """Return rows of a table of changes as `_select` does."""
    names = distinct_names([each.name for each in relation.key])
    parts = [changes[f"k{at}"].combine_chunks() for at in range(len(names))]
    key = pa.StructArray.from_arrays(parts, names) if parts else pa.nulls(len(changes), pa.int32())
    columns = [changes[name] for name in ("_commit", "_row", "_sign", "_closed")]
    columns += [key, *(changes[f"c{at}"] for at in range(len(relation.columns)))]
    named = [each.name for each in relation.columns]
    return pa.table(columns, ["_commit", "_row", "_sign", "_closed", "_key", *named])


def _select(version: ShownVersion, token: Token, last: int, limit: int) -> tuple[str, list[object]]:
    beyond, values = "_commit > ?", [token.commit]
    if token.rows:
        beyond = f"({beyond} OR (_commit = ? AND _row > ?))"
        values += [token.commit, token.rows]
    sql = (
        f"SELECT _commit, _row, _sign, _closed, {rows_of(version.relation)} "
        f"FROM {version.changes} WHERE {beyond} AND _commit <= ? "
        f"ORDER BY _commit, _row LIMIT ?"
    )
    return sql, [*values, last, limit]


def _that_fit(part: pa.Table, most: int, max_bytes: int) -> int:
    """Return how many rows are no more than some bytes, as the average row goes; one always is."""
    if part.nbytes <= max_bytes:
        return most
    return min(most, max(1, int(part.num_rows * max_bytes // part.nbytes)))


def _behind(token: Token, version: ShownVersion, part: pa.Table, rest: pa.Table) -> Token:
    """Return the token behind a page that is cut off, and followed by one row at least."""
    if not part.num_rows:
        return token
    commit = part["_commit"][-1].as_py()
    rows = part["_row"][-1].as_py() if rest["_commit"][0].as_py() == commit else 0
    return Token(token.store_id, version.version, commit, rows)


def _named(found: list[pa.Table], relation: Relation) -> pa.Table:
    names = {"_commit", "_sign", "_closed", "_key", *(each.name for each in relation.columns)}
    tables = [table.select([each for each in table.column_names if each in names])
              for table in found]  # fmt: skip
    return pa.concat_tables(tables)


def check_token(rows: Rows, view: str, after: Token) -> None:
    """Refuse a token that nothing can be read after. TokenRefused, TokenTooOld."""
    _check(rows, read_shown(rows, view), view, after)


def _check(rows: Rows, shown: Sequence[ShownVersion], view: str, after: Token) -> tuple[int, int]:
    """Return which of a view's versions a token is of, and the last commit.

    TokenRefused, TokenTooOld.
    """
    if not shown:
        raise TokenRefused(f"there is no view {view} that readers see; {_BEGIN_ANEW}")
    store_id, head, since = rows(
        "SELECT store_id, commits, "
        "(SELECT greatest(since, readable) FROM headrace.followed WHERE view = ?) "
        "FROM headrace.engine",
        [view],
    )[0]
    if after.store_id != store_id:
        raise TokenRefused(
            f"{after} is a token of another store, which this one was built in place of; "
            f"{_BEGIN_ANEW} {view}"
        )
    if after.commit > head:
        raise TokenRefused(f"{after} is ahead of the store, whose last commit is {head}")
    at = _version_of(shown, after)
    if since is None or after.whole < since or at is None:
        kept = "only while somebody follows the view"
        kept = kept if since is None else f"from commit {since} on"
        raise TokenTooOld(
            f"{after}: the changes of {view} behind it are not kept any more ({kept}); "
            f"{_BEGIN_ANEW}. Raise [engine] changes_retention_commits or changes_retention_mb if "
            f"readers stay away for longer."
        )
    return at, head


def _version_of(shown: Sequence[ShownVersion], after: Token) -> int | None:
    """Return which of a view's versions a token is of; the same one may come back."""
    for at, each in enumerate(shown):
        # One commit earlier: a page may end where the swap's own changes begin.
        last = shown[at + 1].since - 1 if at + 1 < len(shown) else after.commit
        if each.version == after.version and each.since - 1 <= after.commit <= last:
            return at
    return None


def _store_id(rows: Rows) -> str:
    return str(rows("SELECT store_id FROM headrace.engine", [])[0][0])
