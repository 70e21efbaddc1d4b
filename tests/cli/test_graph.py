"""`headrace graph`: definitions and topics as Mermaid, DOT and JSON, without Spark.

Method: the text of a small project is compared as a whole; odd names are drawn, and the text is
read again by rules that are written down here, since no Graphviz is needed to run the tests.
"""

import re
from pathlib import Path

from cli.commands import Run
from headrace.model import Project, Sink, Stream, View
from headrace.model.nodes import Named, Scan
from headrace.model.nodes import Project as Select
from headrace.model.scalars import Scalar
from headrace.project.drawing import draw, to_dot, to_mermaid
from headrace.sql import parse_project

SQL = """\
CREATE STREAM orders (id STRING, shop STRING) WITH (topic = 'orders.v1', format = 'json');
CREATE STREAM eu AS SELECT * FROM orders WHERE shop = 'eu';
CREATE VIEW both AS SELECT id, shop FROM eu UNION ALL SELECT id, shop FROM orders;
CREATE MATERIALIZED VIEW per_shop AS SELECT shop, count(*) AS n FROM both GROUP BY shop;
CREATE SINK told FROM per_shop WITH (topic = 'per-shop');
CREATE STREAM back (shop STRING) WITH (topic = 'per-shop', format = 'json');
"""
MERMAID = """\
flowchart LR
  topic__orders_2e_v1[("topic orders.v1")]
  definition_orders(["stream orders"])
  topic__per_2d_shop[("topic per-shop")]
  definition_back(["stream back"])
  definition_eu[/"derived stream eu"/]
  definition_both["view both"]
  definition_per_shop[["materialized view per_shop"]]
  definition_told{{"sink told"}}
  topic__orders_2e_v1 --> definition_orders
  topic__per_2d_shop --> definition_back
  definition_orders --> definition_eu
  definition_eu --> definition_both
  definition_orders --> definition_both
  definition_both --> definition_per_shop
  definition_per_shop --> definition_told
  definition_told --> topic__per_2d_shop
"""
ID = r"[A-Za-z][A-Za-z0-9_]*"
TEXT = r'"(?:[^"\\\n]|\\["\\n])*"'
#: The lines that this project writes of DOT: https://graphviz.org/doc/info/lang.html
DOT = re.compile(
    rf"digraph headrace \{{\n  rankdir=LR;\n"
    rf"(?:  {ID} \[label={TEXT}, shape=\w+\];\n)*"
    rf"(?:  {ID} -> {ID}(?: \[label={TEXT}\])?;\n)*\}}"
)
LABEL = r'"[^"<>&`\\\n]*"'
FLOWCHART = re.compile(
    rf"flowchart LR(?:\n  {ID}[\[({{/]+{LABEL}[\])}}/]+)*"
    rf"(?:\n  {ID} -->(?:\|{LABEL}\|)? {ID})*"
)


def write(folder: Path, sql: str) -> Path:
    (folder / "headrace.toml").write_text("")
    (folder / "a.sql").write_text(sql)
    return folder


def test_a_project_as_mermaid_dot_and_json(tmp_path: Path, headrace: Run) -> None:
    folder = write(tmp_path, SQL)
    answer = headrace("graph", "-p", folder)
    assert (answer.code, answer.out, answer.err) == (0, MERMAID, "")
    dot = headrace("graph", "--format", "dot", "-p", folder).out
    assert DOT.fullmatch(dot.removesuffix("\n"))
    assert '  topic__orders_2e_v1 [label="topic orders.v1", shape=cylinder];\n' in dot
    assert dot.count(" -> ") == MERMAID.count(" --> ")
    (graph,) = headrace("graph", "--json", "-p", folder).rows
    assert graph["nodes"][0] == {"id": "topic__orders_2e_v1", "kind": "topic", "name": "orders.v1"}
    assert len(graph["edges"]) == MERMAID.count(" --> ")
    ids = {node["id"] for node in graph["nodes"]}
    assert {each[end] for each in graph["edges"] for end in ("source", "target")} <= ids


def test_side_topics_are_drawn_when_asked_for(tmp_path: Path, headrace: Run) -> None:
    out = headrace("graph", "--sides", "-p", write(tmp_path, SQL)).out
    assert FLOWCHART.fullmatch(out.removesuffix("\n"))
    assert '  definition_per_shop -->|"late"| topic__per_5f_shop_2e_late\n' in out
    assert '  definition_orders -->|"dead"| topic__orders_2e_dead\n' in out


def test_refused_definitions_are_told_with_their_places(tmp_path: Path, headrace: Run) -> None:
    answer = headrace("graph", "-p", write(tmp_path, "DROP x;"))
    assert (answer.code, answer.out) == (1, "")
    assert "  1 | DROP x;\n    | ^\n1 problem" in answer.err


def test_a_written_stream_leads_to_its_topic() -> None:
    text = (
        "CREATE STREAM s (a STRING);"
        "CREATE STREAM x WITH (topic = 'out') AS SELECT a FROM s;"
        "CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM x GROUP BY a;"
    )
    edges = {(edge.source, edge.target) for edge in draw(parse_project({"a.sql": text})).edges}
    assert edges == {
        ("topic_s", "definition_s"),
        ("definition_s", "definition_x"),
        ("definition_x", "topic_out"),
        ("definition_x", "definition_v"),
    }


def test_odd_names_are_escaped_and_stay_apart() -> None:
    names = [
        'a"b',
        "a<b>&c",
        "end",
        "a_b",
        "a.b",
        "a_2e_b",
        "_a_2e_b",
        "A.B",
        "日本",
        "a\\b",
        "x\ny",
        "#35;",
        "`q`",
    ]
    streams = tuple(Stream(name, (), topic=name) for name in names)
    views = tuple(
        View(f"v {name}", Select(Scan(name), (Named("a", Scalar.column("a")),))) for name in names
    )
    sinks = tuple(Sink(f"k {name}", f"v {name}", "out") for name in names)
    graph = draw(Project(streams, views, sinks), sides=True)
    # A topic, a stream, a view and a sink each; one topic that all sinks write; three side topics.
    assert len(graph.nodes) == 4 * len(names) + 1 + 3 * len(names)
    assert DOT.fullmatch(to_dot(graph))
    assert FLOWCHART.fullmatch(to_mermaid(graph))


def test_the_graph_of_the_manual_is_what_is_printed(tmp_path: Path, headrace: Run) -> None:
    sql = (
        "CREATE STREAM orders (shop STRING, amount INT) WITH (topic = 'orders', format = 'json');\n"
        "CREATE VIEW big AS SELECT * FROM orders WHERE amount > 100;\n"
        "CREATE MATERIALIZED VIEW per_shop AS SELECT shop, count(*) AS n FROM big GROUP BY shop;\n"
        "CREATE SINK told FROM per_shop WITH (topic = 'per-shop');\n"
    )
    page = Path(__file__).parents[2] / "docs" / "operations.md"
    assert headrace("graph", "-p", write(tmp_path, sql)).out in page.read_text()
