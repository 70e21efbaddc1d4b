"""The engine's HTTP API: who may ask, what is answered, what is refused. No engine is needed."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.refused import REFUSED
from headrace.errors import EngineError, QueryRefused, Unreachable
from headrace.log import EmbeddedLog
from headrace.project.settings import Settings
from headrace.serve.api import Api
from headrace.serve.client import EngineClient
from headrace.serve.desk import StoreDesk
from headrace.serve.guard import MAX_BODY_BYTES
from headrace.serve.lock import Address
from headrace.serve.server import serve
from headrace.store.duckdb.store import DuckDBStore

TOKEN = "open sesame"


class Desk(StoreDesk):
    """Audits as it is told to."""

    auditing: Callable[..., dict[str, Any]]

    def audit(self, on_progress: Callable[[int, int], None]) -> dict[str, Any]:
        return self.auditing(on_progress)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    log, store = EmbeddedLog(tmp_path / "log"), DuckDBStore(tmp_path / "store.duckdb")
    yield Desk("shop", log, store, Settings(), spark=pytest.fail, pipelines=list)
    store.close()
    log.close()


@pytest.fixture
def url(desk: Desk) -> Iterator[str]:
    with serve(Api(desk, token=TOKEN).app, port=0) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[EngineClient]:
    client = EngineClient(Address(os.getpid(), url, TOKEN, "now"))
    yield client
    client.close()


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer open", f"Basic {TOKEN}", TOKEN])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/status"), ("POST", "/sql"), ("POST", "/audit"), ("GET", "/x")],
)
def test_nothing_is_answered_without_the_token(
    url: str, given: str | None, method: str, path: str
) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = httpx.request(method, url + path, headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.json()["message"].startswith("the token is missing or wrong")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_page_that_rebinds_its_name_to_this_machine_is_refused(url: str, host: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": host}
    answer = httpx.get(f"{url}/status", headers=headers, trust_env=False)
    assert answer.status_code == 400
    assert "is not served here" in answer.text


def test_a_body_over_the_limit_is_refused(url: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = json.dumps({"sql": "SELECT 1 -- " + "x" * MAX_BODY_BYTES})
    answer = httpx.post(f"{url}/sql", content=body, headers=headers, trust_env=False)
    assert answer.status_code == 413


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"sql": 1}', '{"sql": "x", "max_rows": 0}'])
def test_what_is_no_question_is_refused(url: str, body: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(f"{url}/sql", content=body, headers=headers, trust_env=False)
    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")


def test_values_of_all_types_come_through_unharmed(client: EngineClient) -> None:
    answer = client.sql(
        "SELECT 1 AS i, sum(2) AS h, 12.50::DECIMAL(9,2) AS d, 'nan'::DOUBLE AS n, NULL AS z, "
        "TIMESTAMPTZ '2026-01-01 12:00:00Z' AS t, DATE '2026-01-01' AS y, 'ab'::BLOB AS b, "
        "[1, 2] AS l, {'a': true} AS s, 1 AS i"
    )
    names = [column["name"] for column in answer["columns"]]
    assert names == ["i", "h", "d", "n", "z", "t", "y", "b", "l", "s", "i"]
    day = "2026-01-01"
    assert answer["rows"] == [
        [1, 2, "12.50", "nan", None, f"{day}T12:00:00Z", day, "YWI=", [1, 2], {"a": True}, 1]
    ]


@pytest.mark.parametrize("statement", REFUSED)
def test_only_reading_statements_are_answered(client: EngineClient, statement: str) -> None:
    with pytest.raises(QueryRefused):
        client.sql(statement)
    assert client.sql("SELECT count(*) FROM headrace.units")["rows"] == [[1]]


def test_an_answer_longer_than_allowed_is_refused(client: EngineClient) -> None:
    with pytest.raises(QueryRefused, match="more than 5 rows; add LIMIT 5"):
        client.sql("FROM range(6)", max_rows=5)
    with pytest.raises(QueryRefused, match="more than 10000 rows"):
        client.sql("FROM range(10001)", max_rows=1_000_000)


def test_status_of_a_new_store_is_empty_and_has_the_bounds(client: EngineClient) -> None:
    found = client.status()
    assert (found["project"], found["streams"], found["views"]) == ("shop", [], [])
    assert found["bounds"]["max_turn_records"] == Settings().max_turn_records


def test_an_audit_tells_how_far_it_is_and_then_what_it_found(
    client: EngineClient, desk: Desk
) -> None:
    def auditing(on_progress: Callable[[int, int], None]) -> dict[str, Any]:
        on_progress(1, 2)
        on_progress(2, 2)
        return {"ok": True}

    desk.auditing = auditing
    told: list[tuple[int, int]] = []
    assert client.audit(lambda *progress: told.append(progress)) == {"ok": True}
    assert told == [(1, 2), (2, 2)]


def test_an_audit_that_fails_says_why(client: EngineClient, desk: Desk) -> None:
    def auditing(_: object) -> dict[str, Any]:
        raise ZeroDivisionError("no records")

    desk.auditing = auditing
    with pytest.raises(EngineError, match="no records"):
        client.audit(lambda _done, _all: None)


def test_an_audit_whose_asker_goes_away_ends_early(url: str, desk: Desk) -> None:
    ended = threading.Event()

    def auditing(on_progress: Callable[[int, int], None]) -> dict[str, Any]:
        try:
            while True:
                on_progress(1, 2)
                time.sleep(0.01)
        finally:
            ended.set()

    desk.auditing = auditing
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.stream("POST", f"{url}/audit", headers=headers, trust_env=False) as answer:
        lines = answer.iter_lines()
        assert next(lines) == '{"done": 1, "all": 2}'
        second = httpx.post(f"{url}/audit", headers=headers, trust_env=False)
        assert (second.status_code, second.json()["error"]) == (409, "EngineError")
    assert ended.wait(10)


def test_an_engine_that_is_gone_is_out_of_reach() -> None:
    client = EngineClient(Address(1, "http://127.0.0.1:9", TOKEN, "now"))
    with pytest.raises(Unreachable, match=r"the engine \(pid 1, http://127.0.0.1:9\) does not"):
        client.status()
    client.close()


def test_a_port_that_is_taken_is_told(url: str, desk: Desk) -> None:
    taken = int(url.rpartition(":")[2])
    with (
        pytest.raises(EngineError, match=rf"127.0.0.1:{taken} cannot be served"),
        serve(Api(desk, token=TOKEN).app, port=taken),
    ):
        pass
