"""What a sink is to be told next: the net changes of commits, one row for each key.

`k0`... are the parts of the key; `b0`..., `b_closed` and `b_there` the row as the sink knows it;
`a0`..., `a_closed` and `a_there` the row as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.ledger.following import SinkState
from headrace.schema.relations import Relation
from headrace.scratch import calculate
from headrace.store.base import SinkChanges
from headrace.store.duckdb.changes.layout import META, columns_of, first_table
from headrace.store.duckdb.changes.recent import RecentChanges
from headrace.store.duckdb.changes.shown import Rows, ShownVersion, version_at

__all__ = ["Asking", "net_changes", "net_query"]

#: Room for the changes of a commit where the order of changes is one number.
_PLACES = 1 << 36
#: So many changes that wait are put together in memory, by a query whose plan is kept.
FEW_ROWS = 8_192
_BATCH_ROWS = 2_048


class Asking(NamedTuple):
    """How a snapshot is read: for rows, for few rows as a table, and for any number in batches.

    `recent` has the changes of the last commits.
    """

    rows: Rows
    few: Callable[[str, Sequence[object]], pa.Table]
    many: Callable[[str], Iterator[pa.RecordBatch]]
    recent: RecentChanges

    def net(
        self,
        sql: str,
        commit: int,
        step: int,
        old: Relation,
        new: Relation,
        version: ShownVersion,
    ) -> SinkChanges:
        """Return the net changes that a query is for."""
        return SinkChanges(commit, step, version.version, old, new, partial(self.many, sql))


def net_changes(
    asking: Asking, state: SinkState, shown: Sequence[ShownVersion], head: int
) -> Iterator[SinkChanges]:
    """Yield what a sink is to be told up to a commit, in order; `shown` are its view's versions."""
    sink = state.sink
    at = version_at(shown, state.told)
    is_final = state.sink.emit == "final"
    if state.first is not None and at is not None:
        relation = shown[at].relation
        sql = net_query(first_table(state.sink.topic), relation, "true", state.told)
        changes = asking.net(sql, state.first, 0, relation, relation, shown[at])
        yield replace(changes, is_first=True)
    told = state.told
    if at is None:  # readers saw no version of the view yet
        at = 0
    for place in range(at, len(shown)):
        version = shown[place]
        last = shown[place + 1].since - 1 if place + 1 < len(shown) else head
        if place > at or state.told < version.since:
            if not version.same and version.since <= head:
                before = shown[place - 1] if place else None
                if before is not None and not sink.has_key(before.relation):
                    before = None  # it was told nothing of rows without its key
                if sink.has_key(version.relation):
                    yield from _swap(asking, before, version, is_final=is_final)
                told = version.since
            else:
                told = version.since - 1
        if sink.has_key(version.relation):
            yield from _of_version(asking, state, version, told, min(last, head))


def _of_version(
    asking: Asking, state: SinkState, version: ShownVersion, told: int, last: int
) -> Iterator[SinkChanges]:
    """Yield the changes of one version in `(told, last]`."""
    if last <= told:
        return
    recent = asking.recent.between(version.changes, told, last)
    if recent is not None and recent.num_rows <= FEW_ROWS:
        yield from _of_few(recent, state, version, told, last)
        return
    columns = ", ".join(columns_of(version.relation))
    # Counted, not cut with LIMIT, which DuckDB 2.0.0 may lose rows with (see images.py).
    rows = f"FROM {version.changes} WHERE _commit > ? AND _commit <= ?"
    count = asking.few(f"SELECT count(*) AS n {rows}", [told, last])["n"][0].as_py()
    if count <= FEW_ROWS:
        few = asking.few(f"SELECT {META}, {columns} {rows}", [told, last])
        yield from _of_few(few, state, version, told, last)
    else:
        yield from _of_many(asking, state, version, told, last)


def _of_few(
    changes: pa.Table, state: SinkState, version: ShownVersion, told: int, last: int
) -> Iterator[SinkChanges]:
    """Yield net changes of changes in memory."""
    relation, emit = version.relation, state.sink.emit
    commits, steps = (changes[name].to_numpy() for name in ("_commit", "_step"))
    if emit == "every":
        places = [(last, 0, np.ones(len(commits), bool))]
    elif emit == "final":
        found = sorted(set(zip(commits.tolist(), steps.tolist(), strict=True)))
        places = [(at, step, (commits == at) & (steps == step)) for at, step in found]
    else:
        places = [(at, 0, commits == at) for at in np.unique(commits).tolist()]
    # The text is always the same, so commits are counted from the one that was told.
    since = pa.array(commits - told)
    changes = changes.set_column(0, "_commit", since)
    query = net_query("changes", relation, "true", 0, is_final=emit == "final")
    for commit, step, chosen in places:
        net = calculate(query, {"changes": changes.filter(pa.array(chosen))})
        rows = partial(net.to_batches, max_chunksize=_BATCH_ROWS)
        yield SinkChanges(commit, step, version.version, relation, relation, rows)


def _of_many(
    asking: Asking, state: SinkState, version: ShownVersion, told: int, last: int
) -> Iterator[SinkChanges]:
    """Yield net changes that the store puts together, any number of them."""
    relation, is_final = version.relation, state.sink.emit == "final"
    between = f"_commit > {told} AND _commit <= {last}"
    if state.sink.emit == "every":
        sql = net_query(version.changes, relation, between, told)
        yield asking.net(sql, last, 0, relation, relation, version)
        return
    # Closed rows only: those that are closed and leave in one commit are told of both.
    steps = "_commit, _step" if is_final else "_commit, 0"
    found = asking.rows(
        f"SELECT DISTINCT {steps} FROM {version.changes} WHERE {between} ORDER BY ALL", []
    )
    for commit, step in found:
        condition = f"_commit = {commit}" + (f" AND _step = {step}" if is_final else "")
        sql = net_query(version.changes, relation, condition, told, is_final=is_final)
        yield asking.net(sql, commit, step, relation, relation, version)


