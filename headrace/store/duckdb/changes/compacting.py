"""Make one change of several, where a sink is told of many commits as one and nobody reads them.

A view whose sinks are told now and then has changes of many commits, most of them of the same rows.
Between two places that sinks stand at they become what they amount to, as of the last commit. That
ends where the reader with the oldest lease stands; a token from before that is too old afterwards.
"""

from itertools import pairwise

from headrace.store.duckdb.changes.following import FollowedView
from headrace.store.duckdb.changes.layout import META, columns_of
from headrace.store.duckdb.changes.publishing import net_query
from headrace.store.duckdb.changes.shown import ShownVersion
from headrace.store.duckdb.file import DuckDBFile

__all__ = ["compact"]

_NET = "temp.__net"


def compact(file: DuckDBFile, view: FollowedView, shown: ShownVersion, end: int) -> int:
    """Make one change of several up to the commit `end`; return how many changes there are then."""
    if end <= shown.since:
        return 0
    places = {place for state in view.sinks for place in (state.told, state.until or state.told)}
    between = sorted({shown.since, end, *(place for place in places if shown.since < place < end)})
    for start, stop in pairwise(between):
        _compact(file, shown, start, stop)
    file.run("UPDATE headrace.followed SET readable = ? WHERE view = ?", [end, shown.view])
    return int(file.rows(f"SELECT count(*) FROM {shown.changes}")[0][0])


def _compact(file: DuckDBFile, shown: ShownVersion, start: int, stop: int) -> None:
    condition = f"_commit > {start} AND _commit <= {stop}"
    commits, last = file.rows(
        f"SELECT count(DISTINCT _commit), max(_commit) FROM {shown.changes} WHERE {condition}"
    )[0]
    if commits < 2:
        return
    columns = list(columns_of(shown.relation))
    values = [column[1:] for column in columns if column.startswith("c")]
    file.run(
        f"CREATE TEMP TABLE {_NET} AS {net_query(shown.changes, shown.relation, condition, start)}"
    )
    file.run(f"DELETE FROM {shown.changes} WHERE {condition}")
    differs = " OR ".join(f"b{at} IS DISTINCT FROM a{at}" for at in values) or "false"
    differs = f"({differs} OR (b_closed AND NOT a_closed))"
    chosen = [column if column.startswith("k") else _side(column[1:]) for column in columns]
    order = ", ".join([*(each for each in columns if each.startswith("k")), "sign"])
    file.run(
        f"INSERT INTO {shown.changes} ({META}, {', '.join(columns)}) "
        f"SELECT {last}, 0, row_number() OVER (ORDER BY {order}), sign, {_side('_closed')}, "
        f"{', '.join(chosen)} FROM {_NET} CROSS JOIN (VALUES (-1), (0), (1)) AS signs(sign) "
        f"WHERE CASE sign WHEN -1 THEN b_there AND (NOT a_there OR {differs}) "
        f"WHEN 1 THEN a_there AND (NOT b_there OR {differs}) "
        f"ELSE b_there AND a_there AND NOT {differs} AND a_closed AND NOT b_closed END"
    )
    file.run(f"DROP TABLE {_NET}")


def _side(column: str) -> str:
    return f"CASE WHEN sign < 0 THEN b{column} ELSE a{column} END"
