"""The engine's HTTP API: who may ask, what is answered, what is refused. No engine is needed."""

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import httpx
import pytest
from fastapi import FastAPI

from cli.refused import REFUSED
from headrace.errors import EngineError, QueryRefused, StoreError, Unreachable
from headrace.log import EmbeddedLog
from headrace.log.base import Log
from headrace.model.definitions import Project
from headrace.project.lock import Address
from headrace.project.serving import ServeSettings
from headrace.project.settings import Settings
from headrace.serve.client import EngineClient
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.bodies import MAX_BODY_BYTES
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.opening import opening_exports

TOKEN = "open sesame"


class Desk(StoreDesk):
    """Exports when it is told to."""

    exporting: Callable[[], object] = staticmethod(lambda: None)
    log: Log
    store: Store

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        self.exporting()
        super().export(sink, table)


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("shop")
    log, store = EmbeddedLog(folder / "log"), DuckDBStore(folder / "store.duckdb")
    desk = Desk("shop", log, store, Settings(), pipelines=list)
    desk.log, desk.store = log, store
    yield desk
    store.close()
    log.close()


@pytest.fixture(scope="module")
def shared_url(shared_desk: Desk) -> Iterator[str]:
    with serve(app_of(shared_desk)) as url:
        yield url


def app_of(desk: Desk) -> FastAPI:
    services = Services(desk, desk.log, desk.store, project=lambda: Project((), ()))
    return make_app(services, Permissions([TokenGrant.of(TOKEN, Grant("owner", Role.ADMIN))]))


@pytest.fixture
def desk(shared_desk: Desk) -> Iterator[Desk]:
    yield shared_desk
    vars(shared_desk).pop("exporting", None)


@pytest.fixture
def url(desk: Desk, shared_url: str) -> str:
    return shared_url


@pytest.fixture
def client(url: str) -> Iterator[EngineClient]:
    client = EngineClient(Address(os.getpid(), url, TOKEN, "now"))
    yield client
    client.close()


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer open", f"Basic {TOKEN}", TOKEN])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/status"),
        ("POST", "/v1/sql"),
        ("POST", "/v1/export"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/metrics"),
        ("GET", "/x"),
    ],
)
def test_nothing_is_answered_without_the_token(
    url: str, given: str | None, method: str, path: str
) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = httpx.request(method, url + path, headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.json()["message"].startswith("the token is missing, wrong or has expired")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_page_that_rebinds_its_name_to_this_machine_is_refused(url: str, host: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": host}
    answer = httpx.get(f"{url}/v1/status", headers=headers, trust_env=False)
    assert answer.status_code == 400
    assert "is not served here" in answer.text


def test_a_body_over_the_limit_is_refused(url: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = json.dumps({"sql": "SELECT 1 -- " + "x" * MAX_BODY_BYTES})
    answer = httpx.post(f"{url}/v1/sql", content=body, headers=headers, trust_env=False)
    assert answer.status_code == 413


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"sql": 1}', '{"sql": "x", "max_rows": 0}'])
def test_what_is_no_question_is_refused(url: str, body: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(f"{url}/v1/sql", content=body, headers=headers, trust_env=False)
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
    with pytest.raises(QueryRefused, match="more than 10,000 rows"):
        client.sql("FROM range(10001)", max_rows=1_000_000)


def test_status_of_a_new_store_is_empty_and_has_the_bounds(client: EngineClient) -> None:
    found = client.status()
    assert (found["project"], found["streams"], found["views"]) == ("shop", [], [])
    assert found["bounds"]["max_turn_records"] == Settings().max_turn_records


def test_an_export_is_what_the_store_exports(client: EngineClient, tmp_path: Path) -> None:
    path = tmp_path / "export"
    with path.open("wb") as sink:
        client.export(sink)
    with opening_exports(tmp_path) as open_export, open_export(path) as exported:
        assert exported.snapshot.units() == {"main": 0}
        assert exported.snapshot.holdings() == []
    with pytest.raises(StoreError, match="hits__v1: the store has no such table"):
        client.export(io.BytesIO(), "hits__v1")
    with pytest.raises(StoreError, match="units: the store has no such table"):
        client.export(io.BytesIO(), "units")  # the ledger's own tables are exported together


def test_of_two_exports_at_once_one_is_refused(url: str, desk: Desk) -> None:
    began, go_on = threading.Event(), threading.Event()
    desk.exporting = lambda: (began.set(), go_on.wait())
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask() -> httpx.Response:
        question = {"table": None}
        return httpx.post(f"{url}/v1/export", json=question, headers=headers, trust_env=False)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(ask)
        assert began.wait(10)
        second = ask()
        go_on.set()
        assert (second.status_code, second.json()["error"]) == (409, "EngineBusy")
        assert first.result().status_code == 200
    assert ask().status_code == 200


@pytest.mark.parametrize("body", ["", "[]", '{"table": 1}'])
def test_an_export_of_no_table_is_refused(url: str, body: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(f"{url}/v1/export", content=body, headers=headers, trust_env=False)
    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")


def test_an_engine_that_is_gone_is_out_of_reach() -> None:
    client = EngineClient(Address(1, "http://127.0.0.1:9", TOKEN, "now"))
    with pytest.raises(Unreachable, match=r"the engine \(pid 1, http://127.0.0.1:9\) does not"):
        client.status()
    client.close()


def test_a_port_that_is_taken_is_told(url: str, desk: Desk) -> None:
    taken = int(url.rpartition(":")[2])
    with (
        pytest.raises(EngineError, match=rf"127.0.0.1:{taken} cannot be served"),
        serve(app_of(desk), ServeSettings(port=taken)),
    ):
        pass


def test_an_answer_comes_with_its_types_to_who_asks_for_them(client: EngineClient) -> None:
    table = client.table("SELECT 1::SMALLINT AS a, 2.50::DECIMAL(9,2) AS b, INTERVAL 1 DAY AS c")
    types = [str(field.type) for field in table.schema]
    assert types == ["int16", "decimal128(9, 2)", "month_day_nano_interval"]
    assert table["a"].to_pylist() == [1]
    with pytest.raises(QueryRefused, match="there is no table nowhere; there are: none yet"):
        client.table("FROM nowhere")
    with pytest.raises(QueryRefused, match="more than 1 row;"):
        client.table("FROM range(2)", max_rows=1)