def net_query(
    name: str, relation: Relation, condition: str, told: int, *, is_final: bool = False
) -> str:
    """Return the query for what changes of one table amount to, key by key."""
    columns = list(columns_of(relation))
    keys = [column for column in columns if column.startswith("k")]
    values = [column for column in columns if column.startswith("c")]
    chosen = ", ".join(columns)
    place = f"(_commit - {told}) * {_PLACES} + _row * 2"
    source = f"FROM {name} WHERE {condition}"
    if is_final:
        events = (
            f"SELECT CASE WHEN _sign < 0 THEN -1 ELSE 1 END AS sign, {place} AS place, _closed, "
            f"{chosen} {source} AND _closed"
        )
    else:
        events = (
            f"SELECT _sign AS sign, {place} AS place, _closed, {chosen} {source} AND _sign <> 0 "
            f"UNION ALL SELECT sign, {place} + (sign > 0)::INT, sign > 0, {chosen} "
            f"FROM (SELECT * {source} AND _sign = 0) CROSS JOIN (VALUES (-1), (1)) AS s(sign)"
        )
    packed = ", ".join(f"{value} := {value}" for value in ("sign", "_closed", *values))
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    ends = (
        f"SELECT {', '.join([*keys, ''])}arg_min(struct_pack({packed}), place) AS first, "
        f"arg_max(struct_pack({packed}), place) AS last FROM ({events}){group}"
    )
    sides = []
    for side, end, sign in (("b", "first", -1), ("a", "last", 1)):
        there = f"{end}.sign = {sign}"
        sides.append(f"{there} AS {side}_there")
        sides.append(f"CASE WHEN {there} THEN {end}._closed END AS {side}_closed")
        sides += [
            f"CASE WHEN {there} THEN {end}.{value} END AS {side}{value[1:]}" for value in values
        ]
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    return (
        f"SELECT {', '.join([*keys, *sides])} FROM ({ends}) "
        f"WHERE first.sign IS NOT NULL AND (first.sign < 0 OR last.sign > 0){order}"
    )


def _swap(
    asking: Asking, before: ShownVersion | None, after: ShownVersion, *, is_final: bool
) -> Iterator[SinkChanges]:
    """Yield the changes of a swap between versions whose key or columns differ."""
    condition = f"_commit = {after.since}" + (" AND _closed" if is_final else "")
    old = after.relation if before is None else before.relation
    if before is None:
        sql = _one_sided(after, condition, old, "a")
        yield asking.net(sql, after.since, 0, old, after.relation, after)
    elif before.relation.key == after.relation.key:
        sql = _both_sided(before, after, condition)
        yield asking.net(sql, after.since, 0, old, after.relation, after)
    else:
        sql = _one_sided(before, condition, after.relation, "b")
        yield asking.net(sql, after.since, 0, old, after.relation, after)
        sql = _one_sided(after, condition, old, "a")
        yield asking.net(sql, after.since, 1, old, after.relation, after)


def _side(relation: Relation, side: str) -> list[str]:
    return [f"c{at} AS {side}{at}" for at in range(len(relation.columns))]


def _one_sided(version: ShownVersion, condition: str, other: Relation, side: str) -> str:
    """Return the query for rows that all leave (side b) or all come (side a)."""
    keys = [f"k{at}" for at in range(len(version.relation.key))]
    away = "a" if side == "b" else "b"
    nothing = [
        f"CAST(NULL AS {each.type.duckdb}) AS {away}{at}" for at, each in enumerate(other.columns)
    ]
    there = [f"true AS {side}_there", f"_closed AS {side}_closed"]
    there += [f"false AS {away}_there", f"CAST(NULL AS BOOLEAN) AS {away}_closed"]
    selected = ", ".join([*keys, *_side(version.relation, side), *nothing, *there])
    return f"SELECT {selected} FROM {version.changes} WHERE {condition} ORDER BY _row"


def _both_sided(before: ShownVersion, after: ShownVersion, condition: str) -> str:
    """Return the query for rows of one version beside those of the next, by their keys."""
    keys = [f"k{at}" for at in range(len(after.relation.key))]
    parts = []
    for version, side, sign in ((before, "b", -1), (after, "a", 1)):
        selected = [*keys, *_side(version.relation, side), f"true AS {side}_there"]
        selected.append(f"_closed AS {side}_closed")
        parts.append(
            f"(SELECT {', '.join(selected)}, 1 AS one FROM {version.changes} "
            f"WHERE {condition} AND _sign = {sign}) {side}"
        )
    same = [f"b.{key} IS NOT DISTINCT FROM a.{key}" for key in keys] or ["b.one = a.one"]
    merged = [f"CASE WHEN a_there THEN a.{key} ELSE b.{key} END AS {key}" for key in keys]
    chosen = ["coalesce(b_there, false) AS b_there", "coalesce(a_there, false) AS a_there"]
    chosen += ["b_closed", "a_closed"]
    chosen += [f"b{at}" for at in range(len(before.relation.columns))]
    chosen += [f"a{at}" for at in range(len(after.relation.columns))]
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    return (
        f"SELECT {', '.join([*merged, *chosen])} FROM {parts[0]} FULL JOIN {parts[1]} "
        f"ON {' AND '.join(same)}{order}"
    )
