"""Read an export back, and compare it with another one, in bounded memory.

DuckDB is a calculator here: in memory, of which it has MEMORY_LIMIT, and past that in temporary
files of the caller's folder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

import duckdb
import pyarrow as pa

from headrace.errors import StoreError
from headrace.log.base import Partition
from headrace.plan.tables import Table
from headrace.store.duckdb.errors import translated
from headrace.store.duckdb.exporting import EXPORTED_ERRORS, LEDGER, NAME
from headrace.store.duckdb.schema import SCHEMA_VERSION
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.tables.comparing import compare_states, is_exact
from headrace.store.duckdb.tables.names import physical, quote
from headrace.store.duckdb.tables.reading import live
from headrace.wording import counted

__all__ = ["Compared", "Exported", "OpenExport", "opening_exports"]

MEMORY_LIMIT = "512MB"
_NAMED = 5  # records, where a sentence names some


class Compared(NamedTuple):
    """How many rows were compared, and how they differ, as sentences."""

    rows: int
    differences: list[str]


class Exported:
    """The content of an export. `snapshot` answers what it has of the ledger."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._rows: tuple[str, pa.RecordBatchReader] | None = None
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE SCHEMA headrace")
        for name, reader in _streams(path):
            if name not in (*LEDGER, EXPORTED_ERRORS):
                self._rows = name, reader  # the last one; it is read when it is compared
                break
            _load(connection, f"headrace.{name}", reader)
            if name == "engine":
                self._check_version(path)
        self.snapshot = DuckDBSnapshot(connection)

    def _check_version(self, path: Path) -> None:
        found = self._connection.execute("SELECT schema_version FROM headrace.engine").fetchall()
        if found != [(SCHEMA_VERSION,)]:
            raise StoreError(
                f"{path}: the engine that exported this is of another release. Use its release of "
                f"`headrace`, or restart the engine with this one."
            )

    def compare_rows(self, table: Table, replayed: Path) -> Compared:
        """Compare the exported table with the same one of another export, key by key, once."""
        assert self._rows is not None
        name, rows = self._rows
        assert name == table.name
        ours, theirs = _Counting(rows), _Counting(_rows_of(replayed, name))
        with translated():
            differences = compare_states(table, ours.reader(), theirs.reader(), self._connection)
        if not differences and ours.rows != theirs.rows:
            # Each key finds its match, so one of them stands there more than once.
            differences = [
                f"view {table.view}: the table has {counted(ours.rows, 'row')}, the log makes "
                f"{theirs.rows:,}: a key stands twice"
            ]
        return Compared(ours.rows, differences)

    def compare_shown(self, table: Table, replayed: Path) -> Compared:
        """Compare the rows that readers of the exported table see with those of another export.

        What is behind them is not compared: which changes a row had before, and rows that are gone.
        """
        assert self._rows is not None
        name, rows = self._rows
        assert name == table.name
        shown = live(table).select
        outputs = ", ".join(quote(output.name) for output in table.outputs)
        run = self._connection.execute
        with translated(), self._tables("ours", "theirs"):
            for relation, reader in (("ours", rows), ("theirs", _rows_of(replayed, name))):
                _load(self._connection, physical(name), reader)
                run(f"CREATE TEMP TABLE {relation} AS SELECT {outputs} FROM ({shown})")
                run(f"DROP TABLE {physical(name)}")
            differences = []
            for sentence, one, other in (
                ("has a row that the log does not make", "ours", "theirs"),
                ("lacks a row that the log makes", "theirs", "ours"),
            ):
                apart = run(
                    f"SELECT CAST(e AS VARCHAR) FROM (FROM {one} EXCEPT ALL FROM {other}) e "
                    f"ORDER BY 1"
                ).fetchmany(_NAMED)
                differences += [
                    f"table {table.view}: the table {sentence}: {row}" for (row,) in apart
                ]
            return Compared(self._count("SELECT count(*) FROM ours"), differences)

    def compare_errors(self, table: Table, replayed: Path) -> Compared:
        """Compare the errors of the exported table with those of another export."""
        if table.errors_name is None or not is_exact(table):
            return Compared(0, [])  # which rows fail may depend on how sums over DOUBLE are rounded
        with translated():
            _load(self._connection, "replayed_errors", _rows_of(replayed, EXPORTED_ERRORS))
            ours, theirs = f"FROM headrace.{EXPORTED_ERRORS}", "FROM replayed_errors"
            count = self._count(f"SELECT count(*) {ours}")
            differences = []
            for sentence, one, other in (
                ("has an error that the log does not make", ours, theirs),
                ("lacks an error that the log makes", theirs, ours),
            ):
                apart = self._connection.execute(
                    f"SELECT CAST(e AS VARCHAR) FROM ({one} EXCEPT ALL {other}) e ORDER BY 1"
                ).fetchmany(_NAMED + 1)
                differences += [
                    f"view {table.view}: {table.view}.errors {sentence}: {row}"
                    for (row,) in apart[:_NAMED]
                ]
            self._connection.execute("DROP TABLE replayed_errors")
        return Compared(count, differences)

    @contextmanager
    def comparing_with(self, replayed: Path) -> Iterator[None]:
        """Take in another export's ledger; the two below compare what is to be published."""
        with translated():
            self._connection.execute("CREATE SCHEMA replayed")
            for name, reader in _streams(replayed):
                _load(self._connection, f"replayed.{name}", reader)
        try:
            yield
        finally:
            self._connection.execute("DROP SCHEMA replayed CASCADE")

    def compare_sides(
        self,
        where: str,
        producer_id: str,
        source: str,
        ends: Mapping[int, int],
        published: Iterable[pa.Table],
    ) -> Compared:
        """Compare what a side topic holds, and what waits for it, with what the log gives.

        `published` has the columns `partition` and `offset` of the source; `ends` says how far its
        partitions were read: a running engine may have published more since.
        """
        run = self._connection.execute
        with translated(), self._tables("ends", "published", "expected", "known"):
            run("CREATE TEMP TABLE ends (partition INTEGER, end_offset BIGINT)")
            run("INSERT INTO ends SELECT unnest(?), unnest(?)", [[*ends], [*ends.values()]])
            self._gather(
                "published",
                "partition INTEGER, source_offset BIGINT",
                published,
                "e.partition = p.partition AND p.source_offset < e.end_offset",
            )
            waits = (
                "SELECT source_partition AS partition, unnest(offsets) AS source_offset "
                "FROM {}.outbox WHERE producer_id = ? AND source_topic = ?"
            )
            of_ends = "SELECT * FROM ({}) SEMI JOIN ends USING (partition)"
            expected = of_ends.format(waits.format("replayed"))
            run(f"CREATE TEMP TABLE expected AS {expected}", [producer_id, source])
            found, held = run(
                "SELECT (SELECT count(*) FROM expected), (SELECT count(*) FROM published)"
            ).fetchall()[0]
            if not found and not held:
                return Compared(0, [])  # as most are, and the rest takes as long again
            run(
                f"CREATE TEMP TABLE known AS FROM published UNION ALL {waits.format('headrace')}",
                [producer_id, source],
            )
            differences = []
            twice = self._count(
                "SELECT count(*) - count(DISTINCT (partition, source_offset)) FROM published"
            )
            if twice:
                differences.append(f"{where}: holds {counted(twice, 'record')} twice")
            for sentence, one, other in (
                ("lacks", "expected", "known"),
                ("should not hold", "published", "expected"),
            ):
                apart = f"FROM {one} ANTI JOIN {other} USING (partition, source_offset)"
                if count := self._count(f"SELECT count(*) {apart}"):
                    some = run(
                        f"SELECT partition || '@' || source_offset {apart} "
                        f"ORDER BY partition, source_offset LIMIT {_NAMED}"
                    ).fetchall()
                    named = ", ".join(f"{source}/{place}" for (place,) in some)
                    many = counted(count, "record")
                    differences.append(f"{where}: {sentence} {many}, {named} ...")
        return Compared(found, differences)

    def compare_written(
        self,
        table: Table,
        ends: Mapping[Partition, int],
        published: Iterable[pa.Table],
        *,
        complete: bool,
    ) -> Compared:
        """Compare the topic of a written stream, and what waits for it, with what the log gives.

        `published` are all rows in the topic that a stream was written to, with where they came
        from, as texts. If the topic is not `complete`, none can be missed.
        """
        assert table.target is not None
        where = f"topic {table.target.topic}, of stream {table.view}"
        run = self._connection.execute
        mine = [table.target.topic, table.version]
        place = "source_topic, source_partition, source_offset, branch, ordinals"
        with translated(), self._tables("ends", "published", "expected", "known"):
            run("CREATE TEMP TABLE ends (topic VARCHAR, partition INTEGER, end_offset BIGINT)")
            columns = [list(each) for each in zip(*ends, strict=True)] or [[], []]
            run(
                "INSERT INTO ends SELECT unnest(?), unnest(?), unnest(?)",
                [*columns, [*ends.values()]],
            )
            self._gather(
                "published",
                "version VARCHAR, source_topic VARCHAR, source_partition INTEGER, "
                "source_offset BIGINT, branch VARCHAR, ordinals VARCHAR, key BLOB, value BLOB",
                published,
                "e.topic = p.source_topic AND e.partition = p.source_partition "
                "AND p.source_offset < e.end_offset",
            )
            rows = (
                "SELECT producer_id, source_topic, source_partition, source_offset, "
                "CAST(branch AS VARCHAR) AS branch, ordinals, key, encode(value) AS value "
                "FROM {}.written_rows WHERE topic = ? AND version = ?"
            )
            run(f"CREATE TEMP TABLE expected AS {rows.format('replayed')}", mine)
            run(
                f"CREATE TEMP TABLE known AS SELECT {place} FROM published WHERE version = ? "
                f"UNION ALL SELECT {place} FROM ({rows.format('headrace')})",
                [table.version, *mine],
            )
            compared = self._count("SELECT count(*) FROM expected")
            differences = []
            twice = self._count(
                f"SELECT count(*) - (SELECT count(*) FROM (SELECT DISTINCT {place} FROM published))"
                " FROM published"
            )
            if twice:
                differences.append(f"{where}: holds {counted(twice, 'row')} twice")
            wrong = (
                f"FROM published p WHERE version = '{table.version}' AND NOT EXISTS "
                f"(FROM expected e WHERE {_same(f'{place}, key, value', 'e', 'p')})"
            )
            differences += self._named(where, "should not hold", wrong)
            if complete:
                # Those that the version has to have written: behind what others wrote.
                due = (
                    "FROM expected e WHERE EXISTS (FROM headrace.written_by w "
                    f"WHERE w.topic = '{table.target.topic}' AND w.version = '{table.version}' "
                    "AND w.producer_id = e.producer_id AND e.source_offset >= w.from_offset "
                    "AND e.source_offset < w.next_offset) "
                    "AND e.source_offset > coalesce((SELECT max(o.source_offset) FROM published o "
                    f"WHERE o.version <> '{table.version}' AND o.source_topic = e.source_topic "
                    "AND o.source_partition = e.source_partition), -1) "
                    f"AND NOT EXISTS (FROM known k WHERE {_same(place, 'k', 'e')})"
                )
                differences += self._named(where, "lacks", due)
        return Compared(compared, differences)

    def _named(self, where: str, sentence: str, rows: str) -> list[str]:
        count = self._count(f"SELECT count(*) {rows}")
        if not count:
            return []
        some = self._connection.execute(
            "SELECT source_topic || '/' || source_partition || '@' || source_offset "
            f"{rows} ORDER BY source_topic, source_partition, source_offset LIMIT {_NAMED}"
        ).fetchall()
        named = ", ".join(each for (each,) in some)
        return [f"{where}: {sentence} {counted(count, 'row')}, {named} ..."]

    def _gather(self, name: str, columns: str, batches: Iterable[pa.Table], is_read: str) -> None:
        """Make a table of the rows `p` that are before the `ends` e."""
        self._connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
        for batch in batches:
            self._connection.register("__batch", batch)
            self._connection.execute(
                f"INSERT INTO {name} SELECT p.* FROM __batch p SEMI JOIN ends e ON {is_read}"
            )
            self._connection.unregister("__batch")

    def _count(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchall()[0][0])

    @contextmanager
    def _tables(self, *names: str) -> Iterator[None]:
        """Drop temporary tables at the end."""
        try:
            yield
        finally:
            self._connection.execute("".join(f"DROP TABLE IF EXISTS {name};" for name in names))


