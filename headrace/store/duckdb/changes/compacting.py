"""Merge the changes of several commits into their net effect, for sinks with `emit = 'every ...'`.

Such a sink publishes the changes of many commits at once, most of them of the same rows. Between
the commits at which sinks stand, changes are replaced by their net effect, as of the last commit.
Only changes that every lease has read are merged; an older token is too old afterwards.
"""

from itertools import pairwise

from headrace.store.duckdb.changes.differing import insert_differences
from headrace.store.duckdb.changes.following import FollowedView
from headrace.store.duckdb.changes.layout import columns_of
from headrace.store.duckdb.changes.publishing import net_query
from headrace.store.duckdb.changes.shown import ShownVersion
from headrace.store.duckdb.file import DuckDBFile

__all__ = ["compact"]

_NET = "temp.__net"
_SIDES = {"b": "temp.__net_before", "a": "temp.__net_after"}


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
    keys = [column for column in columns if column.startswith("k")]
    net = net_query(shown.changes, shown.relation, condition, start)
    file.run(f"CREATE TEMP TABLE {_NET} AS {net}")
    file.run(f"DELETE FROM {shown.changes} WHERE {condition}")
    for side, images in _SIDES.items():
        values = [f"{side}{column[1:]} AS {column}" for column in columns if column not in keys]
        selected = ", ".join([*keys, *values, f"{side}_closed AS _closed", "1 AS __r"])
        file.run(f"CREATE TEMP TABLE {images} AS SELECT {selected} FROM {_NET} WHERE {side}_there")
    insert_differences(
        file,
        shown.changes,
        *_SIDES.values(),
        keys=keys or ["__r"],
        columns=columns,
        place=(last, 0, 0),
    )
    for name in (_NET, *_SIDES.values()):
        file.run(f"DROP TABLE {name}")
