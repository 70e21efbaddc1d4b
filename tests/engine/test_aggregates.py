"""Every aggregate through the whole engine: in both gears, cut into turns, over a restart.

Method: six readings whose answers are worked out by hand; the reference must say the same, and the
audit, which replays the log in one piece, must find the same states.
"""

import math
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from agreement import assert_agrees_with_the_reference
from told import held, held_rows

from headrace.errors import DefinitionError
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM readings (
  sensor STRING, x DOUBLE, n INT, ok BOOLEAN, tags ARRAY<STRING>, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 1 HOUR
);
"""
# In the order of their times: 1 to 6. They come in another one, in two turns, to two partitions.
READINGS = {
    1: {"sensor": "a", "x": 1.0, "n": 3, "ok": True, "tags": ["p"], "ts": "2026-01-01T12:00:01Z"},
    2: {"sensor": "a", "x": None, "n": 1, "ok": None, "tags": None, "ts": "2026-01-01T12:00:02Z"},
    3: {"sensor": "b", "x": -0.0, "n": None, "ok": False, "ts": "2026-01-01T12:00:03Z"},
    4: {"sensor": "a", "x": 5.0, "n": 3, "ok": False, "tags": ["q"], "ts": "2026-01-01T12:00:04Z"},
    5: {"sensor": "a", "x": 3.0, "n": 0, "ok": True, "tags": [], "ts": "2026-01-01T12:00:05Z"},
    6: {"sensor": "a", "x": None, "n": None, "ok": None, "ts": "2026-01-01T12:00:06Z"},
}
TURNS = [((4, 1), (6, 3)), ((5,), (2,))]


def append(h: Harness, partitions: tuple[tuple[int, ...], ...]) -> None:
    for partition, numbers in enumerate(partitions):
        h.append("readings", [READINGS[number] for number in numbers], partition=partition)


VIEWS = """
CREATE MATERIALIZED VIEW scalars AS
SELECT sensor, var_pop(x) AS spread, stddev(x) AS deviation, bool_and(ok) AS every_one,
  bool_or(ok) AS any_one, count_if(ok) AS oks, first(n) AS first_n, last(n) AS last_n,
  last(n) IGNORE NULLS AS last_known, first(tags) FILTER (WHERE x > 1) AS tags,
  min_by(ts, n) AS least, max_by(x, n) AS latest_of_most, max_by(n, x) AS at_most,
  collect_list(n) AS all_n, collect_list(n, 2) AS two, count(*) FILTER (WHERE x > 2) AS large,
  sum(n) FILTER (WHERE ok) AS good, max(x) FILTER (WHERE x > 100) AS none,
  bit_or(n) AS bits, bit_xor(n) AS odd_bits, bit_and(n) FILTER (WHERE n > 0) AS all_bits,
  covar_pop(x, second(ts)) AS together, corr(x, second(ts)) AS along, regr_count(x, n) AS pairs,
  regr_slope(x, second(ts)) AS slope, regr_avgx(x, n) AS mean_n, corr(x, 1.5D) AS constant,
  regr_r2(x, n) FILTER (WHERE x > 100) AS no_pairs
FROM readings GROUP BY sensor HAVING count(*) FILTER (WHERE n > 5) = 0;
CREATE MATERIALIZED VIEW with_items AS
SELECT sensor, count(*) AS records, first(n) AS first_n, count(DISTINCT n) AS different,
  count(DISTINCT x) FILTER (WHERE ok) AS good, approx_count_distinct(n) AS about,
  approx_percentile(x, 0.5) AS half, approx_top_k(n, 2) AS top, collect_set(n) AS all_n,
  collect_set(n, 2) AS two, count(DISTINCT n) * 2 AS twice
