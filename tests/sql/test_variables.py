"""Environment variables in options: replaced there alone, and refused where they are not set."""

import pytest

from headrace.errors import DefinitionError
from headrace.model import Project
from headrace.sql import parse_project

ENVIRONMENT = {
    "STAGE": "prod",
    "LATE": "5 minutes",
    "_x1": "it's",
    "EMPTY": "",
    "NESTED": "${STAGE}",
}


def read(sql: str) -> Project:
    return parse_project({"a.sql": sql}, environment=ENVIRONMENT)


def refusal(sql: str) -> str:
    with pytest.raises(DefinitionError) as error:
        read(sql)
    return str(error.value)


@pytest.mark.parametrize(
    ("written", "topic"),
    [
        ("${STAGE}.clicks", "prod.clicks"),
        ("a-${STAGE}-${STAGE}", "a-prod-prod"),
        ("$STAGE", None),
        ("$${STAGE}", None),
        ("${NESTED}", None),  # a value is not looked at again
    ],
)
def test_a_variable_is_replaced_once(written: str, topic: str | None) -> None:
    sql = f"CREATE STREAM s (x INT) WITH (topic = '{written}')"
    if topic is not None:
        assert read(sql).streams[0].topic == topic
    else:
        literal = written.replace("$${", "${").replace("${NESTED}", "${STAGE}")
        assert f"topic '{literal}': a topic has" in refusal(sql)


def test_options_of_views_and_sinks_know_variables_too_and_queries_do_not() -> None:
    project = read(
        """
        CREATE STREAM s (x STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);
        CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '${LATE}') AS
        SELECT window.start AS a, count(*) AS n FROM s WHERE x = '${STAGE}'
        GROUP BY window(ts, '1 minute');
        CREATE SINK k FROM v WITH (topic = '${STAGE}.v');
        """
    )
    view = project.view("v")
    assert view.allowed_lateness_us == 300_000_000
    assert "${{STAGE}}" in str(view.query)  # whose braces are doubled
    assert "'${LATE}'" in view.sql  # as written
    assert project.sinks[0].topic == "prod.v"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("x.${GONE}", "option topic: the environment variable GONE is not set"),
        ("${}", "option topic: ${} names no environment variable"),
        ("${a b}", "option topic: ${a b} names no environment variable"),
        ("${STAGE", "option topic: ${ names no environment variable"),
    ],
)
def test_what_is_not_set_is_told_at_its_place(written: str, message: str) -> None:
    found = refusal(f"CREATE STREAM s (x INT)\nWITH (topic = '{written}')")
    assert found.startswith(f"a.sql:2:15: {message}")


def test_the_variables_of_the_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "CREATE STREAM s (x INT) WITH (topic = '${HEADRACE_TEST_TOPIC}')"
    monkeypatch.setenv("HEADRACE_TEST_TOPIC", "t")
    assert parse_project({"a.sql": sql}).streams[0].topic == "t"
    monkeypatch.delenv("HEADRACE_TEST_TOPIC")
    with pytest.raises(DefinitionError):
        parse_project({"a.sql": sql})
