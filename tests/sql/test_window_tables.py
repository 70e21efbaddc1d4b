"""Window functions of FROM are a second spelling: the same nodes, the same fingerprints."""

import pytest

from headrace.model import view_fingerprint
from headrace.sql import parse_project

STREAM = """
CREATE STREAM orders (
  shop STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS
);
"""


def fingerprint(query: str) -> str:
    project = parse_project({"a.sql": f"{STREAM} CREATE MATERIALIZED VIEW v AS {query}"})
    return view_fingerprint(project.view("v"), project.stream("orders"))


@pytest.mark.parametrize(
    ("table", "group", "window"),
    [
        (
            "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            "TUMBLE(ts, INTERVAL '1' MINUTE)",
            "window(ts, '1 minute')",
        ),
        (
            "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 1 HOUR)",
            "hop(interval '1 minute', interval '1 hour')",
            "window(ts, '1 hour', '1 minute')",
        ),
        (
            "CUMULATE(TABLE orders, DESCRIPTOR(ts), '1 minute', '1 hour')",
            "CUMULATE(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
            "cumulate(ts, '1 minute', '1 hour')",
        ),
        (
            "SESSION(TABLE orders PARTITION BY shop, DESCRIPTOR(ts), INTERVAL '1 minute')",
            "session(interval '1 minute')",
            "session_window(ts, '1 minute')",
        ),
    ],
)
def test_windows_of_from_and_of_group_by_are_one(table: str, group: str, window: str) -> None:
    select = "SELECT shop, {start} AS s, {end} AS e, count(*) AS n FROM {source} WHERE shop <> ''"
    edges = select.format(start="window.start", end="window.end", source="orders")
    columns = select.format(start="window_start", end="window_end", source=table)
    wrapped = select.format(start="w.window_start", end="window_end", source=f"TABLE({table}) w")
    expected = fingerprint(f"{edges} GROUP BY {window}, shop")
    assert fingerprint(f"{edges} GROUP BY {group}, shop") == expected
    assert fingerprint(f"{columns} GROUP BY window_start, window_end, shop") == expected
    assert fingerprint(f"{wrapped} GROUP BY 1, 2, 3") == expected
    # Without groups, or by other columns, each window of a record is a row.
    if "SESSION" not in table:
        assert fingerprint(columns.replace("count(*)", "1")) != expected
        others = columns.replace("window_start", "max(window_start)")
        others = others.replace("window_end", "max(window_end)")
        assert fingerprint(f"{others} GROUP BY shop") != expected
