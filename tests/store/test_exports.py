"""Exports of a store, and how two of them are compared: in bounded memory, every difference found.

Method: tables many times as large as the memory that comparing them gets, with one row changed.
"""

import io
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headrace.errors import StoreError
from headrace.plan.tables import Table
from headrace.store.duckdb import exported as exported_module
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.opening import opening_exports
from headrace.testing.store.samples import counts, delta, holding, planned, stream_holding, turn_of

TABLE = counts("hits")


def made(path: Path, rows: pa.Table) -> Path:
    """Return the export of a store whose table has these rows."""
    store = DuckDBStore(path.with_suffix(".duckdb"))
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(TABLE)], {})
    store.prepare(TABLE)
    store.commit(turn_of(planned(epoch, 1), {TABLE: (rows,)}))
    with store.open() as snapshot, path.open("wb") as sink:
        snapshot.export(sink, TABLE.name)
    store.close()
    return path


def large(table: Table, count: int) -> pa.Table:
    random = Random(0)
    keys = [random.randbytes(100).hex() for _ in range(count)]
    numbers = pa.array(range(count))
    schema = pa.schema([(each.name, each.type.arrow) for each in table.columns])
    return pa.table([keys, numbers, numbers, numbers, numbers], schema.names).cast(schema)


def test_tables_larger_than_memory_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_module, "MEMORY_LIMIT", "60MB")
    rows = large(TABLE, 200_000)  # 50 MB each
    ours = made(tmp_path / "ours", rows)
    changed = pa.concat_tables([rows.slice(0, 199_999), delta(TABLE, ("other", 1, 1, 1, 1))])
    theirs = made(tmp_path / "theirs", changed)
    spilled = tmp_path / "spilled"
    with opening_exports(tmp_path) as open_export, open_export(ours) as exported:
        found = exported.compare_rows(TABLE, theirs)
    assert found.rows == 200_000
    assert sorted(sentence.partition(":")[2][:39] for sentence in found.differences) == [
        " the table has a row that the log does ",
        " the table lacks a row that the log mak",
    ]
    assert not spilled.exists() or not list(spilled.iterdir())


def test_many_differences_are_counted_and_some_are_shown(tmp_path: Path) -> None:
    rows = [[f"{n}", 1, 1, 1, 1] for n in range(2_000)]
    ours = made(tmp_path / "ours", delta(TABLE, *rows))
    theirs = made(tmp_path / "theirs", delta(TABLE, *([key, 2, 1, 1, 1] for key, *_ in rows)))
    with opening_exports(tmp_path) as open_export, open_export(ours) as exported:
        found = exported.compare_rows(TABLE, theirs)
    assert len(found.differences) == 6
    assert found.differences[-1] == "view hits: 1995 more rows differ"


def test_an_export_says_which_position_its_rows_stand_for(tmp_path: Path) -> None:
    path = made(tmp_path / "ours", delta(TABLE, ("a", 1, 1, 1, 1)))
    with opening_exports(tmp_path) as open_export, open_export(path) as exported:
        (place,) = exported.snapshot.progress("main").values()
        assert place.offset == 10
        assert exported.snapshot.units() == {"main": 1}
        assert [held.name for held in exported.snapshot.holdings()] == ["clicks", "hits"]


def test_an_export_of_another_release_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "ours", delta(TABLE, ("a", 1, 1, 1, 1)))
    monkeypatch.setattr(exported_module, "SCHEMA_VERSION", 99)
    with (
        pytest.raises(StoreError, match=r"of another release\. Use its release"),
        opening_exports(tmp_path) as open_export,
        open_export(path),
    ):
        pass


def test_an_export_that_a_commit_ends_is_told_as_one(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(TABLE)], {})
    store.prepare(TABLE)
    store.commit(turn_of(planned(epoch, 1), {TABLE: (large(TABLE, 300_000),)}))

    class Sink(io.BytesIO):
        def write(self, data: object) -> int:
            store._file.outside.end()  # what a commit does that lacks memory
            return super().write(data)  # type: ignore[arg-type]

    with store.open() as snapshot, pytest.raises(StoreError, match="was ended: a commit needed"):
        snapshot.export(Sink(), TABLE.name)
    with store.open() as snapshot:
        snapshot.export(io.BytesIO(), TABLE.name)
    store.close()
