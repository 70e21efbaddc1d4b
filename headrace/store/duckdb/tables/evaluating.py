"""What Spark evaluates of merged rows: read for it and written back, within a turn's transaction.

1. **Look**, before anything is merged: the keys of the rows that the turn touches.
2. **Read**, after everything is merged: what the expressions are over, of the touched rows that are
   there still; rows of sessions may have become one.
3. **Write** what they evaluate to into the columns that merges leave alone.
So a stored value is a function of its merged row. What was told of a row is never evaluated again.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headrace.plan.tables import Table
from headrace.store.base import ROW, Evaluate
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import GROUP, physical, quote
from headrace.store.duckdb.tables.reading import live
from headrace.store.duckdb.tables.touching import Touched, find_touched, key_names, range_of

__all__ = ["Evaluating"]


class Evaluating:
    """The rows of one turn of which Spark evaluates something."""

    def __init__(self, file: DuckDBFile, deltas: Mapping[Table, Sequence[pa.Table]]) -> None:
        self._file = file
        self._touched = {
            table: find_touched(file, table, found, f"temp.__evaluated{number}")
            for number, (table, found) in enumerate(deltas.items())
            if table.evaluated and any(delta.num_rows for delta in found)
        }

    def write(self, evaluate: Evaluate | None) -> None:
        """Let touched rows be evaluated, and keep what comes of it. MergeFailed."""
        rows = {table: self._read(table, keys) for table, keys in self._touched.items()}
        rows = {table: found for table, found in rows.items() if found.num_rows}
        if rows:
            assert evaluate is not None, "a table that Spark evaluates is committed with it"
            for table, values in evaluate(rows).items():
                self._write(table, values)
        for touched in self._touched.values():
            self._file.run(f"DROP TABLE {touched.name}")

    def _read(self, table: Table, touched: Touched) -> pa.Table:
        shown = live(table)
        inputs = [
            f"CAST(({shown.references[name]}) AS {type.duckdb}) AS {quote(name)}"
            for name, type in table.evaluated_inputs.items()
        ]
        among = range_of(table, touched)
        keys = zip(shown.keys, key_names(table), strict=False)
        same = [f"{GROUP}.{quote(key)} IS NOT DISTINCT FROM x.{name}" for key, name in keys]
        schema = pa.schema([(name, type.arrow) for name, type in table.evaluated_inputs.items()])
        schema = schema.insert(0, pa.field(ROW, pa.int64()))
        found = self._file.table(
            f"SELECT {', '.join([f'__place AS {ROW}', *inputs])} "
            f"FROM (SELECT *, rowid AS __place FROM {physical(table.name)}{among}) AS {GROUP} "
            f"SEMI JOIN {touched.name} AS x ON {' AND '.join(same) or 'true'}"
        )
        return found.cast(schema)

    def _write(self, table: Table, values: pa.Table) -> None:
        columns = [each.column for each in table.evaluated]
        schema = pa.schema([(ROW, pa.int64()), *((each.name, each.type.arrow) for each in columns)])
        updates = ", ".join(f"{each.name} = n.{each.name}" for each in columns)
        with self._file.registered("__values", values.select(schema.names).cast(schema)) as name:
            self._file.run(
                f"UPDATE {physical(table.name)} AS o SET {updates} FROM {name} AS n "
                f"WHERE o.rowid = n.{ROW}"
            )
