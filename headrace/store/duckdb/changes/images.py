"""Images: rows of a view as its readers see them, typed, in temporary tables.

A table of images has the columns `__r0`, `__r1`, ... that tell rows apart, `k0`... and `c0`... as
tables of changes have them, and `_closed`.
"""

from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import GROUP, quote
from headrace.store.duckdb.tables.reading import Shown
from headrace.store.duckdb.tables.touching import key_names, keys_of, source_among

__all__ = ["images", "take_images"]

_CHOSEN = "temp.__chosen"
_ALL = "temp.__all_keys"


def take_images(file: DuckDBFile, shown: Shown, into: str, *, among: str | None = None) -> None:
    """Make a table of images: of all rows or, with `among`, of those whose keys it has."""
    source, made = f"{shown.source} AS {GROUP}", []
    if among is None and shown.table.placement.overlaps:
        # As later images are made: what leaves must equal what came, every digit of it.
        everything = shown.placing.all_keys(shown.table)
        file.run(f"CREATE TEMP TABLE {_ALL} AS SELECT {keys_of(shown.table)} FROM {everything}")
        among = _ALL
        made.append(_ALL)
    if among is not None:
        source = f"{source_among(file, shown.table, among)} AS {GROUP}"
        if shown.condition:
            # A join is no obstacle to HAVING: the store evaluates it first, for all rows.
            file.run(f"CREATE TEMP TABLE {_CHOSEN} AS SELECT {GROUP}.* FROM {source}")
            source = f"{_CHOSEN} AS {GROUP}"
            made.append(_CHOSEN)
    file.run(f"CREATE TEMP TABLE {into} AS {images(shown, source)}")
    for name in made:
        file.run(f"DROP TABLE {name}")


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
