"""Windows and lateness in SQL are the definition's, before 1970 and up to 9999 too.

Method: times around edges of windows, with watermarks around the moments at which windows close,
go through the columns that a fold adds, one Spark query per kind of window; the windows that they
stand for, put together with the store's SQL, are those that the reference lists one by one.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

from headrace.engine.spark.session import start_spark
from headrace.model.definitions import Stream, View
from headrace.model.nodes import Aggregate, Project, Scan, Window
from headrace.model.windows import DAY_US
from headrace.plan.shape import shape_of
from headrace.plan.spark import cutting as spark_cutting
from headrace.plan.spark.windowing import judged, levels_of
from headrace.reference.windows import OutOfRange, Span, to_us, windows_around
from headrace.store.duckdb.tables import cutting as duckdb_cutting
from headrace.time.windows import MAX_EDGE_US, MIN_EDGE_US, Cut

pytestmark = pytest.mark.spark

SECOND = 1_000_000
LATENESS_US = 2 * SECOND
KINDS = {
    "tumbling": Window(60 * SECOND),
    "tumbling with an offset": Window(60 * SECOND, offset_us=-7 * SECOND),
    "hopping": Window(60 * SECOND, "hopping", 20 * SECOND),
    "hopping, no multiple": Window(10 * SECOND, "hopping", 3 * SECOND, 1 * SECOND),
    "hopping, one microsecond": Window(5, "hopping", 2, -1),
    "cumulative": Window(60 * SECOND, "cumulative", 15 * SECOND),
    "days of Berlin": Window(DAY_US, zone="Europe/Berlin"),
    "weeks of New York": Window(7 * DAY_US, offset_us=4 * DAY_US, zone="America/New_York"),
    "hopping in Berlin": Window(3 * DAY_US, "hopping", 2 * DAY_US, zone="Europe/Berlin"),
    "cumulative in Berlin": Window(7 * DAY_US, "cumulative", DAY_US, zone="Europe/Berlin"),
}
# Clocks go forward and back at midnight, back over it (St. John's), and over a whole day (Apia).
ODD_ZONES = [
    "Europe/Berlin", "America/New_York", "Atlantic/Azores", "America/Havana", "America/St_Johns",
    "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC",
]  # fmt: skip


def at(text: str) -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC))


MOMENTS = [
    at("1969-12-31T23:59:59"), 0, at("1900-01-01T00:00:00"), at("0001-01-09T12:00:00"),
    at("2026-03-28T23:00:00"), at("2026-03-29T22:00:00"),  # the day of 23 hours in Berlin
    at("2026-10-24T22:00:00"), at("2026-10-25T23:00:00"),  # and of 25
    at("2026-03-08T05:00:00"), at("2026-11-01T04:00:00"),  # New York's
    at("9999-12-20T00:00:00"),
]  # fmt: skip
# Where windows begin to reach outside of the years that there are.
ENDS = [MIN_EDGE_US, MAX_EDGE_US]


def around(window: Window) -> list[int]:
    reach = max(window.size_us, DAY_US)
    inner = [edge + step for edge in MOMENTS for step in (-1, 0, 1, 3 * SECOND, DAY_US // 2)]
    outer = [
        edge + sign * step
        for edge, sign in zip(ENDS, (1, -1), strict=True)
        for step in (0, 1, window.size_us - 1, window.size_us, window.size_us + 1, 2 * reach)
    ]
    return sorted({time for time in inner + outer if MIN_EDGE_US <= time <= MAX_EDGE_US})


def spans(window: Window, time_us: int) -> list[Span] | None:
    try:
        return windows_around(window, time_us)
    except OutOfRange:
        return None


def cases(window: Window) -> list[tuple[int, int | None]]:
    """Return times with watermarks before, at and behind the moments at which windows close."""
    found: list[tuple[int, int | None]] = []
    for time_us in around(window):
        found.append((time_us, None))
        windows = spans(window, time_us) or []
        for each in {*windows[:2], *windows[-2:]}:
            found += [(time_us, each.end_us + LATENESS_US + step) for step in (-1, 0, 1)]
            found += [(time_us, each.end_us + step) for step in (-1, 0)]
    return found


def view_of(window: Window) -> tuple[View, Stream]:
    query = Project(Aggregate(Scan("s"), window, (), ()), ())
    stream = Stream("s", (), "s", event_time="ts")
    return View("v", query, LATENESS_US), stream


@pytest.mark.parametrize("kind", KINDS)
def test_the_windows_of_a_record_are_those_of_the_definition(kind: str) -> None:
    window = KINDS[kind]
    cut = Cut.of(window)
    drawn = cases(window)
    sound = [case for case in drawn if spans(window, case[0]) is not None]
    found = ask_spark(window, sound)
    starts = "window" if not cut.overlaps else "numbers"
    for (time_us, watermark), row in zip(sound, found, strict=True):
        windows = windows_around(window, time_us)
        closed = -float("inf") if watermark is None else watermark
        open_ = [each for each in windows if each.end_us + LATENESS_US > closed]
        assert row["__late"] == (not open_), (time_us, watermark)
        if not open_:
            continue
        assert row[starts] == open_, (time_us, watermark)
        assert row["__corrected"] == sum(each.end_us <= closed for each in open_)


def ask_spark(window: Window, records: list[tuple[int, int | None]]) -> list[dict[str, object]]:
    """Return the columns of a fold; the windows of a row of panes as the store numbers them."""
    spark = start_spark()
    view, stream = view_of(window)
    cut = Cut.of(window)
    times, watermarks = zip(*records, strict=True)
    columns = {"place": range(len(records)), "time": times, "__watermark": watermarks}
    table = pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})
    frame = spark.createDataFrame(table)
    frame = frame.selectExpr("*", "timestamp_micros(time) AS ts", "CAST(NULL AS BINARY) AS __side")
    frame.createOrReplaceTempView("__input")
    wanted = ["place", "__late", "__corrected"]
    wanted += ["__pane", "__first", "__open", "__last"] if cut.overlaps else ["window"]
    levels = levels_of(view, shape_of(view), stream)
    found = spark.sql(f"SELECT {', '.join(wanted)} FROM {judged(levels)} ORDER BY place").toArrow()
    if not cut.overlaps:
        rows = found.to_pylist()
        for row in rows:
            parts = row["window"]
            assert to_us(parts["end"]) - to_us(parts["time"]) == 1
            row["window"] = [Span(to_us(parts["start"]), to_us(parts["end"]))]
        return rows
    assert cut.last_windows(found["__pane"].to_numpy()).tolist() == found["__last"].to_pylist()
    return [row | {"numbers": numbers} for row, numbers in ask_store(cut, found)]


def ask_store(cut: Cut, found: pa.Table) -> list[tuple[dict[str, object], list[Span]]]:
    """Return the windows from the first open one to the last one of the pane, as readers do."""
    ends = (duckdb_cutting.window_start, duckdb_cutting.window_end)
    edges = [duckdb_cutting.edge_time(cut, edge(cut, "number")) for edge in ends]
    last = duckdb_cutting.last_window(cut, "__pane")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("found", found)
        rows = connection.execute(
            f"SELECT place, epoch_us({edges[0]}), epoch_us({edges[1]}) FROM (SELECT place, "
            f"unnest(range(__open, {last} + 1)) AS number FROM found) "
            f"ORDER BY ALL"
        ).fetchall()
    numbers: dict[int, list[Span]] = {}
    for place, start_us, end_us in rows:
        numbers.setdefault(place, []).append(Span(start_us, end_us))
    return [(row, numbers.get(row["place"], [])) for row in found.to_pylist()]


@pytest.mark.parametrize("kind", ["tumbling with an offset", "hopping", "hopping, no multiple"])
def test_windows_are_those_of_sparks_own_functions(kind: str) -> None:
    window = KINDS[kind]
    times = [time for time in around(window) if abs(time) < at("2100-01-01T00:00:00")]
    spark = start_spark()
    frame = spark.createDataFrame(pa.table({"time": pa.array(times, pa.int64())}))
    frame.selectExpr("time", "timestamp_micros(time) AS ts").createOrReplaceTempView("times")
    lengths = [window.size_us, window.slide_us or window.size_us, window.offset_us]
    call = f"window(ts, {', '.join(repr(f'{length} microseconds') for length in lengths)})"
    rows = spark.sql(
        f"SELECT time, window, window_time(window) AS last FROM (SELECT time, {call} FROM times)"
    ).toArrow()
    found: dict[int, list[Span]] = {}
    for row in rows.to_pylist():
        span = Span(to_us(row["window"]["start"]), to_us(row["window"]["end"]))
        assert to_us(row["last"]) == span.end_us - 1
        found.setdefault(row["time"], []).append(span)
    assert {time: sorted(each) for time, each in found.items()} == {
        time: windows_around(window, time) for time in times
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_are_where_windows_reach_out_of_the_years_that_there_are(kind: str) -> None:
    window = KINDS[kind]
    cut = Cut.of(window)
    first, end = cut.times
    if cut.zone is not None:
        zone = ZoneInfo(cut.zone)
        ordinal = datetime(1970, 1, 1).toordinal()
        noons = [datetime.fromordinal(ordinal + day) for day in (first - 1, first, end - 1, end)]
        times = [to_us(noon.replace(hour=12, tzinfo=zone).astimezone(UTC)) for noon in noons]
    else:
        times = [first - 1, first, end - 1, end]
    assert [spans(window, time_us) is not None for time_us in times] == [False, True, True, False]


def test_spark_the_store_and_python_agree_on_when_days_begin() -> None:
    spark = start_spark()
    days = list(range(-25_567, 47_482))  # 1900 to 2100
    table = pa.table({"day": pa.array(days, pa.int64())})
    spark.createDataFrame(table).createOrReplaceTempView("days")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("days", table)
        for name in ODD_ZONES:
            zone = ZoneInfo(name)
            cut = Cut.of(Window(DAY_US, zone=name))
            python = [
                to_us(datetime.fromordinal(719_163 + day).replace(tzinfo=zone).astimezone(UTC))
                for day in days
            ]
            store = connection.execute(
                f"SELECT epoch_us({duckdb_cutting.edge_time(cut, 'day')}) FROM days"
            )
            assert [row[0] for row in store.fetchall()] == python, name
            begin = f"unix_micros({spark_cutting.edge_time(cut, 'day')})"
            units = ", ".join(
                spark_cutting.unit_of(cut, f"timestamp_micros({begin} + {step})")
                for step in (-1, 0, 1)
            )
            found = spark.sql(f"SELECT {begin} AS begin, array({units}) AS units FROM days")
            rows = found.toArrow()
            assert rows["begin"].to_pylist() == python, name
            for at, units_here in enumerate(rows["units"].to_pylist()):
                # A day that a zone skipped (Apia's 2011-12-30) has no instant: the next one begins.
                empty = at + 1 < len(days) and python[at + 1] == python[at]
                after_empty = at > 0 and python[at - 1] == python[at]
                day = days[at] + empty
                before = day - 1 - (empty or after_empty)
                assert units_here == [before, day, day], (name, days[at])
