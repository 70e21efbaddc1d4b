"""The store's suite: the rows of written streams, which wait from their turn until published."""

# ruff: noqa: D102 (the name of a test is its sentence)

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headrace import faults
from headrace.errors import MergeFailed
from headrace.ledger.entries import Written, WrittenBy
from headrace.plan.tables import RECORD_KEY, WATERMARK, Output, Table, TableColumn, Target
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.base import MAX_ORDINALS, Store
from headrace.testing.store.samples import StoreSuite, delta, planned, turn_of
from headrace.time.placement import OfRecord

__all__ = ["WrittenContract", "written_table"]

PRODUCER = "headrace.stream:loud<notes"
_EVERYTHING = 1 << 40


def written_table(version: str = "v1", *, ordinals: int = 0, key: str = RECORD_KEY) -> Table:
    """Return the table of a stream of two columns that is written to `out`."""
    types = {name: parse_type(name) for name in ("STRING", "BIGINT", "BINARY")}
    placement = OfRecord(ordinals > 0, ordinals)
    outputs = {"text": "STRING", "n": "BIGINT"}
    columns = [TableColumn(place.name, place.type) for place in placement.columns]
    columns += [TableColumn(f"o{at}", types[each]) for at, each in enumerate(outputs.values())]
    columns += [TableColumn(WATERMARK, types["BIGINT"]), TableColumn(RECORD_KEY, types["BINARY"])]
    shown = [
        Output(name, Reference(f"o{at}", types[each]), types[each])
        for at, (name, each) in enumerate(outputs.items())
    ]
    target = Target("out", key)
    return Table("loud", version, tuple(columns), placement, outputs=tuple(shown), target=target)


def rows_of(table: Table, ends: dict[int, int], *rows: Sequence[object]) -> Written:
    """Return what a turn writes that has read partitions up to these offsets."""
    return Written(table, "notes", PRODUCER, ends, (delta(table, *rows),) if rows else ())


