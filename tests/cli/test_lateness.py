"""`headrace lateness` says what each view loses: what is late for its windows, not what is behind.

Method: records of one partition, worked out by hand; the printed text is golden.
"""

from pathlib import Path

from cli.commands import Run

DEFINITIONS = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'clicks', format = 'json');
CREATE MATERIALIZED VIEW per_day AS
SELECT window.start AS day, count(*) AS n FROM clicks GROUP BY window(ts, '1 day');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
CREATE MATERIALIZED VIEW hopping WITH (allowed_lateness = '10 seconds') AS
SELECT window.start AS minute, count(*) AS n FROM clicks WHERE page = 'a'
GROUP BY window(ts, '2 minutes', '1 minute');
CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
"""
# The third and the fifth are behind the clock. The third's minute ends at 12:02:00, and the clock
# is at 12:02:05. That of the fifth ended at 12:01:00, its two windows of two minutes at 12:01:00
# and 12:02:00, and the clock is at 12:03:00.
TIMES = ["12:00:10", "12:02:05", "12:01:58", "12:03:00", "12:00:20"]

SHOWN = """\
clicks: 5 records, behind their partition's clock by
lateness   records  share
─────────────────────────────────────────────────────────────────────
in time          3  60.000%  ████████████████████████████████████████
to 1 ms          0  0.000%
to 10 ms         0  0.000%
to 100 ms        0  0.000%
to 1 s           0  0.000%
to 5 s           0  0.000%
to 10 s          1  20.000%  ██████████████
to 30 s          0  0.000%
to 1 m           0  0.000%
to 5 m           1  20.000%  ██████████████

late pairs of record and window in each view, by delay (* holds now)
delay   per_day  per_minute  hopping ≤
──────────────────────────────────────
0 s           0           2          2
10 s *        0           1          2
1 m           0           1          1
5 m           0           0          0
A longer delay loses less, and rows close that much later.
≤: counted before WHERE and before duplicates are dropped.
"""


def test_each_view_is_told_what_it_loses(project: Path, headrace: Run, tmp_path: Path) -> None:
    (project / "payments.sql").write_text(DEFINITIONS)
    lines = "".join(f'{{"page": "a", "ts": "2026-01-01T{time}Z"}}\n' for time in TIMES)
    (tmp_path / "lines").write_text(lines)
    headrace("append", "clicks", tmp_path / "lines", "--partition", 0, "-p", project)
    assert headrace("lateness", "clicks", "-p", project).out == SHOWN
    (found,) = headrace("lateness", "clicks", "--json", "-p", project).rows
    assert [(loss["view"], loss["pairs"], loss["late"]) for loss in found["views"]] == [
        ("per_day", 5, 0),
        ("per_minute", 5, 1),
        ("hopping", 10, 2),
    ]


def test_a_stream_that_no_window_reads_loses_nothing(project: Path, headrace: Run) -> None:
    stream, *_ = DEFINITIONS.partition("CREATE MATERIALIZED")
    (project / "payments.sql").write_text(stream)
    headrace("topics", "create", "clicks", "-p", project)
    out = headrace("lateness", "clicks", "-p", project).out
    assert out.endswith("no view over clicks has windows, so none of its records is late\n")


UNION = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'clicks', format = 'json');
CREATE STREAM both AS SELECT page, ts FROM clicks UNION ALL SELECT page, ts FROM clicks;
CREATE STREAM loud WITH (topic = 'loud') AS SELECT upper(page) AS page, ts FROM clicks;
CREATE MATERIALIZED VIEW twice AS
SELECT window.start AS minute, count(*) AS n FROM both GROUP BY window(ts, '1 minute');
"""
SHIFTED = """
CREATE MATERIALIZED VIEW shifted AS SELECT window.start AS minute, count(*) AS n FROM clicks
GROUP BY window(ts + INTERVAL 1 HOUR, '1 minute');
"""


def test_the_branches_of_a_union_are_added_up(project: Path, headrace: Run, tmp_path: Path) -> None:
    (project / "payments.sql").write_text(UNION)
    lines = "".join(f'{{"page": "a", "ts": "2026-01-01T{time}Z"}}\n' for time in TIMES)
    (tmp_path / "lines").write_text(lines)
    headrace("append", "clicks", tmp_path / "lines", "--partition", 0, "-p", project)
    (found,) = headrace("lateness", "clicks", "--json", "-p", project).rows
    assert [(loss["view"], loss["pairs"], loss["late"]) for loss in found["views"]] == [
        ("twice", 10, 2)
    ]
    assert "\ndelay   twice\n" in headrace("lateness", "clicks", "-p", project).out


def test_a_view_whose_losses_are_not_known_is_named(project: Path, headrace: Run) -> None:
    stream, *_ = DEFINITIONS.partition("CREATE MATERIALIZED")
    (project / "payments.sql").write_text(stream + SHIFTED)
    headrace("topics", "create", "clicks", "-p", project)
    out = headrace("lateness", "clicks", "-p", project).out
    assert out.endswith(
        "view shifted: what it loses is not known, because its window is over an expression\n"
    )
    assert "no view over clicks has windows" not in out


def test_who_asks_about_a_query_is_told_its_sources(project: Path, headrace: Run) -> None:
    (project / "payments.sql").write_text(UNION)
    for name, kind in (("loud", "stream"), ("both", "stream"), ("twice", "view")):
        refused = headrace("lateness", name, "-p", project)
        assert (refused.code, refused.err) == (
            2,
            f"error: {name} is a {kind} that a query makes of clicks: its records are as late as "
            f"theirs. Ask about it: `headrace lateness clicks`.\n",
        )