FROM readings GROUP BY sensor HAVING count(DISTINCT x) > 0;
CREATE MATERIALIZED VIEW lists AS
SELECT sensor, first_n(n, 3) AS first_three, last_n(n, 3) AS last_three, any_value(n) AS any_n,
  last_n(n, 3) IGNORE NULLS AS last_known, collect_list(x) RESPECT NULLS AS all_x,
  collect_set(x, 3) RESPECT NULLS AS set_x, collect_list(DISTINCT n) AS set_n,
  topk(n, 3) AS top, topk_distinct(n, 2) AS top_different, bottomk(n, 2) AS bottom,
  bottomk_distinct(n, 9) AS bottom_different, max_by(x, n, 3) AS at_most,
  min_by(x, n, 2) AS at_least,
  histogram(n) AS counts, histogram(sensor) AS sensors, mode(n) AS usual, mode(ok) AS usual_ok,
  sum(DISTINCT n) AS total, avg(DISTINCT n) AS mean, sum(DISTINCT x) FILTER (WHERE n > 1) AS some,
  avg(DISTINCT CAST(n AS DECIMAL(5,1))) AS exact, try_sum(n) AS added,
  histogram(n) FILTER (WHERE n > 99) AS no_counts, mode(n) FILTER (WHERE n > 99) AS no_mode,
  topk(n, 2) FILTER (WHERE n > 99) AS no_top, sum(DISTINCT n) FILTER (WHERE n > 99) AS no_total
FROM readings GROUP BY sensor;
CREATE MATERIALIZED VIEW panes AS
SELECT window.start AS start, count(DISTINCT n) AS different,
  approx_percentile(n, 1) AS most, approx_top_k(n, 1) AS top, collect_set(n, 2) AS two,
  collect_list(n) AS listed, first(n) AS first, var_pop(n) AS spread, bool_or(ok) AS ok,
  last_n(n, 2) AS last_two, topk_distinct(n, 2) AS most_two, histogram(n) AS counts,
  sum(DISTINCT n) AS total, mode(n) AS usual, collect_set(x, 2) RESPECT NULLS AS xs
FROM readings WHERE sensor = 'a' GROUP BY window(ts, '4 seconds', '2 seconds');
CREATE MATERIALIZED VIEW nested_keys AS
SELECT named_struct('s', sensor, 'ok', ok, 'one', 1) AS key, count(*) AS records,
  count(DISTINCT tags) AS different, collect_set(tags) AS sets, count(DISTINCT x, n) AS pairs,
  collect_set(array(x, 0 * x)) RESPECT NULLS AS xs, count(DISTINCT named_struct('a', 1)) AS one,
  count(DISTINCT named_struct('a', 1)) FILTER (WHERE n > 99) AS none
