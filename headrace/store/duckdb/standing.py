"""Where a view stands. Every keyed read asks, so all of it is looked up in small statements.

As one statement it is joins of five tables, which take DuckDB five times as long to plan as these
take altogether.
"""

from functools import lru_cache
from operator import itemgetter

from headrace.errors import ViewNotFound
from headrace.ledger.entries import HoldingState, StreamPartition
from headrace.ledger.following import Token
from headrace.schema.relations import Relation
from headrace.store.asking import Standing
from headrace.store.duckdb.changes.shown import Rows
from headrace.time.clocks import NEVER

__all__ = ["read_standing"]

_relation = lru_cache(maxsize=256)(Relation.from_json)


def read_standing(rows: Rows, view: str) -> Standing:
    """Return where a view stands. ViewNotFound: readers see none of that name."""
    shown = rows("SELECT version, relation, since FROM headrace.shown WHERE view = ?", [view])
    if not shown:
        raise ViewNotFound(f"there is no view {view} that readers see; `headrace status` tells")
    version, relation, _ = max(shown, key=itemgetter(2))
    store_id, commits = rows("SELECT store_id, commits FROM headrace.engine", [])[0]
    held = rows(
        "SELECT unit, inputs, state FROM headrace.holdings "
        "WHERE kind = 'view' AND name = ? AND version = ?",
        [view, version],
    )
    position: dict[StreamPartition, int] = {}
    state = HoldingState.LIVE
    for unit, inputs, known in held:
        state = HoldingState(known)
        for stream, partition, offset in rows(
            "SELECT stream, partition, next_offset FROM headrace.progress WHERE unit = ?", [unit]
        ):
            if stream in inputs:
                position[StreamPartition(stream, partition)] = offset
    watermark = rows(
        "SELECT watermark_us FROM headrace.view_watermarks WHERE view = ? AND version = ?",
        [view, version],
    )
    return Standing(
        view,
        version,
        state,
        _relation(relation),
        Token(store_id, version, commits),
        position,
        watermark[0][0] if watermark else NEVER,
    )
