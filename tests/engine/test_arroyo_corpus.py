"""Queries of another engine's test suite, over its data, against its own expected outputs.

Method: each file of the corpus defines sources, sinks and views and inserts queries into the sinks.
Rules rewrite its statements: a source becomes a stream over a topic of its input, a query that is
inserted becomes a materialized view, and a cast is written where the sink's column has another
type. All queries that share a form of input run in one harness: straight, with a stop in the
middle, and with another number of partitions. The rows are compared as multisets; where the first
line names a key, the expected changes are folded by it first.
WAITING lists the queries that cannot run yet, each with its reason: one that starts to pass has to
leave the list. The corpus is not ours to ship: the test is skipped where it is not there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import DefinitionError
from headrace.log.records import records
from headrace.sql import parse_project
from headrace.testing import Harness, harness

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "arroyo-sql"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project"),
]

JOIN, UDF, TABLE = "a join", "a function written in Rust", "a table of changes"
TWICE = "an aggregate over an aggregate"
WAITING = {
    "active_drivers": TWICE,
    "async_udf": UDF,
    "debezium_agg": TABLE,
    "debezium_pass_through": TABLE,
    "double_negative_udf": UDF,
    "every_aggregate": "an exact median, and percentiles with weights",
    "json_operators": "a whole record as one column, and the operator -> on it",
    "most_active_driver_last_hour": "a rank over an aggregate",
    "most_active_driver_last_hour_unaligned": "a rank over an aggregate",
    "nexmark_q5": JOIN,
    "offset_impulse_join": JOIN,
    "reinvoke_window_function": TWICE,
    "udaf": UDF,
    "unnest_in_view": "a generator over an aggregate",
    "updating_full_join": JOIN,
    "updating_inner_join": JOIN,
    "updating_inner_join_with_updating": JOIN,
    "updating_left_join": JOIN,
    "updating_right_join": JOIN,
    "windowed_inner_join": JOIN,
    "windowed_outer_join": JOIN,
}
QUERIES = sorted(path.stem for path in (CORPUS / "queries").glob("*.sql"))
RUNNING = [name for name in QUERIES if name not in WAITING]

CREATE_TABLE = re.compile(
    r"CREATE TABLE (\w+)\s*(?:\((.*?)\))?\s*(?:WITH\s*\(([^()]*)\))?$", re.DOTALL | re.IGNORECASE
)
CREATE_VIEW = re.compile(r"CREATE VIEW (\w+)", re.IGNORECASE)
INSERT = re.compile(r"INSERT INTO (\w+)\s+(.*)", re.DOTALL | re.IGNORECASE)
WATERMARK = re.compile(r"watermark for (\w+)(?:\s+AS\s+\((.*)\))?\s*$", re.DOTALL | re.IGNORECASE)
OPTION = re.compile(r"'?([\w.]+)'?\s*=\s*'([^']*)'")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")


@dataclass
class Adapted:
    """A file of the corpus in our words."""

    name: str
    statements: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)  # what it defines, under names of its own
    columns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # of its sinks
    inserted: dict[str, list[str]] = field(default_factory=dict)  # the queries of each sink

    @property
    def sql(self) -> str:
        text = ";\n".join([*self.statements, *self._views()]) + ";\n"
        for name, own in self.renamed.items():
            text = re.sub(rf"(?<![\w'/.]){name}(?![\w'(])", own, text)
        return text

    def _views(self) -> Iterator[str]:
        for sink, queries in self.inserted.items():
            query = "\nUNION ALL\n".join(queries)
            columns = self.columns[sink]
            if columns:
                names = ", ".join(f"`{name}`" for name, _ in columns)
                # As the other engine, give a sink texts where its column is one.
                chosen = ", ".join(
                    f"CAST(`{name}` AS STRING) AS `{name}`" if type == "TEXT" else f"`{name}`"
                    for name, type in columns
                )
                kind = f"VIEW {self.name}__{sink}" if sink in self.renamed else None
                yield f"CREATE VIEW {self.name}__of_{sink} ({names}) AS\n{query}"
                query = f"SELECT {chosen} FROM {self.name}__of_{sink}"
            else:
                kind = None
            yield f"CREATE {kind or f'MATERIALIZED VIEW {self.name}'} AS\n{query}"


def adapt(name: str) -> Adapted:
    """Return a file of the corpus with its statements rewritten."""
    adapted = Adapted(name)
    text = re.sub(r"^--.*$", "", (CORPUS / "queries" / f"{name}.sql").read_text(), flags=re.M)
    for statement in filter(None, map(str.strip, text.split(";"))):
        if table := CREATE_TABLE.fullmatch(statement):
            _adapt_table(adapted, *table.groups())
        elif insert := INSERT.fullmatch(statement):
            adapted.inserted.setdefault(insert[1], []).append(insert[2])
        else:
            view = CREATE_VIEW.match(statement)
            assert view is not None, statement
            adapted.renamed[view[1]] = f"{name}__{view[1]}"
            adapted.statements.append(statement)
    return adapted


def _adapt_table(adapted: Adapted, table: str, columns: str | None, options: str | None) -> None:
    given = dict(OPTION.findall(options or ""))
    parts = [" ".join(part.split()) for part in re.split(r",(?![^(]*\))", columns or "") if part]
    if given.get("type") != "source":
        pairs = [part.split()[:2] for part in parts]
        adapted.columns[table] = [(name, type.upper()) for name, type in pairs]
        if not given:  # kept in memory for the queries of this file: a name for what is inserted
            adapted.renamed[table] = f"{adapted.name}__{table}"
        return
    time, delay = given.get("event_time_field"), None
    for part in list(parts):
        if watermark := WATERMARK.fullmatch(part):
            parts.remove(part)
            time, delay = watermark.groups()
    adapted.renamed[table] = f"{adapted.name}__{table}"
    lines = [_adapt_column(part, time) for part in parts]
    if time is not None:
        lines.append(f"WATERMARK FOR {time} AS {delay or f'{time} - INTERVAL 0 SECONDS'}")
    topic = Path(given["path"]).stem
    adapted.statements.append(
        f"CREATE STREAM {table} ({', '.join(lines)}) WITH (topic = '{topic}')"
    )


def _adapt_column(text: str, time: str | None) -> str:
    text = re.sub(r"\bunsigned\b", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\bTEXT\b", "STRING", text, flags=re.IGNORECASE)
    must_be_there = text.split()[0] == time and "NOT NULL" not in text.upper()
    return f"{text} NOT NULL" if must_be_there else text


def expected_rows(name: str) -> Counter[str]:
    """Return the rows that the other engine gives: those left when all changes are made."""
    query = (CORPUS / "queries" / f"{name}.sql").read_text()
    key = re.match(r"--pk=(\S+)", query)
    rows: Counter[str] = Counter()
    by_key: dict[tuple[Any, ...], Any] = {}
    for line in (CORPUS / "golden_outputs" / f"{name}.json").read_text().splitlines():
        row = json.loads(line)
        if "op" not in row:
            rows[plain(row)] += 1
        elif key is None:
            rows.update([plain(row["after"])] if row["after"] else [])
            rows.subtract([plain(row["before"])] if row["before"] else [])
        else:
            names = key[1].split(",")
            if row["before"]:
                by_key.pop(tuple(row["before"][each] for each in names), None)
            if row["after"]:
                by_key[tuple(row["after"][each] for each in names)] = row["after"]
    rows.update(map(plain, by_key.values()))
    return +rows


def plain(row: dict[str, Any]) -> str:
    """Return a row so that equal ones are equal, whatever JSON makes of a time."""
    return repr(sorted((name, _moment(value)) for name, value in row.items()))


def _moment(value: Any) -> Any:
    if isinstance(value, str) and TIME.fullmatch(value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value


def append(h: Harness, share: slice) -> None:
    """Append a share of every input, its records by turns to all partitions."""
    for topic in sorted({stream.topic for stream in h.project.streams}):
        lines = (CORPUS / "inputs" / f"{topic}.json").read_bytes().splitlines()[share]
        partitions = sorted(h.log.extents(topic))
        # Long after all of them, so that their own times are what moves the clock.
        h.append(topic, [lines[0]], partition=0, arrival=datetime(2024, 1, 1, tzinfo=UTC))
        for at, partition in enumerate(partitions):
            mine = [line for number, line in enumerate(lines) if number % len(partitions) == at]
            h.log.append(topic, records(mine[not at :]), partition=partition.number)


def test_the_list_of_waiting_queries_is_exact() -> None:
    """A query that waits is refused, but for those whose other statements are all that we lack."""
    assert set(WAITING) <= set(QUERIES)
    accepted = []
    for name in WAITING:
        try:
            parse_project({f"{name}.sql": adapt(name).sql})
        except (DefinitionError, AssertionError):
            continue
        accepted.append(name)
    assert accepted == []


@pytest.mark.spark
@pytest.mark.parametrize("way", ["straight", "stopped", "partitions"])
def test_the_answers_are_those_of_the_other_engine(way: str) -> None:
    assert len(RUNNING) >= 15
    definitions = "".join(adapt(name).sql for name in RUNNING)
    with harness(definitions, partitions=3 if way == "partitions" else 1) as h:
        if way == "stopped":
            append(h, slice(0, 60))
            h.turn(gear="short")
            h.restart()
            append(h, slice(60, None))
        else:
            append(h, slice(None))
        h.turn(gear="long" if way == "straight" else "short")
        found = {name: Counter(map(plain, h.rows(name))) for name in RUNNING}
        assert [name for name in RUNNING if found[name] != expected_rows(name)] == []