FROM readings GROUP BY named_struct('s', sensor, 'ok', ok, 'one', 1);
"""


def play(view: str, gear: str) -> list[dict[str, Any]]:
    """Return the rows of a view, in an order of their own."""
    return [dict(row) for row in played(gear)[view]]


@cache  # the tests of a gear share a harness
def played(gear: str) -> dict[str, list[dict[str, Any]]]:
    with harness(STREAM + VIEWS, partitions=2) as h:
        for number, numbers in enumerate(TURNS):
            if number:
                h.restart()
            append(h, numbers)
            h.turn(gear=gear)
        assert_agrees_with_the_reference(h)
        h.audit()
        return {view.name: sorted(h.rows(view.name), key=str) for view in h.project.views}


@pytest.mark.parametrize("gear", ["short", "long"])
def test_scalar_aggregates_are_what_they_are_by_hand(gear: str) -> None:
    rows = play("scalars", gear)
    first, second = rows
    assert first.pop("least").isoformat() == "2026-01-01T12:00:05+00:00"
    assert math.isclose(first.pop("spread"), 8 / 3)
    # At the seconds 1, 4 and 5 x is 1, 5 and 3.
    assert math.isclose(first.pop("together"), 2)
    assert math.isclose(first.pop("along"), 6 / math.sqrt(8 * 26 / 3))
    assert math.isclose(first.pop("slope"), 9 / 13)
    assert first == {
        "sensor": "a",
        "deviation": 2.0,
        "every_one": False,
        "any_one": True,
        "oks": 2,
        "first_n": 3,
        "last_n": None,
        "last_known": 0,
        "tags": ["q"],
        "latest_of_most": 5.0,
        "at_most": 3,
        "all_n": [3, 1, 3, 0],
        "two": [3, 1],
        "large": 2,
        "good": 3,
        "none": None,
        "bits": 3,
        "odd_bits": 1,
        "all_bits": 1,
        "pairs": 3,
        "mean_n": 2.0,
        "constant": None,
        "no_pairs": None,
    }
    assert second == {
        "sensor": "b",
        "spread": 0.0,
        "deviation": None,
        "every_one": False,
        "any_one": False,
        "oks": 0,
        "first_n": None,
        "last_n": None,
        "last_known": None,
        "tags": None,
        "least": None,
        "latest_of_most": None,
        "at_most": None,
        "all_n": [],
        "two": [],
        "large": 0,
        "good": None,
        "none": None,
        "bits": None,
        "odd_bits": None,
        "all_bits": None,
        "together": 0.0,
        "along": None,
        "slope": None,
        "pairs": 0,
        "mean_n": None,
        "constant": None,
        "no_pairs": None,
    }


@pytest.mark.parametrize("gear", ["short", "long"])
def test_aggregates_that_keep_items_are_what_they_are_by_hand(gear: str) -> None:
    rows = play("with_items", gear)
    # The true ones are 3 and 0.
    assert [round(row.pop("half"), 6) for row in rows] == [2.974233, 0]
    assert rows == [
        {
            "sensor": "a",
            "records": 5,
            "first_n": 3,
            "different": 3,
            "good": 2,
            "about": 3,
            "top": [{"item": 3, "count": 2}, {"item": None, "count": 1}],
            "all_n": [3, 1, 0],
            "two": [3, 1],
            "twice": 6,
        },
        {
            "sensor": "b",
            "records": 1,
            "first_n": None,
            "different": 0,
            "good": 0,
            "about": 0,
            "top": [{"item": None, "count": 1}],
            "all_n": [],
            "two": [],
            "twice": 0,
        },
    ]


@pytest.mark.parametrize("gear", ["short", "long"])
def test_lists_and_frequencies_are_what_they_are_by_hand(gear: str) -> None:
    [row, _] = play("lists", gear)
    # In the order of time: n is 3, 1, 3, 0 and null, x is 1, null, 5, 3 and null.
    assert row == {
        "sensor": "a",
        "first_three": [3, 1, 3],
        "last_three": [3, 0, None],
        "any_n": 3,
        "last_known": [1, 3, 0],
        "all_x": [1.0, None, 5.0, 3.0, None],
        "set_x": [1.0, None, 5.0],
        "set_n": [3, 1, 0],
        "top": [3, 3, 1],
        "top_different": [3, 1],
        "bottom": [0, 1],
        "bottom_different": [0, 1, 3],
        "at_most": [5.0, 1.0, None],
        "at_least": [3.0, None],
        "counts": [(0, 1), (1, 1), (3, 2)],
        "sensors": [("a", 5)],
        "usual": 3,
        "usual_ok": True,
        "total": 4,
        "mean": 4 / 3,
        "some": 6.0,
        "exact": Decimal("1.33333"),
        "added": 7,
        "no_counts": [],
        "no_mode": None,
        "no_top": [],
        "no_total": None,
    }


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_window_of_panes_has_the_items_of_all_of_them(gear: str) -> None:
    rows = play("panes", gear)
    found = {row.pop("start").second: row for row in rows}
    assert sorted(found) == [0, 2, 4, 6, 58]
    # Readings 2, 4 and 5: n is 1, 3 and 0.
    assert math.isclose(found[2].pop("most"), 3, rel_tol=0.01)
    assert math.isclose(found[2].pop("spread"), 14 / 9)
    assert found[2] == {
        "different": 3,
        "top": [{"item": 0, "count": 1}],
        "two": [1, 3],
        "listed": [1, 3, 0],
        "first": 1,
        "ok": True,
        "last_two": [3, 0],
        "most_two": [3, 1],
        "counts": [(0, 1), (1, 1), (3, 1)],
        "total": 4,
        "usual": 0,
        "xs": [None, 5.0],
    }


@pytest.mark.parametrize("gear", ["short", "long"])
def test_structs_and_arrays_are_keys_and_different_values(gear: str) -> None:
    rows = play("nested_keys", gear)
    found = {(row["key"]["s"], row["key"]["ok"]): row for row in rows}
    assert {key: row["records"] for key, row in found.items()} == {
        ("a", True): 2, ("a", None): 2, ("a", False): 1, ("b", False): 1,
    }  # fmt: skip
    assert found["a", True] == {
        "key": {"s": "a", "ok": True, "one": 1},
        "records": 2,
        "different": 2,
        "sets": [["p"], []],
        "pairs": 2,
        "xs": [[1.0, 0.0], [3.0, 0.0]],
        "one": 1,
        "none": 0,
    }
    assert found["a", None]["xs"] == [[None, None]]
    assert (found["a", None]["different"], found["a", None]["pairs"]) == (0, 0)


WINDOWS = {
    "tumbling": "window(ts, '4 seconds')",
    "hopping": "window(ts, '4 seconds', '2 seconds')",
    "session": "session_window(ts, '1 second')",
}


def test_keys_within_keys_have_windows_and_are_told() -> None:
    views = [
        f"""
