"""A view of records with a column of every type, and columns whose names have odd characters."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headrace.ledger.entries import MAIN, Progress
from headrace.plan.tables import KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.testing.store.samples import (
    PARTITION_0,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from headrace.time.placement import OfRecord

TYPES = {
    "yes": "BOOLEAN",
    "tiny": "TINYINT",
    "n": "BIGINT",
    "single": "FLOAT",
    "real": "DOUBLE",
    "price": "DECIMAL(10,2)",
    "whole": "DECIMAL(30,0)",
    "word": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "many": "ARRAY<INT>",
    "named": "MAP<STRING, INT>",
    "pair": "STRUCT<a: INT, b: STRING>",
    "n>=1": "BIGINT",
    'x,"y"; DROP': "STRING",
    "naïve col": "STRING",
}
ROWS: list[tuple[Any, ...]] = [
    (
        True, 1, 2**62, 0.1, 1.5, Decimal("12.50"), Decimal(10) ** 29, "it's", b"\x00\xff",
        date(2026, 1, 31), datetime(2026, 1, 31, 12, 0, 0, 1, UTC), [1, None], [("a", 1)],
        {"a": 1, "b": "x"}, 7, "q", "å",
    ),
    (
        False, -1, -5, -0.5, float("nan"), Decimal("-0.01"), Decimal(-3), "null", b"",
        date(1969, 12, 31), datetime(1960, 1, 1, tzinfo=UTC), [], [], {"a": None, "b": None},
        8, 'a,b"c', "z",
    ),
    (
        None, 0, 0, 0.0, float("inf"), Decimal("0.00"), Decimal(0), "", None, None, None, None,
        None, None, 9, "", None,
    ),
    (None,) * 17,
]  # fmt: skip


def table() -> Table:
    partition, offset = parse_type("INT"), parse_type("BIGINT")
    columns = [TableColumn("__partition", partition), TableColumn("__offset", offset)]
    outputs = []
    for at, (name, type) in enumerate(TYPES.items()):
        columns.append(TableColumn(f"o{at}", parse_type(type)))
        outputs.append(Output(name, Reference(f"o{at}", parse_type(type)), parse_type(type)))
    key = (KeyPart("partition", "__partition", partition), KeyPart("offset", "__offset", offset))
    return Table("things", "v1", tuple(columns), OfRecord(), outputs=tuple(outputs), key=key)


def fill(store: Store) -> None:
    """Let the view have its four rows."""
    view = table()
    epoch = store.begin_epoch()
    held = [stream_holding(), holding(view)]
    store.hold(epoch, held, {MAIN: {PARTITION_0: Progress()}})
    store.prepare(view)
    store.show(epoch, MAIN, [view])
    rows = delta(view, *((0, offset, *row) for offset, row in enumerate(ROWS)))
    store.commit(turn_of(planned(epoch, 1), {view: (rows,)}))
