"""The keys of a table's rows: its primary key as a JSON object, read out of the row.

    {"card":"a"}    {"shop":1,"day":"2026-01-01"}

Sinks write the same text for the same key (schema/json_rows.py), and the table reads it
(schema/record_keys.py). So all producers put the rows of a key into the same partition.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.definitions import Stream
from headrace.schema.codec import Encoding
from headrace.schema.formats import make_codec
from headrace.schema.json_rows import json_object
from headrace.schema.types import parse_type
from headrace.scratch import calculate

__all__ = ["READ_AS_VALUES", "RowKeyReader"]

#: Types for which each value has exactly one text.
READ_AS_VALUES = ("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL")
_TEXT = parse_type("STRING")


class RowKeyReader:
    """Reads the primary key of rows, for a table whose records have it as their key.

    A row that lacks a part of it has no key: null. To be used by one thread at a time.
    """

    #: Whether a record without a value deletes what its key stands for.
    deletes = True

    def __init__(self, table: Stream) -> None:
        columns = {each.name: each for each in table.columns}
        self._columns = [
            replace(
                columns[name],
                type=columns[name].type if columns[name].type.kind in READ_AS_VALUES else _TEXT,
                nullable=True,
                format=None,
            )
            for name in table.primary_key
        ]
        self._codec = make_codec(Encoding("json", tuple(self._columns)))
        members = [(each.name, f"k{at}", each.type) for at, each in enumerate(self._columns)]
        there = " AND ".join(f"k{at} IS NOT NULL" for at in range(len(members)))
        self._select = (
            f"SELECT CASE WHEN {there} THEN encode({json_object(members)}) END AS key FROM rows"
        )

    @property
    def place(self) -> str:
        """The columns, as people name them."""
        return ", ".join(each.name for each in self._columns)

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the key of each row, in order."""
        found = self._codec.decode(pa.table({"value": values}))
        rows = pa.table({f"k{at}": column for at, column in enumerate(found.rows.columns)})
        keys = calculate(self._select, {"rows": rows})["key"].combine_chunks()
        return pc.if_else(pc.is_valid(keys), keys.cast(pa.binary()), pa.scalar(None, pa.binary()))