#: Opens an export. StoreError.
OpenExport: TypeAlias = Callable[[Path], AbstractContextManager[Exported]]


@contextmanager
def opening_exports(folder: Path) -> Iterator[OpenExport]:
    """Give what opens exports; what does not fit into memory goes to `folder`.

    All of them share one DuckDB, since it takes 17 ms to start one.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(folder / "spilled"),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    numbers = count()
    with translated(), duckdb.connect(config=config) as calculator:

        @contextmanager
        def open_export(path: Path) -> Iterator[Exported]:
            name = f"export_{next(numbers)}"
            with translated():
                calculator.execute(f"ATTACH ':memory:' AS {name}")
                try:
                    with calculator.cursor() as connection:
                        connection.execute(f"USE {name}")
                        yield Exported(path, connection)
                finally:
                    calculator.execute(f"DETACH {name}")

        yield open_export


class _Counting:
    """Counts the rows that a reader hands out."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self.rows = 0

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._reader.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            self.rows += batch.num_rows
            yield batch


def _streams(path: Path) -> Iterator[tuple[str, pa.RecordBatchReader]]:
    """Yield the streams of an export, each to be read to its end before the next one."""
    source = pa.memory_map(str(path))  # open for as long as a reader of it is there
    while source.tell() < source.size():
        reader = pa.ipc.open_stream(source)
        yield reader.schema.metadata[NAME].decode(), reader


def _rows_of(path: Path, table: str) -> pa.RecordBatchReader:
    for name, reader in _streams(path):
        if name == table:
            return reader
        for _ in reader:
            pass
    raise StoreError(f"{path}: the export lacks table {table}")


def _load(connection: duckdb.DuckDBPyConnection, name: str, reader: pa.RecordBatchReader) -> None:
    connection.register("__stream", reader)
    connection.execute(f"CREATE TABLE {name} AS FROM __stream")
    connection.unregister("__stream")


def _same(columns: str, one: str, other: str) -> str:
    return " AND ".join(
        f"{one}.{column} IS NOT DISTINCT FROM {other}.{column}" for column in columns.split(", ")
    )
