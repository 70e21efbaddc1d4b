"""What Java was asked once is not asked again: names of classes, and what Spark says of a query."""

import pytest
from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession

from headrace.engine.spark import analysis
from headrace.engine.spark.session import start_spark
from headrace.sql import parse_project

pytestmark = pytest.mark.spark

PROJECT = """
CREATE STREAM clicks (k STRING, x BIGINT) WITH (topic = 'clicks');
CREATE MATERIALIZED VIEW totals AS SELECT k, sum(x * 77) AS total FROM clicks GROUP BY k;
"""


def test_java_is_not_asked_for_a_name_again(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = start_spark()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    found = gateway.jvm.java.util.ArrayList()
    sent: list[str] = []
    client = gateway._gateway_client
    honest = client.send_command

    def send(command: str, *arguments: object, **options: object) -> object:
        if not command.startswith(MEMORY_COMMAND_NAME):  # objects that Python let go of, any time
            sent.append(command)
        return honest(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", send)
    assert isinstance(found, JavaObject)
    assert is_instance_of(gateway, found, "java.util.List")
    assert not is_instance_of(gateway, found, "java.util.Map")
    assert len(sent) == 2, "the question alone"
    # One that nobody looked up, to show that the counting sees lookups.
    _ = gateway.jvm.java.util.TreeMap
    assert len(sent) == 3


def test_a_view_is_asked_about_once_whatever_it_is_planned_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = start_spark()
    asked: list[str] = []
    honest = SparkSession.sql

    def sql(self: SparkSession, query: str, *arguments: object) -> object:
        asked.append(query)
        return honest(self, query, *arguments)

    monkeypatch.setattr(type(spark), "sql", sql)
    project = parse_project({"a.sql": PROJECT})
    [first] = analysis.plan_view(spark, project.views[0], project.streams)
    assert len(asked) == 3, "arguments, outputs, and the fold itself"
    # With another text, and as an old version that the ledger keeps.
    again = parse_project({"b.sql": PROJECT.replace("SELECT", "-- again\nSELECT")})
    [same] = analysis.plan_view(spark, again.views[0], again.streams)
    [old] = analysis.plan_view(spark, again.views[0], again.streams, "v0", frozenset())
    assert len(asked) == 3
    assert (same.query, same.version) == (first.query, first.version)
    assert (old.query, old.version) == (first.query, "v0")
    # Another type of a column is another question.
    other = parse_project({"a.sql": PROJECT.replace("BIGINT", "DOUBLE")})
    analysis.plan_view(spark, other.views[0], other.streams)
    assert len(asked) == 6
