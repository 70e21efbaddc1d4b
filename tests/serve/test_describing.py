"""Definitions, graph and lateness of a project, as the API tells them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headrace.log import records
from headrace.serve.http.permissions import Role
from serve.serving_store import TOKENS, Server, bearer, serving_store

SHOP = """
CREATE STREAM payments (id STRING NOT NULL, card STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'paid', key = 'card', unique = 'id',
  unique_within = '1 hour');
CREATE STREAM raw (line STRING);
CREATE MATERIALIZED VIEW per_minute WITH (retention = '1 day') AS
SELECT window.start AS minute, count(*) AS n FROM payments GROUP BY window(ts, '1 minute');
CREATE SINK told FROM per_minute WITH (topic = 'told');
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_store(tmp_path_factory.mktemp("described"), SHOP) as served:
        served.log.create_topic("paid", partitions=1)
        # Every fourth record is three minutes older than the one before it.
        values = [
            {"id": str(n), "ts": f"2026-01-01T12:{10 + n // 4 - 3 * (n % 4 == 3):02}:00Z"}
            for n in range(40)
        ]
        served.log.append("paid", records([json.dumps(each).encode() for each in values]))
        yield served


def ask(server: Server, path: str) -> Any:
    answer = httpx.get(server.url + path, headers=bearer(TOKENS[Role.READ]), trust_env=False)
    return answer.json() | {"status": answer.status_code}


def test_definitions_have_text_columns_and_options(server: Server) -> None:
    found = ask(server, "/v1/definitions")
    payments, raw = found["streams"]
    assert payments["sql"].startswith("CREATE STREAM payments (id STRING NOT NULL")
    assert payments["columns"][0] == {"name": "id", "type": "STRING", "nullable": False}
    chosen = ("topic", "event_time", "delay_us", "key", "unique", "readers", "line")
    assert [payments[each] for each in chosen] == [
        *("paid", "ts", 10_000_000, "card", "id", ["per_minute"], 2)
    ]
    assert raw["side_topics"] == {"dead": "raw.dead"}
    (view,) = found["views"]
    assert (view["window"]["kind"], view["window"]["size_us"]) == ("tumbling", 60_000_000)
    assert view["side_topics"] == {"dead": "per_minute.dead", "late": "per_minute.late"}
    assert found["sinks"][0]["topic"] == "told"


def test_the_graph_goes_from_topics_to_sinks(server: Server) -> None:
    found = ask(server, "/v1/graph")
    edges = [(edge["from"], edge["to"]) for edge in found["edges"]]
    assert edges == [
        ("topic:paid", "stream:payments"),
        ("stream:payments", "operator:payments/deduplicate"),
        ("topic:raw", "stream:raw"),
        ("operator:payments/deduplicate", "view:per_minute"),
        ("view:per_minute", "sink:told"),
        ("sink:told", "topic:told"),
    ]
    nodes = {node["id"]: node for node in found["nodes"]}
    assert {end for edge in edges for end in edge} == set(nodes)
    assert nodes["operator:payments/deduplicate"]["stream"] == "payments"


def test_lateness_is_a_histogram_of_the_last_records(server: Server) -> None:
    found = ask(server, "/v1/streams/payments/lateness")
    assert (found["sampled_records"], found["delay_us"]) == (40, 10_000_000)
    late = sum(each["records"] for each in found["histogram"] if each["to_us"] >= 60_000_000)
    assert late == 10
    assert found["views"] == [{"view": "per_minute", "late": 10, "pairs": 40}]


def test_what_has_no_lateness_is_told_why(server: Server) -> None:
    assert ask(server, "/v1/streams/raw/lateness")["status"] == 400
    unknown = ask(server, "/v1/streams/payment/lateness")
    assert unknown["status"] == 404
    assert "did you mean payments?" in unknown["message"]