CREATE MATERIALIZED VIEW {name} AS
SELECT window.start AS start, tags, named_struct('x', x) AS x, count(*) AS n, first(n) AS first_n,
  count(DISTINCT n) AS different
FROM readings GROUP BY {window}, tags, named_struct('x', x);
CREATE SINK {name}_out FROM {name} WITH (topic = '{name}.rows', mode = 'retract');
"""
        for name, window in WINDOWS.items()
    ]
    with harness(STREAM + "".join(views), partitions=2) as h:
        for numbers in TURNS:
            append(h, numbers)
            for partition in (0, 1):
                h.append("readings", [READINGS[3] | {"x": 0.0}], partition=partition)
            h.turn()
        for name in WINDOWS:
            assert held(h, f"{name}.rows") == held_rows(h, name)
            zeros = [row for row in h.rows(name) if row["x"] == {"x": 0.0}]
            assert {row["n"] for row in zeros} == {5}, name  # 0.0 and -0.0 are one key
        assert_agrees_with_the_reference(h)
        h.audit()


def test_sinks_are_told_of_items_too() -> None:
    views = [
        f"""
CREATE MATERIALIZED VIEW {name} AS
SELECT window.start AS start, sensor, count(DISTINCT n) AS different, approx_top_k(n, 2) AS top,
  collect_set(n) AS ns, collect_list(n) AS listed, first(tags) AS tags, stddev(n) AS spread,
  approx_percentile(n, 0.5) AS half, histogram(sensor) AS counts, last_n(n, 2) AS last_two,
  topk_distinct(x, 2) AS top_x
FROM readings GROUP BY {WINDOWS[name]}, sensor;
CREATE SINK {name}_out FROM {name} WITH (topic = '{name}.rows', mode = 'retract');
"""
        for name in ("tumbling", "hopping")
    ]
    with harness(STREAM + "".join(views), partitions=2) as h:
        for numbers in TURNS:
            append(h, numbers)
            h.turn()
        for name in ("tumbling", "hopping"):
            assert sum(held(h, f"{name}.rows").values()) >= 3
            assert held(h, f"{name}.rows") == held_rows(h, name)
        assert_agrees_with_the_reference(h)


def test_items_leave_with_the_rows_that_retention_ends_for() -> None:
    stream = STREAM.replace("INTERVAL 1 HOUR", "INTERVAL 0 SECONDS")
    views = [
        f"""
CREATE MATERIALIZED VIEW {name} WITH (retention = '10 seconds') AS
SELECT window.start AS start, count(DISTINCT n) AS different FROM readings GROUP BY {window};
"""
        for name, window in (
            ("tumbling", "window(ts, '4 seconds')"),
            ("hopping", "window(ts, '4 seconds', '2 seconds')"),
        )
    ]
    with harness(stream + "".join(views), partitions=1) as h:
        h.append("readings", list(READINGS.values()))
        h.turn()
        h.append("readings", [{"n": 7, "ts": "2026-01-01T13:00:01Z"}])
        h.turn()
        assert [row["different"] for row in h.rows("tumbling")] == [1]
        assert [row["different"] for row in h.rows("hopping")] == [1, 1]
        with h.engine.tools.store.open() as snapshot:
            # The last record's row and its item; nothing of the others.
            assert sorted(snapshot.state_rows().values()) == [2, 2]
        assert_agrees_with_the_reference(h)
        h.audit()


def test_the_tables_of_items_come_and_go_with_their_version() -> None:
    definitions = STREAM + "CREATE MATERIALIZED VIEW v AS SELECT {} AS n FROM readings;"
    with harness(definitions.format("count(DISTINCT n)"), partitions=1) as h:
        h.append("readings", list(READINGS.values()))
        h.turn()
        assert h.rows("v") == [{"n": 3}]
        with h.engine.tools.store.open() as snapshot:
            assert list(snapshot.state_rows().values()) == [4]  # one group, three items
        h.restart(definitions.format("count(DISTINCT x)"))
        while h.turn():
            pass
        assert h.rows("v") == [{"n": 4}]
        with h.engine.tools.store.open() as snapshot:
            tables = snapshot.query(
                "SELECT count(*) AS n FROM duckdb_tables() WHERE starts_with(table_name, 'v__')"
            )
        assert tables.to_pylist() == [{"n": 2}]
        h.audit()


@pytest.mark.parametrize("gear", ["short", "long"])
def test_without_an_event_time_records_stand_by_partition_and_offset(gear: str) -> None:
    definitions = """
