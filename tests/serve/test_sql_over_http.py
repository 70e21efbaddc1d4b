"""POST /sql with processes behind it: what comes back, which status, and what a hang-up ends.

Method: a real server, a real pool, clients of httpx and of plain sockets.
"""

import io
import json
import os
import socket
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest

from headrace.errors import QueryRefused, QueryTooLarge, TooManyQueries
from headrace.log import EmbeddedLog
from headrace.model.definitions import Project
from headrace.project.lock import Address
from headrace.project.settings import Settings
from headrace.serve.client import EngineClient
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.serve.queries.pool import QueryPool
from serve.asking import ENDLESS, MB, Filled, is_running, wait_until

TOKEN = "open sesame"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    filled = Filled(tmp_path_factory.mktemp("store"))
    filled.turn(*((f"key {number:01000}", 1, 1, 1, 1) for number in range(3_000)))
    yield filled
    filled.store.close()


@pytest.fixture(scope="module")
def pool(filled: Filled) -> Iterator[QueryPool]:
    limits = {"workers": 1, "waiting": 1, "seconds": 60.0, "export_bytes": 2 * MB}
    with filled.pool(patience_seconds=1.0, **limits) as pool:
        wait_until(lambda: bool(pool.processes()))
        yield pool


@pytest.fixture(scope="module")
def url(filled: Filled, pool: QueryPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = EmbeddedLog(tmp_path_factory.mktemp("log"))
    desk = StoreDesk("shop", log, filled.store, Settings(), pipelines=list, queries=pool)
    services = Services(desk, log, filled.store, project=lambda: Project((), ()))
    permissions = Permissions([TokenGrant.of(TOKEN, Grant("owner", Role.ADMIN))])
    with serve(make_app(services, permissions)) as url:
        yield url
    log.close()


def client_of(url: str) -> EngineClient:
    return EngineClient(Address(os.getpid(), url, TOKEN, "now"))


def post(url: str, sql: str, **headers: str) -> httpx.Response:
    return httpx.post(
        f"{url}/v1/sql",
        json={"sql": sql},
        headers={**HEADERS, **headers},
        trust_env=False,
        timeout=90,
    )


def test_an_answer_says_its_commit_and_position(filled: Filled, url: str) -> None:
    with filled.store.open() as snapshot:
        commit = snapshot.commits()
    answer = post(url, "SELECT count(*) AS n FROM hits")
    assert answer.status_code == 200
    assert answer.headers["headrace-commit"] == str(commit)
    assert answer.headers["headrace-position"] == "web.clicks/0@20"
    told = answer.json()
    assert told.pop("milliseconds") > 0
    assert told == {
        "columns": [{"name": "n", "type": "int64"}],
        "rows": [[3_002]],
        "commit": commit,
        "positions": {"hits": "web.clicks/0@20"},
        "truncated": False,
    }
    client = client_of(url)
    assert client.table("SELECT greatest FROM hits WHERE least = 4").to_pylist() == [
        {"greatest": 5}
    ]
    client.close()


def test_what_is_refused_has_its_status(url: str) -> None:
    assert post(url, "SELECT nobody FROM hits").status_code == 400
    missing = post(url, "FROM hit")
    assert (missing.status_code, missing.json()["error"]) == (400, "QueryRefused")
    typo = httpx.post(
        f"{url}/v1/sql",
        json={"sql": "SELECT 1", "maxrows": 3},
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
    )
    assert (typo.status_code, typo.json()["error"]) == (400, "UsageError")
    assert "body.maxrows: Extra inputs are not permitted" in typo.json()["message"]
    large = post(url, "SELECT max(k) FROM hits")
    assert (large.status_code, large.json()["error"]) == (413, "QueryTooLarge")
    client = client_of(url)
    with pytest.raises(QueryTooLarge, match="headrace export hits"):
        client.sql("SELECT max(k) FROM hits")
    client.close()


def hanging_up(url: str, sql: str) -> socket.socket:
    """Send a question and return the connection, on which nothing is read."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    body = json.dumps({"sql": sql}).encode()
    head = f"POST /v1/sql HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def test_a_client_that_hangs_up_ends_its_query(pool: QueryPool, url: str) -> None:
    (pid,) = pool.processes()
    connection = hanging_up(url, ENDLESS)
    wait_until(lambda: pool._idle.empty())
    busy = post(url, "SELECT 1")
    assert (busy.status_code, busy.json()["error"]) == (429, "TooManyQueries")
    client = client_of(url)
    with pytest.raises(TooManyQueries, match="ask again in a moment"):
        client.sql("SELECT 1")
    client.close()
    connection.close()
    wait_until(lambda: not is_running(pid))
    wait_until(lambda: pool.processes() not in ([], [pid]))
    assert post(url, "SELECT 1 AS a").json()["rows"] == [[1]]


def test_an_export_of_a_view_has_all_rows_and_says_its_commit(filled: Filled, url: str) -> None:
    client = client_of(url)
    sink = io.BytesIO()
    client.export_view(sink, "Hits")
    found = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert found.num_rows == 3_002
    with filled.store.open() as snapshot:
        assert found.schema.metadata == {
            b"headrace.view": b"hits",
            b"headrace.commit": str(snapshot.commits()).encode(),
            b"headrace.position": b"web.clicks/0@20",
        }
    client.export_view(sink := io.BytesIO(), "hits.errors")
    assert pa.ipc.open_stream(sink.getvalue()).read_all().num_rows == 0
    with pytest.raises(QueryRefused, match=r"there is no table hit \(did you mean hits\?\)"):
        client.export_view(io.BytesIO(), "hit")
    client.close()


@pytest.mark.parametrize("body", ['{"view": 1}', '{"view": ["hits"]}'])
def test_an_export_of_no_view_is_refused(url: str, body: str) -> None:
    answer = httpx.post(f"{url}/v1/export", content=body, headers=HEADERS, trust_env=False)
    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")
