"""Changes of rows as the records of a sink: keys and values as JSON, in one of three modes.

- `upsert`: the newest row of a key; null for one that is gone.
- `retract`: what no longer holds first, `_change` tells which: retract or insert.
- `debezium`: before, after and op (c, u, d; r for rows that were there when the sink began), and
  behind a d a null for the key, so that compaction forgets it.

Where a row gets another key it leaves under the one and comes under the other.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from headrace.schema.json_rows import json_object
from headrace.schema.relations import Relation
from headrace.schema.types import parse_type
from headrace.scratch import calculate

__all__ = ["MODES", "ORDINALS", "RECORDS", "Envelope", "record_bytes"]

#: How many records a row may become.
ORDINALS = 4
RECORDS = pa.schema([("ordinal", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])

_BOOLEAN = parse_type("BOOLEAN")
_OP = '{"before":null,"after":null,"op":"u","source":}'
#: The conditions for the records of a row, with `k` and `row` before and after.
_LEAVES = "old_row IS NOT NULL AND (new_row IS NULL OR old_k <> new_k)"
_COMES = "new_row IS NOT NULL AND (old_row IS NULL OR old_k <> new_k)"
_STAYS = "old_row IS NOT NULL AND new_row IS NOT NULL AND old_k = new_k"


@dataclass(frozen=True)
class Envelope:
    """How a sink's records are made: of rows of `old` that leave and rows of `new` that come.

    `key` names columns of both; empty: the key of the relations.
    """

    mode: str
    old: Relation
    new: Relation
    key: tuple[str, ...] = ()

    @property
    def passes(self) -> int:
        """How often rows are encoded: with a key of its own one row may take the key of another.

        So rows leave first, and come afterwards.
        """
        return len(_PASSES.get(self.mode, ((),))) if self.key else 1

    def encode(
        self,
        rows: pa.RecordBatch,
        source: Mapping[str, object],
        *,
        pass_number: int = 0,
        is_first: bool = False,
    ) -> pa.Table:
        """Return records as RECORDS, in order; rows that look the same before and after have none.

        `rows` has the columns `k0`... of the key, `b0`... and `b_closed` of rows before, `a0`...
        and `a_closed` of rows after, and `b_there` and `a_there`. `source` tells what the changes
        are of. Ordinals grow with the rows: those of row n begin at n * ORDINALS. There are as many
        passes over all rows as `passes` says; the records of each come behind those before it.
        """
        shown = json.dumps(dict(source), separators=(",", ":"))
        parts = _PASSES[self.mode][pass_number] if self.passes > 1 else tuple(_PARTS[self.mode])
        select = _select(self.mode, self.old, self.new, self.key, parts)
        told = {"source": shown, "came": "r" if is_first else "c"}
        changes = pa.Table.from_batches([rows])
        for name, text in told.items():
            changes = changes.append_column(name, pa.repeat(text, rows.num_rows))
        return calculate(select, {"changes": changes}).cast(RECORDS)


@cache
def _select(
    mode: str, old: Relation, new: Relation, key: tuple[str, ...], parts: tuple[str, ...]
) -> str:
    columns = [
        f"CASE WHEN {side}_there THEN {text} END AS {name}"
        for side, relation, when in (("b", old, "old"), ("a", new, "new"))
        for text, name in (
            (_key(relation, side, key), f"{when}_k"),
            (_row(relation, side), f"{when}_row"),
        )
    ]
    rows = (
        f"SELECT row_number() OVER () - 1 AS number, {', '.join(columns)}, source, came "
        f"FROM changes"
    )
    rows = f"SELECT * FROM ({rows}) WHERE old_row IS DISTINCT FROM new_row"
    selects = [
        f"SELECT number * {ORDINALS} + {at} AS ordinal, {k} AS key, {value} AS value "
        f"FROM rows WHERE {condition}"
        for at, (part, (k, value, condition)) in enumerate(_PARTS[mode].items())
        if part in parts
    ]
    return (
        f"WITH rows AS MATERIALIZED ({rows}) SELECT ordinal, encode(key) AS key, "
        f"encode(value) AS value FROM ({' UNION ALL '.join(selects)}) ORDER BY ordinal"
    )


def _change(word: str, row: str) -> str:
    return f"""'{{"_change":"{word}",' || {row}[2:]"""


def _envelope(op: str, before: str = "'null'", after: str = "'null'") -> str:
    return (
        f"""'{{"before":' || {before} || ',"after":' || {after} || ',"op":"' || {op} """
        f"""|| '","source":' || source || '}}'"""
    )


#: The records of a row in each mode, in order: key, value, condition.
_PARTS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "upsert": {
        "gone": ("old_k", "NULL", _LEAVES),
        "row": ("new_k", "new_row", "new_row IS NOT NULL"),
    },
    "retract": {
        "retract": ("old_k", _change("retract", "old_row"), "old_row IS NOT NULL"),
        "insert": ("new_k", _change("insert", "new_row"), "new_row IS NOT NULL"),
    },
    "debezium": {
        "d": ("old_k", _envelope("'d'", before="old_row"), _LEAVES),
        "gone": ("old_k", "NULL", _LEAVES),
        "u": ("new_k", _envelope("'u'", before="old_row", after="new_row"), _STAYS),
        "c": ("new_k", _envelope("came", after="new_row"), _COMES),
    },
}
MODES = tuple(_PARTS)
_PASSES = {"debezium": (("d", "gone"), ("u", "c"))}


def _key(relation: Relation, side: str, key: tuple[str, ...]) -> str:
    if not key:
        return json_object(
            [(part.name, f"k{at}", part.type) for at, part in enumerate(relation.key)]
        )
    places = {column.name: at for at, column in enumerate(relation.columns)}
    chosen = [(name, places[name]) for name in key]
    return json_object([(name, f"{side}{at}", relation.columns[at].type) for name, at in chosen])


def _row(relation: Relation, side: str) -> str:
    members = [(each.name, f"{side}{at}", each.type) for at, each in enumerate(relation.columns)]
    return json_object([*members, ("_closed", f"{side}_closed", _BOOLEAN)])


def record_bytes(mode: str, key_bytes: int, row_bytes: int, source_bytes: int) -> int:
    """Return how many bytes the largest record of a row may have, beside one as large as itself."""
    if mode == "upsert":
        return key_bytes + row_bytes
    if mode == "retract":
        return key_bytes + row_bytes + len('"_change":"retract",')
    return key_bytes + 2 * row_bytes + source_bytes + len(_OP)
