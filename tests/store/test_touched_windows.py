"""Windows of panes that a turn touches: the same rows as all windows have, for what they cost.

Method: random panes, with rows that were late for some windows, in every kind of overlapping window
and with every merge. The rows of some keys and windows must be those of the whole source. Two
sources that differ in other rows must give the same digits. How many rows the store's operators
pass on says what it costs.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from soaking import seeded, times

from headrace.aggregates.words import Merge
from headrace.ledger.following import relation_of
from headrace.plan.tables import KeyPart, Table, TableColumn
from headrace.schema.types import parse_type
from headrace.store.duckdb.changes.layout import changes_table, create_changes
from headrace.store.duckdb.changes.making import ChangeMaker
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.schema import SCHEMA
from headrace.store.duckdb.tables.merging import differs
from headrace.store.duckdb.tables.names import physical, quote
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.statements import create, merge
from headrace.store.duckdb.tables.touching import (
    key_names,
    keys_of,
    measure_keys,
    same_keys,
    source_among,
)
from headrace.testing.store.laws import MERGES
from headrace.testing.store.samples import delta, outputs_of
from headrace.time.clocks import NEVER
from headrace.time.placement import InPanes
from headrace.time.windows import Cut

BIGINT = parse_type("BIGINT")
AMONG = "temp.__among"
DAY_US = 86_400_000_000


def hopping(size: int, hop: int, *, offset: int = 0, zone: str | None = None) -> Cut:
    return Cut(size, hop, offset, cumulative=False, overlaps=True, zone=zone)


CUTS = {
    "hopping": hopping(30, 10),
    "hopping with an offset": hopping(30, 10, offset=7),
    "hopping, no multiple of the slide": hopping(25, 10),
    "hopping, many panes in a slide": hopping(35, 30),
    "hopping, blocks of more than one cell": hopping(40, 1),
    "hopping, cells of cells": hopping(300, 1),
    "hopping, a power of the cell": hopping(16, 1),
    "hopping by days of a zone": hopping(7, 2, zone="Europe/Berlin"),
    "cumulative": Cut(60, 10, 0, cumulative=True, overlaps=True, zone=None),
    "cumulative, blocks of more than one cell": Cut(
        200, 5, 3, cumulative=True, overlaps=True, zone=None
    ),
}


#: For tests that ask which windows there are: a plan with a state for every merge takes ten times
#: as long to make.
FEW_MERGES = (Merge.ADD_SIZED,)


def panes_table(
    cut: Cut,
    keys: Sequence[str] = ("STRING", "INT"),
    *,
    merges: Sequence[Merge] = tuple(MERGES),
    retention_us: int | None = None,
) -> Table:
    """Return a table of panes with a state for each of the merges."""
    columns = (
        TableColumn("pane", BIGINT),
        TableColumn("first_window", BIGINT),
        *(TableColumn(f"k{at}", parse_type(name)) for at, name in enumerate(keys)),
        TableColumn("_events", BIGINT, Merge.COUNT),
        *(TableColumn(merge.value, parse_type(MERGES[merge][0]), merge, 3) for merge in merges),
    )
    return Table("hits", "v1", columns, InPanes(cut), retention_us=retention_us)


def found_among(file: DuckDBFile, table: Table) -> str:
    """Return the relation of the rows whose keys are asked for."""
    return source_among(table, measure_keys(file, table, AMONG))


@dataclass
class Panes:
    """A file with one table of panes."""

    file: DuckDBFile
    table: Table

    def fill(self, rows: Sequence[Sequence[object]]) -> None:
        with self.file.registered("__rows", delta(self.table, *rows)) as name:
            self.file.run(f"INSERT INTO {physical(self.table.name)} FROM {name}")

    def ask(self, query: str) -> None:
        """Make the table of keys that are asked for."""
        self.file.run(f"CREATE OR REPLACE TEMP TABLE {AMONG} AS {query}")

    def differences(self) -> list[tuple[Any, ...]]:
        """Return the rows that are not the same as those of the whole source."""
        keys, source = keys_of(self.table), placing_of(self.table).source(self.table)
        found = f"SELECT *, {keys} FROM {found_among(self.file, self.table)}"
        same_place = same_keys("a", "b", key_names(self.table))
        asked = f"SELECT * FROM (SELECT *, {keys} FROM {source}) a"
        asked += f" SEMI JOIN {AMONG} b ON {same_place}"
        tests = ["a.number IS NULL", "b.number IS NULL"]
        tests += ["(a.window_start, a.window_end) <> (b.window_start, b.window_end)"]
        for column in self.table.values:
            name = quote(column.name)
            tests.append(differs(column, f"a.{name}", f"b.{name}"))
        return self.file.rows(
            f"SELECT * FROM ({asked}) a FULL JOIN ({found}) b ON {same_place} "
            f"WHERE {' OR '.join(f'({test})' for test in tests)}"
        )

    def source_columns(self, source: str) -> list[tuple[Any, ...]]:
        return self.file.rows(f"SELECT column_name, column_type FROM (DESCRIBE FROM {source})")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DuckDBFile]:
    file = DuckDBFile(tmp_path / "panes.duckdb")
    with file.transaction():
        for statement in SCHEMA:
            file.run(statement)
        yield file
    file.close()


def panes_of(file: DuckDBFile, table: Table) -> Panes:
    file.run(create(table))
    return Panes(file, table)


def first_windows(cut: Cut, panes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last window of each pane."""
    lasts = cut.last_windows(pa.array(panes, pa.int64()).to_numpy()).tolist()
    if cut.cumulative:
        return [(pane + 1, last) for pane, last in zip(panes, lasts, strict=True)]
    # A window [n * hop, n * hop + size) holds the pane's end when n * hop > end - size - 1.
    firsts = [-(-((pane + 1) * cut.pane - cut.size) // cut.hop) for pane in panes]
    return list(zip(firsts, lasts, strict=True))


def random_rows(draw: random.Random, table: Table, panes: range, count: int) -> list[list[object]]:
    """Return rows with places that are all different; one of three was late for some windows."""
    cut = table.placement.cut
    assert cut is not None
    places: dict[tuple[object, ...], None] = {}
    for pane, (first, last) in zip(
        numbers := [draw.choice(panes) for _ in range(count)],
        first_windows(cut, numbers),
        strict=True,
    ):
        if draw.random() < 1 / 3:
            first = draw.randint(first, last)
        keys = (draw.choice(["a", "b", None]), draw.choice([1, None]))[: len(table.groups)]
        places[(pane, first, *keys)] = None
    merges = [column.merge for column in table.values if column.name != "_events"]
    return [[*place, draw.randint(1, 9), *random_states(draw, merges)] for place in places]


def random_states(draw: random.Random, merges: Sequence[Merge | None]) -> list[object]:
    states: list[object] = []
    for each in merges:
        assert each is not None
        states.append(draw.choice(MERGES[each][1]))
        if each is Merge.ADD_SIZED:
            total = draw.uniform(-1, 1) * 10 ** draw.randint(0, 12)
            states[-1] = draw.choice([{"total": total, "size": abs(total)}, states[-1]])
    return states


@pytest.mark.soak
@pytest.mark.parametrize("number", range(times(1, soaked=2)))
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_windows_asked_for_are_those_of_the_whole_source(
    file: DuckDBFile, cut: Cut, number: int
) -> None:
    # Every cut has draws of its own, so that all counts of keys and starts are among them.
    at = list(CUTS.values()).index(cut) + number
    draw = seeded(at + 1_000 * number)
    keys = ("STRING", "INT")[: at % 3]
    panes = panes_of(file, panes_table(cut, keys))
    width = 3 * cut.size // cut.pane
    # Windows before 1970 have numbers below 0.
    start = (-width // 2, 0, 10_000)[at // 3 % 3]
    panes.fill(random_rows(draw, panes.table, range(start, start + width), count=150))
    source = placing_of(panes.table).source(panes.table)
    asked_keys, names = keys_of(panes.table), ", ".join(key_names(panes.table))
    everything = f"SELECT {asked_keys} FROM {source}"
    panes.ask(everything)
    assert panes.differences() == []
    among = found_among(file, panes.table)
    assert panes.source_columns(among) == panes.source_columns(source)
    # Some of them, some twice, and some that are not there.
    shifted = f"SELECT * REPLACE (__r0 + {width} AS __r0) FROM ({everything})"
    some = f"SELECT * FROM ({everything}) WHERE hash({names}) % 5 = {number % 5}"
    panes.ask(f"{some} UNION ALL {some} UNION ALL {shifted}")
    assert panes.differences() == []
    panes.ask(f"{everything} LIMIT 0")
    assert panes.file.rows(f"FROM {found_among(file, panes.table)}") == []


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_windows_that_left_are_not_there_when_asked_for(file: DuckDBFile, cut: Cut) -> None:
    draw = random.Random(0)
    unit = 1 if cut.zone is None else DAY_US
    table = panes_table(cut, merges=FEW_MERGES, retention_us=cut.size * unit)
    panes = panes_of(file, table)
    width = 4 * cut.size // cut.pane
    panes.fill(random_rows(draw, panes.table, range(width), count=100))
    source = placing_of(panes.table).source(panes.table)
    panes.ask(f"SELECT {keys_of(panes.table)} FROM {source}")
    [(before,)] = file.rows(f"SELECT count(*) FROM {source}")
    left_us = (cut.offset + 3 * cut.size) * unit
    file.run(f"INSERT INTO headrace.view_watermarks VALUES ('hits', 'v1', {left_us})")
    [(after,)] = file.rows(f"SELECT count(*) FROM {source}")
    assert 0 < after < before
    assert panes.differences() == []


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_keys_are_found_without_states(file: DuckDBFile, cut: Cut) -> None:
    draw = random.Random(0)
    panes = panes_of(file, panes_table(cut, merges=FEW_MERGES))
    placing, width = placing_of(panes.table), 4 * cut.size // cut.pane
    panes.fill(random_rows(draw, panes.table, range(width), count=60))
    keys, source = keys_of(panes.table), placing.source(panes.table)

    def rows(relation: str) -> list[tuple[Any, ...]]:
        return file.rows(f"SELECT {keys} FROM {relation} ORDER BY ALL")

    assert rows(placing.all_keys(panes.table)) == rows(source)
    unit = 1 if cut.zone is None else DAY_US
    for _ in range(20):
        before_us = draw.randint(0, 5 * cut.size * unit)
        after_us = before_us + draw.randint(1, cut.size * unit)
        ending = placing.ending(panes.table, before_us, after_us)
        expected = rows(f"{source} WHERE {placing.closing(before_us, after_us)}")
        assert (rows(ending) if ending else []) == expected
    assert placing.ending(panes.table, 5, 5) is None or cut.zone is not None


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_doubles_have_the_same_digits_whatever_else_is_there(file: DuckDBFile, cut: Cut) -> None:
    """What is retracted must equal what was told, turns before, and with other rows around it."""
    draw = random.Random(0)
    merges = (Merge.ADD_SIZED, Merge.MOMENTS, Merge.POWERS, Merge.CO_MOMENTS)
    panes = panes_of(file, panes_table(cut, merges=merges))
    width = 3 * cut.size // cut.pane
    rows = random_rows(draw, panes.table, range(width), count=300)
    of_a, others = ([row for row in rows if (row[2] == "a") is same] for same in (True, False))
    source = placing_of(panes.table).source(panes.table)
    digits: list[list[tuple[Any, ...]]] = []
    for more, asked in ((of_a, "k0 = 'a'"), (others, "k0 = 'a'"), ([], "hash(number, k1) % 3 > 0")):
        draw.shuffle(more)
        panes.fill(more)
        panes.ask(f"SELECT {keys_of(panes.table)} FROM {source} WHERE {asked}")
        found = found_among(file, panes.table)
        shown = "number, k1, add_sized.total, moments, powers, co_moments"
        # As text: NaN differs from itself, and 0.0 does not from -0.0.
        digits.append(
            file.rows(f"SELECT ({shown})::VARCHAR FROM {found} WHERE k0 = 'a' ORDER BY ALL")
        )
    assert digits[0] == digits[1]
    assert set(digits[2]) < set(digits[1])
    totals = [row for row in digits[1] if "e+" in row[0] or "." in row[0]]
    assert totals, "no digits that could differ"


def rows_passed(file: DuckDBFile, sql: str) -> int:
    """Return how many rows the operators of a query pass on, all together."""
    [(_, plan)] = file.rows(f"EXPLAIN (ANALYZE, FORMAT json) {sql}")

    def passed(node: dict[str, Any]) -> int:
        children = sum(passed(child) for child in node.get("children", []))
        return int(node["intermediate_rows"]) + children

    return sum(passed(node) for node in json.loads(plan)["operator"])


def test_windows_cost_the_sum_of_windows_and_panes(file: DuckDBFile) -> None:
    """Ten times the windows in a record cost ten times as much, other keys next to nothing."""
    costs: dict[tuple[int, int], int] = {}
    for widest, keys in ((100, 3), (1_000, 3), (1_000, 100)):
        table = panes_table(hopping(widest, 1), ["INT"], merges=FEW_MERGES)
        file.run(f"DROP TABLE IF EXISTS {physical(table.name)}")
        panes = panes_of(file, table)
        file.run(
            f"INSERT INTO {physical(table.name)} "
            f"SELECT pane, pane - {widest - 1}, key, 1, NULL "
            f"FROM range(50000, 50000 + {widest}) p(pane), range({keys}) k(key)"
        )
        touched = f"FROM range(50000, 50000 + {widest}) n(number), range(3) k(key)"
        panes.ask(f"SELECT number AS __r0, key::INT AS __r1 {touched}")
        found = found_among(file, table)
        assert file.rows(f"SELECT count(*) FROM {found}") == [(3 * widest,)]
        costs[widest, keys] = rows_passed(file, f"SELECT number, _events, add_sized FROM {found}")
    # Each window with each of its panes would be a hundred times as much.
    assert costs[1_000, 3] < 12 * costs[100, 3]
    # The other keys' panes are read, and at the first join they are left.
    assert costs[1_000, 100] < costs[1_000, 3] + 3 * 100 * 1_000


def test_more_touched_windows_than_a_row_group_has_rows_all_change(file: DuckDBFile) -> None:
    """DuckDB 2.0.0 loses sight of rows, in a table that was empty, past the first row group."""
    cut, keys = hopping(1_000, 1), 130
    columns = panes_table(cut, ["INT"]).columns[:4]
    timestamp = parse_type("TIMESTAMP")
    key = (
        KeyPart("start", "window_start", timestamp),
        KeyPart("k", columns[2].name, columns[2].type),
    )
    table = Table("hits", "v1", columns, InPanes(cut), outputs=outputs_of(columns[2:]), key=key)
    changes = changes_table("hits", "v1", 0)
    for statement in (create(table), create_changes(changes, relation_of(table))):
        file.run(statement)
    rows = delta(table, *((5_000, 4_001, key, 1) for key in range(keys)))
    maker = ChangeMaker(file, table, changes, (NEVER, NEVER), 1)
    maker.look([rows])
    with file.registered("__delta", rows) as name:
        file.run(merge(table, name))
    maker.close()
    assert maker.finish().rows == keys * 1_000
    assert file.rows(f"SELECT count(*) FROM {changes}") == [(keys * 1_000,)]
