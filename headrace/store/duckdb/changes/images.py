"""Images: rows of a view as its readers see them, typed.

A table of images has the columns `__r0`, `__r1`, ... that tell rows apart, `k0`... and `c0`... as
tables of changes have them, and `_closed`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from headrace.plan.tables import Table
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import GROUP, quote
from headrace.store.duckdb.tables.placing import Near
from headrace.store.duckdb.tables.reading import Shown, shown_then
from headrace.store.duckdb.tables.touching import (
    Touched,
    key_names,
    keys_of,
    measure_keys,
    source_among,
)

__all__ = ["count_near", "images", "read_images", "read_near", "take_images"]

_CHOSEN = "temp.__chosen"
_ALL = "temp.__all_keys"


def take_images(file: DuckDBFile, shown: Shown, into: str, *, among: Touched | None = None) -> None:
    """Make a table of images: of all rows or, with `among`, of those whose keys it has."""
    if among is not None:
        with _images_among(file, shown, among) as query:
            file.run(f"CREATE TEMP TABLE {into} AS {query}")
    elif shown.table.placement.overlaps:
        # As later images are made: what leaves must equal what came, every digit of it.
        everything = shown.placing.all_keys(shown.table)
        file.run(f"CREATE TEMP TABLE {_ALL} AS SELECT {keys_of(shown.table)} FROM {everything}")
        take_images(file, shown, into, among=measure_keys(file, shown.table, _ALL))
        file.run(f"DROP TABLE {_ALL}")
    else:
        file.run(f"CREATE TEMP TABLE {into} AS {images(shown)}")


def read_images(file: DuckDBFile, shown: Shown, among: Touched) -> pa.Table:
    """Return the images of the rows whose keys a table has; of few."""
    with _images_among(file, shown, among) as query:
        return file.few(query)


def count_near(file: DuckDBFile, table: Table, near: Near) -> int:
    """Return how many rows a test holds for."""
    # No LIMIT: DuckDB 2.0.0 now and then leaves out a row that the transaction itself has written.
    source = shown_then(table).source
    [(count,)] = file.rows(f"SELECT count(*) FROM {source} WHERE {near.test}", near.values)
    return int(count)


def read_near(file: DuckDBFile, table: Table, near: Near, watermark_us: int) -> pa.Table:
    """Return the images of the rows that a test holds for.

    Rows are closed as they are when W is `watermark_us`.
    """
    shown = shown_then(table)
    chosen = f"SELECT * FROM {shown.source} WHERE {near.test}"
    values = {**near.values, **shown.parameters(watermark_us)}
    source = f"({chosen})"
    if shown.condition:
        # MATERIALIZED: else HAVING is evaluated first, for all rows.
        source = f"(WITH near AS MATERIALIZED ({chosen}) FROM near)"
    return file.few(images(shown, f"{source} AS {GROUP}"), values)


@contextmanager
def _images_among(file: DuckDBFile, shown: Shown, among: Touched) -> Iterator[str]:
    """Give the query for images of some rows."""
    source = source_among(shown.table, among)
    if not shown.condition:
        yield images(shown, f"{source} AS {GROUP}")
        return
    # A join is no obstacle to HAVING: the store evaluates it first, for all rows.
    file.run(f"CREATE TEMP TABLE {_CHOSEN} AS SELECT {GROUP}.* FROM {source} AS {GROUP}")
    yield images(shown, f"{_CHOSEN} AS {GROUP}")
    file.run(f"DROP TABLE {_CHOSEN}")


def images(shown: Shown, source: str | None = None) -> str:
    """Return the query for images of all rows, or those of another source."""
    table, references = shown.table, shown.references
    parts = [f"{references[part.reference]} AS __k{at}" for at, part in enumerate(table.key)]
    inner = ", ".join([keys_of(table), *parts, *shown.columns])
    key = [f"__k{at} AS k{at}" for at in range(len(table.key))]
    outputs = [f"{quote(output.name)} AS c{at}" for at, output in enumerate(table.outputs)]
    outer = ", ".join([*key_names(table), *key, *outputs, "_closed"])
    rows = source or f"{shown.source} AS {GROUP}"
    return f"SELECT {outer} FROM (SELECT {inner} FROM {rows}{shown.condition})"