CREATE STREAM notes (id INT, word STRING);
CREATE MATERIALIZED VIEW v AS
SELECT first(id) AS first, last(id) AS last, collect_list(id, 3) AS three,
  first(id) FILTER (WHERE id > 99) AS none, collect_list(id) FILTER (WHERE id > 99) AS no_list,
  min_by(id, word) AS least, max_by(id, word) AS greatest, stddev(id) FILTER (WHERE id > 99) AS s
FROM notes;
"""
    with harness(definitions, partitions=2) as h:
        for partition, ids in ((1, (1, 2)), (0, (3, 4)), (1, (5,)), (0, (6,))):
            h.append("notes", [{"id": each, "word": "w"} for each in ids], partition=partition)
            h.turn(gear=gear)
        assert h.rows("v") == [
            {"first": 3, "last": 5, "three": [3, 4, 6], "none": None, "no_list": []}
            | {"least": 3, "greatest": 5, "s": None}
        ]
        assert_agrees_with_the_reference(h)
        h.audit()


def test_an_argument_is_evaluated_where_filter_is_true_and_nowhere_else() -> None:
    definitions = (
        STREAM
        + """
CREATE MATERIALIZED VIEW v AS
SELECT sum(10 / n) FILTER (WHERE n > 0) AS shares, first(10 / n) FILTER (WHERE n > 0) AS share,
  count(*) FILTER (WHERE 10 / n > 4) AS large
FROM readings WHERE sensor = 'a';
"""
    )
    with harness(definitions, partitions=1) as h:
        records = [{"sensor": "a", "n": n, "ts": "2026-01-01T12:00:00Z"} for n in (5, 0, 2)]
        records.append({"sensor": "b", "n": 0, "ts": "2026-01-01T12:00:00Z"})
        h.append("readings", records)
        h.turn()
        # The last call fails on the second record, which is dead for the view then.
        assert [row["offset"] for row in h.dead("v")] == [1]
        assert h.rows("v") == [{"shares": 7.0, "share": 2.0, "large": 1}]
        assert_agrees_with_the_reference(h)
        h.audit()


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("count(*) FILTER (WHERE n + 1) AS a", "FILTER (WHERE n + 1) is INT; write a condition"),
        ("stddev(sensor) AS a", "stddev_samp needs a number, not STRING"),
        ("corr(n, sensor) AS a", "corr needs two numbers, not STRING; cast it to DOUBLE"),
        ("bool_or(n) AS a", "bool_or needs a condition, not INT; write bool_or(x > 0)"),
        ("max_by(n, tags) AS a", "max_by orders by its second argument, which has no order"),
        (
            "count(DISTINCT map(n, n)) AS a",
            "count(DISTINCT x) cannot tell values of MAP<INT, INT> ",
        ),
        (
            "element_at(array(x), 1) AS a FROM readings GROUP BY array(x); --",
            "is ARRAY<DOUBLE>, whose 0.0 and -0.0 are one key",
        ),
        ("mode(tags) AS a", "mode takes single values, not ARRAY<STRING>; pick a field of it"),
        (
            "count(*) AS a FROM readings GROUP BY map(n, n); --",
            "GROUP BY map(n, n) is MAP<INT, INT>",
        ),
        ("approx_percentile(ts, 0.5) AS a", "approx_percentile needs a number, not TIMESTAMP"),
    ],
)
def test_what_an_aggregate_cannot_take_is_refused(select: str, message: str) -> None:
    definitions = f"{STREAM} CREATE MATERIALIZED VIEW v AS SELECT {select} FROM readings;"
    with pytest.raises(DefinitionError) as error, harness(definitions):
        pass
    assert message in str(error.value)
