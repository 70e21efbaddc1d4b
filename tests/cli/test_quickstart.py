"""examples/quickstart: the views hold what a plain query over the same JSON gives.

Method: the commands of its README run as real processes; the expected rows come from DuckDB, which
reads the file itself and knows nothing of streams, turns or Spark.
"""

import re
import shlex
import shutil
from pathlib import Path

import duckdb
import pytest
from broker import Broker

from cli.commands import Run

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"

PLAIN = """
WITH payments AS (
  FROM read_json('{file}', columns = {{
    id: 'VARCHAR', card: 'VARCHAR', amount: 'DECIMAL(12,2)', country: 'VARCHAR', ts: 'TIMESTAMP'}}))
"""
PLAIN_SPEND = """
SELECT strftime(time_bucket(INTERVAL 1 MINUTE, ts), '%Y-%m-%dT%H:%M:%SZ') AS minute, country,
  count(*) AS n, CAST(sum(amount) AS VARCHAR) AS total
FROM payments GROUP BY ALL ORDER BY minute, country
"""
PLAIN_LARGE = """
SELECT card, count(*) AS n, CAST(sum(amount) AS VARCHAR) AS total,
  CAST(max(amount) AS VARCHAR) AS largest, epoch_us(min(ts)) AS first_us
FROM payments WHERE amount >= 20 GROUP BY card HAVING count(*) > 1 ORDER BY card
"""


def plain(query: str) -> list[dict[str, object]]:
    text = PLAIN.format(file=QUICKSTART / "payments.jsonl") + query
    return duckdb.sql(text).to_arrow_table().to_pylist()


def on_kafka(folder: Path, broker: Broker) -> None:
    """Move the log of a project to Kafka: three lines of headrace.toml."""
    toml = folder / "headrace.toml"
    toml.write_text(
        toml.read_text()
        + f"""
[log]
kind = "kafka"
prefix = "{folder.parent.name}."
[log.client]
"bootstrap.servers" = "{broker.bootstrap}"
"""
    )


@pytest.mark.spark
@pytest.mark.parametrize("log", ["embedded", "kafka"])
def test_the_readme_runs_and_the_views_equal_a_plain_query(
    tmp_path: Path, process: Run, headrace: Run, request: pytest.FixtureRequest, log: str
) -> None:
    folder = tmp_path / "quickstart"
    shutil.copytree(QUICKSTART, folder, ignore=shutil.ignore_patterns(".headrace"))
    if log == "kafka":
        on_kafka(folder, request.getfixturevalue("broker"))
    blocks = re.findall(r"```sh\n(.*?)```", (QUICKSTART / "README.md").read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert [command.split()[:2] for command in commands] == [
        ["headrace", "append"],
        ["headrace", "run"],
        ["headrace", "sql"],
        ["headrace", "audit"],
        ["headrace", "init"],
    ]
    outputs = []
    for command in commands:
        answer = process(*shlex.split(command)[1:], cwd=folder)
        assert answer.code == 0, answer.err
        outputs.append(answer.out)
    shown = re.findall(r"```text\n(.*?)```", (QUICKSTART / "README.md").read_text(), re.DOTALL)
    assert [block.split() for block in shown] == [outputs[i].split() for i in (0, 2, 3)]

    query = "SELECT minute, country, n, total FROM spend_per_minute ORDER BY minute, country"
    spend = headrace("sql", query, "--json", "-p", folder).rows
    assert len(spend) > 50
    assert spend == plain(PLAIN_SPEND)
    query = "SELECT * EXCLUDE (first_at, _events, _closed), epoch_us(first_at) AS first_us FROM"
    query += " large_payments ORDER BY card"
    large = headrace("sql", query, "--json", "-p", folder).rows
    assert len(large) > 20
    assert large == plain(PLAIN_LARGE)