def waiting(store: Store, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of the rows that wait, in order."""
    with store.open() as snapshot:
        found = snapshot.written_rows(max_rows=_EVERYTHING, max_bytes=_EVERYTHING)
        assert snapshot.written_count() == found.num_rows
    return [tuple(row.values()) for row in found.select(list(columns)).to_pylist()]


class WrittenContract(StoreSuite):
    """Rows wait until they are in the log; of two versions the first to come writes a record."""

    def test_rows_become_records_in_the_order_of_their_places(self, store: Store) -> None:
        table = written_table(ordinals=1)
        epoch = self.begin(store)
        written = rows_of(
            table,
            {0: 10, 1: 10},
            (0, 1, 4, 0, "d", None, None, None),
            (1, 0, 4, 0, "c", 3, -7, b"k"),
            (0, 0, 4, 2, "b", 2, -7, b"k"),
            (0, 0, 4, 0, 'a "é"', 1, -7, b"\xff"),
        )
        store.commit(turn_of(planned(epoch, 1), written=(written,)))
        offset = 4 * MAX_ORDINALS
        places = ("producer_id", "source_offset", "sequence", "branch", "ordinals", "watermark_us")
        assert waiting(store, *places) == [
            (f"{PRODUCER}/0", 4, offset, 0, "0", -7),
            (f"{PRODUCER}/0", 4, offset + 1, 0, "2", -7),
            (f"{PRODUCER}/0", 4, offset + 2, 1, "0", -7),
            (f"{PRODUCER}/1", 4, offset, 0, "0", None),
        ]
        said = [(key, json.loads(value)) for key, value in waiting(store, "key", "value")]
        assert said == [
            (b"\xff", {"text": 'a "é"', "n": 1}),
            (b"k", {"text": "b", "n": 2}),
            (b"k", {"text": "c", "n": 3}),
            (None, {"text": "d", "n": None}),
        ]
        assert waiting(store, "topic", "version", "source_topic", "source_partition", "by_key") == [
            ("out", "v1", "notes", partition, False) for partition in (0, 0, 0, 1)
        ]

    @pytest.mark.parametrize(
        ("key", "keys"), [("o0", [b"a", None]), ("o1", [b"12", b"-3"])], ids=["text", "number"]
    )
    def test_a_column_may_be_the_key(
        self, store: Store, key: str, keys: list[bytes | None]
    ) -> None:
        table = written_table(key=key)
        epoch = self.begin(store)
        rows = ((0, 0, "a", 12, None, None), (0, 1, None, -3, None, None))
        store.commit(turn_of(planned(epoch, 1), written=(rows_of(table, {0: 10}, *rows),)))
        assert waiting(store, "key", "branch", "ordinals", "by_key") == [
            (key, None, None, True) for key in keys
        ]

    def test_rows_wait_until_they_are_in_the_log(self, store: Store) -> None:
        table = written_table()
        epoch = self.begin(store)
        for turn in (1, 2):
            rows = [(0, 10 * turn - 5 + n, "a", n, None, None) for n in range(3)]
            written = rows_of(table, {0: 10 * turn}, *rows)
            store.commit(turn_of(planned(epoch, turn), written=(written,)))
        with store.open() as snapshot:
            first = snapshot.written_rows(max_rows=4, max_bytes=_EVERYTHING)
            one = snapshot.written_rows(max_rows=4, max_bytes=1)
        assert [first.num_rows, one.num_rows] == [4, 1]
        store.wrote(first["number"][-1].as_py())
        assert waiting(store, "source_offset") == [(16,), (17,)]
        store.wrote(_EVERYTHING)
        assert waiting(store, "number") == []

    def test_a_turn_that_is_not_committed_writes_nothing(self, store: Store) -> None:
        table = written_table()
        epoch = self.begin(store)
        written = rows_of(table, {0: 10}, (0, 0, "a", 1, None, None))
        faults.arm("before_commit")
        with pytest.raises(faults.Crash):
            store.commit(turn_of(planned(epoch, 1), written=(written,)))
        assert waiting(store, "number") == []
        with store.open() as snapshot:
            assert snapshot.written_by() == []

    def test_a_record_is_written_by_the_version_that_comes_to_it_first(self, store: Store) -> None:
        old, new = written_table("v1"), written_table("v2")
        epoch = self.begin(store)

        def turn(number: int, table: Table, ends: dict[int, int], *offsets: int) -> None:
            rows = [(0, offset, table.version, offset, None, None) for offset in offsets]
            written = rows_of(table, ends, *rows)
            store.commit(turn_of(planned(epoch, number), written=(written,)))

        turn(1, old, {0: 5}, 1, 4)
        turn(2, new, {0: 3}, 0, 1, 2)  # it is built again, and behind
        turn(3, new, {0: 8, 1: 2}, 3, 4, 5, 7)
        turn(4, old, {0: 9}, 8)
        turn(5, old, {0: 9}, 8)
        assert waiting(store, "source_offset", "version") == [
            (1, "v1"), (4, "v1"), (5, "v2"), (7, "v2"), (8, "v1"),
        ]  # fmt: skip
        with store.open() as snapshot:
            assert snapshot.written_by() == [
                WrittenBy("out", f"{PRODUCER}/0", "v1", 8, 9),
                WrittenBy("out", f"{PRODUCER}/1", "v2", 0, 2),
            ]

    def test_what_the_log_would_refuse_is_refused(self, store: Store) -> None:
        table = written_table()
        epoch = self.begin(store)
        large = rows_of(table, {0: 10}, (0, 3, "x" * (1 << 20), 1, None, None))
        with pytest.raises(MergeFailed, match="notes/0@3 has 1048593 bytes as a record") as found:
            store.commit(turn_of(planned(epoch, 1), written=(large,)))
        assert found.value.view == "loud"
        many = rows_of(written_table(ordinals=1), {0: 10}, (0, 0, 3, 0, "a", 1, None, None))
        chunk = many.rows[0].take([0] * (MAX_ORDINALS + 1))
        many = Written(many.table, many.source, many.producer, many.ends, (chunk,))
        with pytest.raises(MergeFailed, match="notes/0@3 becomes more than 1048576 rows"):
            store.commit(turn_of(planned(epoch, 1), written=(many,)))
        assert waiting(store, "number") == []
        store.commit(turn_of(planned(epoch, 1), written=()))
