"""Sessions in the store: columns of their rows, which rows a turn reaches, which items are theirs.

A row is an interval from `first_time` to `last_time` of a group's records. A *piece* of a session
(time/windows.py) belongs to it as a whole, so what is kept by piece never has to move when sessions
become one: the items of a session are those of the pieces from its first to its last record.
"""

from collections.abc import Sequence

from headrace.plan.tables import GROUP, Table, TableColumn, quote
from headrace.schema.types import parse_type
from headrace.time.windows import store_floor

__all__ = ["PIECE", "SESSION_COLUMNS", "items_expired", "items_of_session", "near_rows"]

_TIMESTAMP = parse_type("TIMESTAMP")
#: Of a group's sessions each has another first record; the last one's time comes with the states.
SESSION_COLUMNS = (
    TableColumn("first_time", _TIMESTAMP),
    TableColumn("last_time", _TIMESTAMP, "greatest({old}, {new})", "max({x})"),
)
PIECE = TableColumn("piece", parse_type("BIGINT"))


def near_rows(
    table: str, groups: Sequence[str], gap_us: int, delta: str, span: tuple[object, object]
) -> str:
    """Return a FROM clause of the rows `o` that pieces of a delta may be part of.

    Those of the pieces' groups, not more than the gap outside of the time that their group's pieces
    span. Names are quoted. `span` is what all pieces span and the gap around it, in microseconds:
    as literals, it lets the store skip the row groups of other times.
    """
    spans = (
        f"SELECT {', '.join([*groups, ''])}epoch_us(min(first_time)) - {gap_us} AS __low, "
        f"epoch_us(max(last_time)) + {gap_us} AS __high FROM {delta}"
        + (f" GROUP BY {', '.join(groups)}" if groups else "")
    )
    matches = [f"o.{group} IS NOT DISTINCT FROM n.{group}" for group in groups]
    matches += ["epoch_us(o.last_time) >= n.__low", "epoch_us(o.first_time) <= n.__high"]
    low_us, high_us = span
    return (
        f"FROM {table} AS o JOIN ({spans}) AS n ON {' AND '.join(matches)} "
        f"WHERE o.last_time >= make_timestamptz({low_us}) "
        f"AND o.first_time <= make_timestamptz({high_us})"
    )


def items_of_session(gap_us: int, piece: str) -> str:
    """Return the test whether a piece is one of the session `GROUP`."""
    first, last = (
        store_floor(f"epoch_us({GROUP}.{time})", gap_us) for time in ("first_time", "last_time")
    )
    return f"{piece} BETWEEN {first} AND {last}"


def items_expired(main: Table, items: str, retention_us: int) -> str:
    """Return the test for items whose session has left; they leave after it, in the same turn."""
    assert main.gap_us is not None
    row = quote(items)
    matches = [
        f"{GROUP}.{quote(group.name)} IS NOT DISTINCT FROM {row}.{quote(group.name)}"
        for group in main.groups
    ]
    matches.append(items_of_session(main.gap_us, f"{row}.piece"))
    # The first test says less, but the store can answer it for whole row groups at once.
    past = f"({{watermark}} - {retention_us + main.gap_us}) // {main.gap_us} + 1"
    return (
        f"piece <= {past} AND NOT EXISTS (FROM headrace.{quote(main.name)} AS {GROUP} "
        f"WHERE {' AND '.join(matches)})"
    )
