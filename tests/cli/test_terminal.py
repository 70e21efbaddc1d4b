"""`headrace topics` and `groups` on a real terminal of 80 columns, and what a terminal is told.

Method: commands as processes on a pseudo-terminal; their lines are golden.
"""

from pathlib import Path

from cli.commands import Run, in_terminal
from headrace.consume import reset_group
from headrace.log import EmbeddedLog, Partition, records
from headrace.store.duckdb.store import DuckDBStore

LONG = "payments.of.all.our.shops.in.the.north.and.in.the.south.since.the.year.2019"


def fill(project: Path) -> None:
    log = EmbeddedLog(project / ".headrace" / "log")
    log.create_topic("clicks", partitions=2)
    log.create_topic(LONG, partitions=12)
    log.append("clicks", records([b"x" * 100] * 12_345), partition=1)
    reset_group(log, "analytics", {Partition("clicks", 1): 45})
    reset_group(log, "g" * 60, {Partition("clicks", 0): 0, Partition(LONG, 11): 0})
    log.close()


def test_topics_and_groups_at_80_columns(project: Path, headrace: Run) -> None:
    fill(project)
    size = headrace("topics", "--json", "-p", project).rows[0]["bytes"]
    assert size > 10**6
    assert in_terminal("topics", cwd=project) == [
        "topic                                               partitions  records    bytes",
        "────────────────────────────────────────────────────────────────────────────────",
        f"clicks                                                       2    12345  {size}",
        "payments.of.all.our.shops.in.the.north.and.in.the…          12        0        0",
    ]
    assert in_terminal("groups", cwd=project) == [
        "group                         members  topics                        lag records",
        "────────────────────────────────────────────────────────────────────────────────",
        "analytics                           0  clicks                              12300",
        "ggggggggggggggggggggggggggg…        0  clicks, payments.of.all.our…        12345",
    ]
    described = in_terminal("groups", "describe", "g" * 60, cwd=project)
    assert described[:4] == [
        f"{'g' * 60}: members none",
        "topic                         partition  offset  end offset  lag records  member",
        "────────────────────────────────────────────────────────────────────────────────",
        "clicks                                0       0           0            0  -",
    ]
    assert described[-1] == (
        "payments.of.all.our.shops.i…         11       0           0            0  -"
    )


QUERY = """
SELECT * FROM (VALUES
  (TIMESTAMPTZ '2026-01-01 12:00:00Z', 'DE', 'a text that is too long for the terminal to show it',
   2.50, true),
  (TIMESTAMPTZ '2026-01-01 12:01:00Z', NULL, '', NULL, false)
) AS answer (minute, country, note, total, closed)
"""


def test_a_whole_answer_at_80_columns(project: Path) -> None:
    (project / ".headrace").mkdir()
    DuckDBStore(project / ".headrace/store.duckdb").close()
    assert in_terminal("sql", QUERY, cwd=project) == [
        "minute                country  note                                total  closed",
        "────────────────────────────────────────────────────────────────────────────────",
        "2026-01-01T12:00:00Z  DE       a text that is too long for the t…   2.50  true",
        "2026-01-01T12:01:00Z  NULL                                          NULL  false",
    ]
    assert in_terminal("sql", "-x", QUERY + "LIMIT 1", cwd=project) == [
        "── row 1 ───────────────────────────────",
        "minute   2026-01-01T12:00:00Z",
        "country  DE",
        "note     a text that is too long for the terminal to show it",
        "total    2.50",
        "closed   true",
    ]


def test_the_prompt_answers_on_a_terminal_and_is_refused_elsewhere(project: Path) -> None:
    # No store yet: told before anything is asked, in words that are not broken.
    told = in_terminal("sql", cwd=project)
    assert " ".join(told) == (
        f"error: {project}/.headrace/store.duckdb: no store yet: run `headrace run`"
    )
