"""How two sets of images differ, as changes: in the store or, where they are few, in memory.

Both ask the same query. In memory it is planned once and then kept, in the store every time.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.scratch import calculate
from headrace.store.duckdb.changes.layout import META
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.touching import same_keys

__all__ = ["find_differences", "insert_differences", "placed"]


def insert_differences(
    file: DuckDBFile,
    name: str,
    before: str,
    after: str,
    *,
    keys: Sequence[str],
    columns: Sequence[str],
    place: tuple[int, int, int],
) -> int:
    """Write how two tables of images differ as changes, and return how many rows that is.

    `place` is the commit, the step, and how many changes the commit has already.
    """
    commit, step, made = place
    chosen = ", ".join(columns)
    found = file.rows(
        f"INSERT INTO {name} ({META}, {chosen}) "
        f"SELECT {commit}, {step}, {made} + number, sign, _closed, {chosen} "
        f"FROM ({_differences(before, after, keys, columns)})"
    )
    return int(found[0][0])


def find_differences(
    before: pa.Table, after: pa.Table, *, keys: Sequence[str], columns: Sequence[str]
) -> pa.Table:
    """Return how images differ: `number`, from 1, `sign`, `_closed`, and the columns."""
    query = f"FROM ({_differences('before', 'after', keys, columns)}) ORDER BY number"
    return calculate(query, {"before": before, "after": after})


def placed(differences: pa.Table, commit: int, step: int, made: int) -> pa.Table:
    """Return differences as changes: a step of a commit that has so many already."""
    rows = differences.num_rows
    columns = {
        "_commit": pa.repeat(pa.scalar(commit, pa.int64()), rows),
        "_step": pa.repeat(pa.scalar(step, pa.int8()), rows),
        "_row": pc.add(differences["number"], made),
        "_sign": differences["sign"].cast(pa.int8()),
    }
    rest = differences.drop_columns(["number", "sign"])
    return pa.table(columns | dict(zip(rest.column_names, rest.columns, strict=True)))


def _differences(before: str, after: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    declared = [column for column in columns if column.startswith("c")]
    differs = " OR ".join(f"b.{each} IS DISTINCT FROM a.{each}" for each in declared) or "false"
    # A session that grows is open again, and may look the same otherwise.
    differs = f"({differs} OR (b._closed AND NOT a._closed))"
    chosen = [
        f"CASE WHEN sign < 0 THEN b_{each} ELSE a_{each} END AS {each}"
        for each in ("_closed", *columns)
    ]
    sides = [f"{side}.{each} AS {side}_{each}" for side in "ba" for each in ("_closed", *columns)]
    signs = (
        f"CASE WHEN a.__there IS NULL THEN [-1] WHEN b.__there IS NULL THEN [1] "
        f"WHEN {differs} THEN [-1, 1] WHEN a._closed AND NOT b._closed THEN [0] END"
    )
    pairs = (
        f"SELECT unnest({signs}) AS sign, {', '.join(sides)} "
        f"FROM (SELECT *, true AS __there FROM {before}) b "
        f"FULL JOIN (SELECT *, true AS __there FROM {after}) a ON {same_keys('b', 'a', keys)}"
    )
    pairs = f"SELECT sign, {', '.join(chosen)} FROM ({pairs})"
    order = ", ".join([*(each for each in columns if each.startswith("k")), "sign"])
    return (
        f"SELECT row_number() OVER (ORDER BY {order}) AS number, sign, "
        f"{', '.join(['_closed', *columns])} FROM ({pairs})"
    )
