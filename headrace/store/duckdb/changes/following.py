"""Who follows views: sinks, readers with a lease, and views that always keep their changes.

A view is followed from the first of them on: then its changes are made in every commit. They are
kept as long as one of them needs them. A sink is never left behind; a lease ends when its reader is
further behind than the limits. When nobody is left, the changes go.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.ledger.following import (
    ChangeLimits,
    Followers,
    SinkEntry,
    SinkState,
    relation_of,
)
from headrace.plan.tables import Table
from headrace.store.duckdb.changes.images import take_images
from headrace.store.duckdb.changes.layout import (
    META,
    columns_of,
    create_changes,
    first_table,
    rows_view,
)
from headrace.store.duckdb.changes.shown import Rows, read_shown
from headrace.store.duckdb.changes.sizes import check_sizes
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.reading import live

__all__ = [
    "FollowedView",
    "add_lease",
    "drop_lease",
    "drop_told",
    "forget_view",
    "head_of",
    "prune",
    "read_followed",
    "read_leases",
    "read_sinks",
    "set_followers",
]

logger = logging.getLogger("headrace.store")


@dataclass(frozen=True)
class FollowedView:
    """What a commit has to know of a view that is followed."""

    version: str  # that readers see
    changes: str  # the name of its table of changes
    is_only: bool = True  # there are changes of no version but this one
    always: bool = False
    has_leases: bool = False
    sinks: tuple[SinkState, ...] = field(default=())

    @property
    def is_measured(self) -> bool:
        """Whether it has to be known how large the changes of each commit are."""
        return self.always or self.has_leases


def head_of(rows: Rows) -> int:
    """Return the number of the last commit."""
    return int(rows("SELECT commits FROM headrace.engine", [])[0][0])


def read_sinks(rows: Rows) -> list[SinkState]:
    """Return every sink and how far it is."""
    found = rows(
        "SELECT sink, view, topic, mode, emit, key, told, until, first, paused "
        "FROM headrace.sinks ORDER BY sink",
        [],
    )
    return [
        SinkState(
            SinkEntry(sink, view, topic, mode, emit, tuple(key)), told, until, first, paused=paused
        )
        for sink, view, topic, mode, emit, key, told, until, first, paused in found
    ]


def read_leases(rows: Rows) -> dict[str, tuple[str, int]]:
    """Return the view and the last commit of every reader with a lease."""
    found = rows("SELECT lease, view, told FROM headrace.leases", [])
    return {lease: (view, told) for lease, view, told in found}


def read_followed(rows: Rows) -> dict[str, FollowedView]:
    """Return the views that are followed and seen by readers."""
    sinks: dict[str, list[SinkState]] = {}
    for state in read_sinks(rows):
        sinks.setdefault(state.sink.view, []).append(state)
    leased = {view for view, _ in read_leases(rows).values()}
    found: dict[str, FollowedView] = {}
    for view, always in rows("SELECT view, always FROM headrace.followed", []):
        if shown := read_shown(rows, view):
            of_view = tuple(sinks.get(view, ()))
            newest = shown[-1]
            found[view] = FollowedView(
                newest.version, newest.changes, len(shown) == 1, always, view in leased, of_view
            )
    return found


def set_followers(
    file: DuckDBFile, followers: Followers, tables: Mapping[str, Table], commit: int
) -> bool:
    """Let sinks, and views that always keep their changes, be these; return if rows are private.

    `tables` are those that readers see, by view. A new sink gets all rows first, one that gets open
    rows too, or no longer, those: private rows of the commit `commit`. Every sink must have all
    changes up to the last commit, but for one that is paused and stays as it is.
    """
    known = {state.sink.topic: state for state in read_sinks(file.rows)}
    views = {state.sink.view for state in known.values()}
    views |= {view for (view,) in file.rows("SELECT view FROM headrace.followed")}
    waits = False
    for sink in followers.sinks:
        state, table = known.pop(sink.topic, None), tables.get(sink.view)
        if state is not None and _kind(state.sink) != _kind(sink):
            _forget_sink(file, state)  # it was told nothing yet, or would have been refused
            state = None
        if table is not None and not sink.has_key(relation_of(table)):
            table = None  # a version that has the columns of its key is built
        views.add(sink.view)
        told, first = (commit - 1, None) if state is None else (state.told, state.first)
        if table is not None:
            was_final = None if state is None else state.sink.emit == "final"
            condition, sign = _owed(was_final, is_final=sink.emit == "final")
            if condition is not None:
                _make_first(file, sink, table, condition, sign, commit)
                told = first = commit
                waits = True
        file.run("DELETE FROM headrace.sinks WHERE topic = ?", [sink.topic])
        until = None if state is None else state.until
        paused = state is not None and state.paused and state.sink == sink
        row = [sink.name, sink.view, sink.topic, sink.mode, sink.emit, list(sink.key)]
        file.run(
            "INSERT INTO headrace.sinks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [*row, told, until, first, paused],
        )
    for state in known.values():
        _forget_sink(file, state)
    for view in views | followers.always:
        _follow(file, view, commit - 1, always=view in followers.always)
    return waits


def _kind(sink: SinkEntry) -> tuple[str, str, tuple[str, ...]]:
    return sink.view, sink.mode, sink.key


def _owed(was_final: bool | None, *, is_final: bool) -> tuple[str | None, int]:
    """Return which rows a sink has to be told first, as a condition, and with which sign."""
    if was_final is None:
        return ("_closed" if is_final else "true"), 1
    if was_final == is_final:
        return None, 0
    return "NOT _closed", 1 if was_final else -1


def _make_first(
    file: DuckDBFile, sink: SinkEntry, table: Table, condition: str, sign: int, commit: int
) -> None:
    topic = sink.topic
    shown = read_shown(file.rows, table.view)[-1]
    columns = ", ".join(columns_of(shown.relation))
    order = ", ".join(f"k{at}" for at in range(len(table.key))) or "1"
    file.run(f"DROP TABLE IF EXISTS {first_table(topic)}")
    file.run(create_changes(first_table(topic), shown.relation))
    take_images(file, live(table), "temp.__first")
    file.run(
        f"INSERT INTO {first_table(topic)} ({META}, {columns}) "
        f"SELECT {commit}, 0, row_number() OVER (ORDER BY {order}), {sign}, _closed, {columns} "
        f"FROM temp.__first WHERE {condition}"
    )
    file.run("DROP TABLE temp.__first")
    check_sizes(file, table, first_table(topic), commit, [sink])


def _forget_sink(file: DuckDBFile, state: SinkState) -> None:
    file.run(f"DROP TABLE IF EXISTS {first_table(state.sink.topic)}")
    file.run("DELETE FROM headrace.sinks WHERE topic = ?", [state.sink.topic])


def add_lease(file: DuckDBFile, lease: str, view: str, told: int) -> None:
    """Let a reader follow a view from a commit on, the last one or one whose changes are kept."""
    file.run("DELETE FROM headrace.leases WHERE lease = ?", [lease])
    file.insert("headrace.leases", [[lease, view, told]])
    _follow(file, view, head_of(file.rows), always=_is_always(file, view))


def drop_lease(file: DuckDBFile, lease: str) -> None:
    """Let a reader go."""
    found = file.rows("SELECT view FROM headrace.leases WHERE lease = ?", [lease])
    file.run("DELETE FROM headrace.leases WHERE lease = ?", [lease])
    for (view,) in found:
        _follow(file, view, head_of(file.rows), always=_is_always(file, view))


def _is_always(file: DuckDBFile, view: str) -> bool:
    found = file.rows("SELECT always FROM headrace.followed WHERE view = ?", [view])
    return bool(found and found[0][0])


def _follow(file: DuckDBFile, view: str, commit: int, *, always: bool) -> None:
    """Let changes of a view be made if somebody reads them, and be gone otherwise."""
    followers = [*_told(file, view), *([0] if always else [])]
    known = file.rows("SELECT always FROM headrace.followed WHERE view = ?", [view])
    if not followers:
        if known:
            _drop_changes(file, view)
        return
    if not known:
        file.insert("headrace.followed", [[view, commit, always, commit]])
    elif known[0][0] != always:
        file.run("UPDATE headrace.followed SET always = ? WHERE view = ?", [always, view])
    for shown in read_shown(file.rows, view)[-1:]:
        file.run(create_changes(shown.changes, shown.relation))


def _told(file: DuckDBFile, view: str) -> list[int]:
    """Return the last commit that each sink and each reader of a view has."""
    found = file.rows(
        "SELECT told FROM headrace.sinks WHERE view = ? UNION ALL "
        "SELECT told FROM headrace.leases WHERE view = ?",
        [view, view],
    )
    return [told for (told,) in found]


def _drop_changes(file: DuckDBFile, view: str) -> None:
    shown = read_shown(file.rows, view)
    for each in shown:
        file.run(f"DROP TABLE IF EXISTS {each.changes}")
    for each in shown[:-1]:
        file.run("DELETE FROM headrace.shown WHERE view = ? AND since = ?", [view, each.since])
    for table in ("followed", "change_sizes"):
        file.run(f"DELETE FROM headrace.{table} WHERE view = ?", [view])


def forget_view(file: DuckDBFile, view: str) -> None:
    """Let all go that is known of a view which is dropped, its sinks too: they begin anew."""
    _drop_changes(file, view)
    for state in read_sinks(file.rows):
        if state.sink.view == view:
            _forget_sink(file, state)
    file.run(f"DROP VIEW IF EXISTS {rows_view(view)}")
    for table in ("shown", "leases"):
        file.run(f"DELETE FROM headrace.{table} WHERE view = ?", [view])


def prune(
    file: DuckDBFile, view: str, leases: Mapping[str, int], limits: ChangeLimits
) -> list[str]:
    """Drop changes that every follower has, and return the leases that end.

    `leases` are the last commits of the view's readers, newer ones than the ledger may know.
    """
    followed = file.rows("SELECT always, since FROM headrace.followed WHERE view = ?", [view])
    if not followed:
        return list(leases)
    always, since = followed[0]
    ended: list[str] = []
    if leases or always:
        kept = _kept_since(file, view, limits)
        ended = [lease for lease, told in leases.items() if told < kept]
        for lease, told in leases.items():
            file.run("UPDATE headrace.leases SET told = ? WHERE lease = ?", [told, lease])
        for lease in ended:
            logger.warning(
                "%s: a reader is further behind than %d commits or %d bytes of changes; its lease "
                "ends",
                view,
                limits.commits,
                limits.bytes,
            )
            file.run("DELETE FROM headrace.leases WHERE lease = ?", [lease])
    needed = _told(file, view) + ([kept] if always else [])
    if not needed:
        _drop_changes(file, view)
        return ended
    floor = min(needed)
    if floor <= since:
        return ended
    shown = read_shown(file.rows, view)
    for at, each in enumerate(shown):
        if at + 1 < len(shown) and shown[at + 1].since <= floor:
            file.run(f"DROP TABLE IF EXISTS {each.changes}")
            file.run("DELETE FROM headrace.shown WHERE view = ? AND since = ?", [view, each.since])
        else:
            file.run(f"DELETE FROM {each.changes} WHERE _commit <= ?", [floor])
    file.run("UPDATE headrace.followed SET since = ? WHERE view = ?", [floor, view])
    if leases or always:
        file.run("DELETE FROM headrace.change_sizes WHERE view = ? AND commit <= ?", [view, floor])
    return ended


def drop_told(file: DuckDBFile, view: str, followed: FollowedView) -> None:
    """Drop changes that every sink has, of a view that only sinks follow, in one version."""
    floor = min(state.told for state in followed.sinks)
    file.run(f"DELETE FROM {followed.changes} WHERE _commit <= ?", [floor])
    file.run(
        "UPDATE headrace.followed SET since = greatest(since, ?) WHERE view = ?", [floor, view]
    )


def _kept_since(file: DuckDBFile, view: str, limits: ChangeLimits) -> int:
    """Return the commit after which changes are within the limits; the last one's always are."""
    head = head_of(file.rows)
    found = file.rows(
        "SELECT max(commit) FROM (SELECT commit, sum(bytes) OVER (ORDER BY commit DESC) AS upto, "
        "row_number() OVER (ORDER BY commit DESC) AS place FROM headrace.change_sizes "
        "WHERE view = ?) WHERE upto > ? AND place > 1",
        [view, limits.bytes],
    )
    return max(found[0][0] or 0, head - limits.commits)
