"""The store's suite: expressions over aggregates that fail, or that it does not evaluate itself."""

# ruff: noqa: D102 (the name of a test is its sentence)

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from headrace.aggregates.words import Merge
from headrace.errors import MergeFailed
from headrace.plan.tables import Evaluated, Having, KeyPart, Output, Table, TableColumn
from headrace.plan.terms import Literal, Operation, Operator, Reference
from headrace.schema.types import parse_type
from headrace.store.base import ROW, Store
from headrace.testing.store.samples import StoreSuite, delta, planned, turn_of
from headrace.time.placement import Forever

__all__ = ["FailingContract", "shares"]

_BIGINT, _DOUBLE, _STRING = map(parse_type, ("BIGINT", "DOUBLE", "STRING"))
_EVENTS = Reference("_events", _BIGINT)


def _literal(number: int) -> Literal:
    return Literal(str(number), type=_BIGINT)


def _share(total: int, less: int) -> Operation:
    """Return `total / (_events - less)`."""
    by = Operation(Operator.SUBTRACT, (_EVENTS, _literal(less)), _BIGINT)
    return Operation(Operator.DIVIDE, (_literal(total), by), _DOUBLE)


def shares(version: str = "v1", *, less: int = 2) -> Table:
    """Return a table by `k` whose rows fail where as many records were counted, or three."""
    columns = (TableColumn("k", _STRING), TableColumn("_events", _BIGINT, Merge.COUNT))
    above = Operation(Operator.GREATER, (_share(6, 3), _literal(-9)), parse_type("BOOLEAN"))
    return Table(
        "shares",
        version,
        columns,
        Forever(),
        outputs=(
            Output("k", Reference("k", _STRING), _STRING, "k"),
            Output("share", _share(6, less), _DOUBLE, "6 / (n - 2)"),
        ),
        having=Having(above, "6 / (n - 3) > -9"),
        key=(KeyPart("k", "k", _STRING),),
    )


def _named() -> Table:
    """Return a table by `k` whose output `name` somebody else evaluates."""
    name = Evaluated("s0", "f(k, n)", _STRING, (("k", _STRING), ("_events", _BIGINT)), "o1")
    plain = shares()
    outputs = (plain.outputs[0], Output("name", Reference("s0", _STRING), _STRING, "f(k, n)"))
    return replace(plain, outputs=outputs, having=None, evaluated=(name,))


class _Evaluating:
    """Names rows after their key and count, fails where that is 3, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[set[tuple[str, int]]] = []

    def __call__(self, rows: Mapping[Table, pa.Table]) -> dict[Table, pa.Table]:
        found = {}
        for table, given in rows.items():
            pairs = list(zip(given["k"].to_pylist(), given["_events"].to_pylist(), strict=True))
            self.given.append(set(pairs))
            values = [None if n == 3 else {"v": f"{k}{n}"} for k, n in pairs]
            type = pa.struct([("v", pa.string())])
            found[table] = pa.table({"s0": pa.array(values, type), ROW: given[ROW]})
        return found


def _read(store: Store, name: str) -> list[dict[str, Any]]:
    with store.open() as snapshot:
        rows: list[dict[str, Any]] = snapshot.query(f'SELECT * FROM "{name}"').to_pylist()
    return sorted(rows, key=str)


class FailingContract(StoreSuite):
    """Reading never fails: rows that do are errors, until their states change."""

    def test_a_row_that_fails_is_an_error_until_its_states_change(self, store: Store) -> None:
        table = shares()
        epoch = self.begin(store, table)
        rows = delta(table, ("a", 1), ("b", 2), ("c", 3))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
        assert [(row["k"], row["share"]) for row in _read(store, "shares")] == [("a", -6.0)]
        assert _read(store, "shares.errors") == [
            {"k": "b", "error": "share: 6 / (n - 2) fails: division by zero"},
            {"k": "c", "error": "HAVING: 6 / (n - 3) > -9 fails: division by zero"},
        ]
        with store.open() as snapshot:
            assert snapshot.error_rows([table.name, "other"]) == {table.name: 2}
        rows = delta(table, ("a", 1), ("b", 2))
        store.commit(turn_of(planned(epoch, 2), {table: (rows,)}))
        assert [row["k"] for row in _read(store, "shares")] == ["b"]
        assert [row["k"] for row in _read(store, "shares.errors")] == ["a", "c"]

    def test_errors_are_swapped_with_their_view(self, store: Store) -> None:
        table, edited = shares(), shares("v2", less=4)
        epoch = self.begin(store, table)
        rows = delta(table, ("b", 2), ("d", 4))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
        unit = self.build(store, epoch, edited, rows=delta(edited, ("b", 2), ("d", 4)))
        assert [row["k"] for row in _read(store, "shares.errors")] == ["b"]
        store.show(epoch, unit, [edited])
        assert [row["k"] for row in _read(store, "shares.errors")] == ["d"]
        with store.open() as snapshot:
            assert snapshot.error_rows([table.name, edited.name]) == {edited.name: 1}

    def test_somebody_else_evaluates_the_merged_rows_that_a_turn_changed(
        self, store: Store
    ) -> None:
        table, evaluate = _named(), _Evaluating()
        epoch = self.begin(store, table)
        rows = delta(table, ("a", 1), ("b", 1), (None, 1))
        store.commit(turn_of(planned(epoch, 1), {table: (rows,)}), evaluate)
        deltas = (delta(table, ("b", 1)), delta(table, ("b", 1), ("c", 1)))
        store.commit(turn_of(planned(epoch, 2), {table: deltas}), evaluate)
        assert evaluate.given == [{("a", 1), ("b", 1), (None, 1)}, {("b", 3), ("c", 1)}]
        found = {row["k"]: row["name"] for row in _read(store, "shares")}
        assert found == {"a": "a1", None: "None1", "c": "c1"}
        assert _read(store, "shares.errors") == [{"k": "b", "error": "name: f(k, n) fails"}]
        # A turn that changes nothing asks nothing.
        store.commit(turn_of(planned(epoch, 3), {table: ()}), evaluate)
        assert len(evaluate.given) == 2

    def test_a_turn_whose_rows_cannot_be_evaluated_is_not_committed(self, store: Store) -> None:
        table = _named()
        epoch = self.begin(store, table)

        def fail(_rows: Mapping[Table, pa.Table]) -> dict[Table, pa.Table]:
            raise MergeFailed("it cannot be", view=table.view)

        turn = turn_of(planned(epoch, 1), {table: (delta(table, ("a", 1)),)})
        with pytest.raises(MergeFailed, match="it cannot be"):
            store.commit(turn, fail)
        assert _read(store, "shares") == []
        store.commit(turn, _Evaluating())
        assert [row["name"] for row in _read(store, "shares")] == ["a1"]
