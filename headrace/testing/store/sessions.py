"""The store's suite: tables of sessions, whose rows become one when a turn brings them together."""

# ruff: noqa: D102 (the name of a test is its sentence)

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import faults
from headrace.aggregates.words import Merge
from headrace.model.nodes import Window
from headrace.plan.tables import Table, TableColumn
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.testing.store.samples import StoreSuite, delta, outputs_of, planned, read, turn_of
from headrace.time.placement import placement_of

__all__ = ["SessionContract", "sessions"]

GAP_US = 10_000_000
Session = tuple[datetime, datetime, str | None, int]


def sessions(view: str = "visits", version: str = "v1", *, keyed: bool = True) -> Table:
    """Return the table of a view that counts the records of sessions, by `k`."""
    timestamp, bigint = parse_type("TIMESTAMP"), parse_type("BIGINT")
    keys = (TableColumn("k", parse_type("STRING")),) if keyed else ()
    columns = (
        TableColumn("first_time", timestamp),
        TableColumn("last_time", timestamp, Merge.GREATEST),
        *keys,
        TableColumn("_events", bigint, Merge.COUNT),
    )
    placement = placement_of(Window(GAP_US, "session"))
    return Table(view, version, columns, placement, outputs=outputs_of(columns))


def at(second: float) -> datetime:
    """Return a time around the beginning of 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def found(store: Store, table: Table) -> list[tuple[Any, ...]]:
    """Return the sessions of a table in the order of their first records."""
    return sorted(read(store, table), key=lambda row: (row[0], str(row[2])))


class SessionContract(StoreSuite):
    """Rows of a group that are at most the gap apart are one row, however they came."""

    def merge(self, store: Store, table: Table, epoch: int, turn: int, *rows: object) -> None:
        """Commit one turn with the given pieces."""
        pieces = delta(table, *rows)  # type: ignore[arg-type]
        store.commit(turn_of(planned(epoch, turn), {table: (store.stage(table, pieces),)}))

    def test_a_piece_extends_the_session_that_it_is_at_most_the_gap_away_from(
        self, store: Store
    ) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        self.merge(store, table, epoch, 1, (at(-5), at(5), "a", 2), (at(100), at(100), "a", 1))
        # Exactly the gap apart on either side, and a microsecond more.
        self.merge(store, table, epoch, 2, (at(15), at(16), "a", 1))
        self.merge(store, table, epoch, 3, (at(-15), at(-15), "a", 1))
        self.merge(store, table, epoch, 4, (at(26.000001), at(27), "a", 1))
        assert found(store, table) == [
            (at(-15), at(16), "a", 4),
            (at(26.000001), at(27), "a", 1),
            (at(100), at(100), "a", 1),
        ]

    def test_one_piece_makes_one_session_of_several(self, store: Store) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        self.merge(store, table, epoch, 1, *[(at(s), at(s), "a", 1) for s in (0, 20, 40, 80)])
        self.merge(store, table, epoch, 2, (at(10), at(10), "a", 1), (at(30), at(30), "a", 1))
        assert found(store, table) == [(at(0), at(40), "a", 5), (at(80), at(80), "a", 1)]

    def test_groups_do_not_meet_and_null_is_a_group(self, store: Store) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        self.merge(store, table, epoch, 1, (at(0), at(0), None, 1), (at(1), at(1), "a", 1))
        self.merge(store, table, epoch, 2, (at(2), at(2), None, 1), (at(3), at(3), "b", 1))
        assert found(store, table) == [
            (at(0), at(2), None, 2),
            (at(1), at(1), "a", 1),
            (at(3), at(3), "b", 1),
        ]

    def test_without_keys_all_records_are_one_group(self, store: Store) -> None:
        table = sessions(keyed=False)
        epoch = self.begin(store, table)
        self.merge(store, table, epoch, 1, (at(0), at(3), 2), (at(20), at(20), 1))
        self.merge(store, table, epoch, 2, (at(12), at(12), 1), (at(50), at(50), 1))
        assert found(store, table) == [(at(0), at(20), 4), (at(50), at(50), 1)]

    def test_pieces_of_one_turn_may_come_in_several_deltas(self, store: Store) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        parts = [delta(table, (at(s), at(s), "a", 1)) for s in (0, 18, 9)]
        staged = tuple(store.stage(table, part) for part in parts)
        store.commit(turn_of(planned(epoch, 1), {table: staged}))
        store.commit(turn_of(planned(epoch, 2), {table: ()}))
        assert found(store, table) == [(at(0), at(18), "a", 3)]

    def test_a_merge_that_was_not_committed_left_nothing(self, store: Store) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        self.merge(store, table, epoch, 1, (at(0), at(0), "a", 1))
        faults.arm("before_commit")
        with pytest.raises(faults.Crash):
            self.merge(store, table, epoch, 2, (at(5), at(5), "a", 1))
        assert found(store, table) == [(at(0), at(0), "a", 1)]
        self.merge(store, table, epoch, 2, (at(5), at(5), "a", 1))
        assert found(store, table) == [(at(0), at(5), "a", 2)]

    def test_any_order_of_merges_gives_the_sessions_of_all_pieces(self, store: Store) -> None:
        table = sessions()
        epoch = self.begin(store, table)
        random_numbers = random.Random(7)
        records: list[tuple[str, float]] = []
        for turn in range(1, 41):
            pieces = []
            for _ in range(random_numbers.randint(1, 12)):
                key, time = random_numbers.choice("abc"), random_numbers.randint(-400, 400) * 2.5
                records.append((key, time))
                pieces.append((at(time), at(time), key, 1))
            self.merge(store, table, epoch, turn, *pieces)
            assert found(store, table) == chained(records)


def chained(records: list[tuple[str, float]]) -> list[Session]:
    """Return the sessions of records (key, second), record by record."""
    made: list[Session] = []
    for key, second in sorted(records):
        first, last, group, events = made[-1] if made else (at(0), at(0), None, 0)
        if group == key and at(second) - last <= timedelta(microseconds=GAP_US):
            made[-1] = (first, at(second), key, events + 1)
        else:
            made.append((at(second), at(second), key, 1))
    return sorted(made, key=lambda row: (row[0], str(row[2])))
