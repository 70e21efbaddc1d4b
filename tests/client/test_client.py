"""The Python client: requests that are tried again, errors of the tree, subscriptions that go on.

Method: rows and subscriptions against the real server over a real store; appends against an
application that keeps the API's rule of idempotency, and fails as a test says.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from serve.serving import READ, Server, serving
from serve.subscribing import folded, shown
from serve.values_view import fill

import headrace
from headrace.client import AsyncClient, Changes, Client, Fold, Progress, Reset
from headrace.client.asking import append_requests, pause_before_retry, where_texts
from headrace.client.messages import parse_message
from headrace.client.resuming import Resuming
from headrace.errors import (
    AccessDenied,
    EngineBusy,
    EngineError,
    QueryRefused,
    TokenRefused,
    TokenTooOld,
    TopicNotFound,
    Unreachable,
    UsageError,
    ViewNotFound,
)
from headrace.project.lock import Holder, hold_engine_lock, publish_address
from headrace.serve.http.server import serve
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import History


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("things")
    store = DuckDBStore(folder / "store.duckdb")
    fill(store)
    with serving(store, folder) as server:
        yield server
    store.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, READ) as client:
        yield client


def test_headrace_alone_loads_no_library() -> None:
    code = (
        "import sys, headrace\n"
        "heavy = {'httpx', 'websockets', 'pyarrow', 'duckdb', 'pyspark'}\n"
        "assert not heavy & set(sys.modules)\n"
        "assert headrace.Client.__name__ == 'Client'\n"
        "assert not {'pyarrow', 'duckdb', 'pyspark'} & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with pytest.raises(AttributeError, match="no attribute Nothing"):
        _ = headrace.Nothing


def test_rows_are_read_with_values_of_python(client: Client) -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 1, UTC)
    for where in (
        {"word": "it's"},
        {"n": (">", 5), "yes": True},
        {"price": Decimal("12.50"), "moment": moment, "raw": b"\x00\xff"},
        {'x,"y"; DROP': "q"},
        ["n>5"],
        "n>5",
    ):
        rows = client.rows("things", where=where, columns=["n", 'x,"y"; DROP'])
        assert list(rows) == [{"n": 2**62, 'x,"y"; DROP': "q"}], where
    assert [row["n"] for row in client.rows("things", where={"word": "null"})] == [-5]
    assert [row["n"] for row in client.rows("things", where={"word": None})] == [None]
    rows = client.rows("things", order=["-n"], limit=2, columns=["n"])
    assert [row["n"] for row in rows] == [2**62, 0]
    assert (rows.commit, rows.position, rows.more) == (2, "clicks/0@10", True)
    assert (rows.version, rows.state, rows.watermark_us, len(rows)) == ("v1", "live", 10_000, 2)


def test_errors_are_those_of_the_tree(server: Server, client: Client) -> None:
    with pytest.raises(ViewNotFound, match="did you mean things"):
        client.rows("thing")
    with pytest.raises(UsageError, match="there is no column"):
        client.rows("things", where={"x": 1})
    with pytest.raises(UsageError, match="is no operator"):
        client.rows("things", where={"n": ("~", 1)})
    with pytest.raises(EngineBusy, match="not yet at clicks/0@99"):
        client.rows("things", min_position="clicks/0@99", timeout_s=0.01)
    with pytest.raises(QueryRefused, match="only one reading statement"):
        client.query("DROP TABLE x")
    with pytest.raises(TokenRefused, match="is not a resume token"):
        next(client.subscribe("things", after="x"))
    with pytest.raises(ViewNotFound):
        next(client.subscribe("nothing"))
    with pytest.raises(UsageError, match="there is no column"):
        next(client.subscribe("things", where={"x": 1}))
    for call in (lambda c: c.rows("things"), lambda c: next(c.subscribe("things"))):
        with Client(server.url, "wrong") as stranger, pytest.raises(AccessDenied):
            call(stranger)
        with Client("http://127.0.0.1:1", "t") as alone, pytest.raises(Unreachable):
            call(alone)


def test_queries(client: Client) -> None:
    answer = client.query("SELECT n, word FROM things WHERE n < 0")
    assert list(answer) == [{"n": -5, "word": "null"}]


def test_the_address_comes_from_arguments_the_environment_or_a_project(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="HEADRACE_URL"):
        Client()
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        Client("localhost:80")
    monkeypatch.setenv("HEADRACE_URL", f"{server.url}/")
    monkeypatch.setenv("HEADRACE_TOKEN", READ)
    with Client() as client:
        assert len(client.rows("things")) == 4
    runtime = tmp_path / ".headrace"
    with (
        hold_engine_lock(runtime) as holder,
        publish_address(runtime, server.url, holder, READ),
        Client.of_project(tmp_path) as client,
    ):
        assert len(client.rows("things")) == 4


def test_an_address_that_a_dead_engine_left_is_not_taken(tmp_path: Path) -> None:
    """Its port may be another program's by now, which must not be sent the token."""
    runtime = tmp_path / ".headrace"

    def find() -> str:
        with pytest.raises(Unreachable) as none:
            Client.of_project(tmp_path)
        with pytest.raises(Unreachable):
            AsyncClient.of_project(tmp_path)
        return str(none.value).removeprefix(f"{tmp_path}: ")

    none = "no engine serves this project; start one with `headrace run`"
    assert find() == none
    with hold_engine_lock(runtime) as holder:
        assert find() == (
            f"the engine (pid {holder.pid}, since {holder.started}) is still starting; ask again "
            f"in a moment"
        )
        dead = Holder(holder.pid, "2026-01-01T00:00:00Z")
        with publish_address(runtime, "http://127.0.0.1:1", dead, "secret"):
            assert "is still starting" in find()
        (runtime / "engine.json").write_text("{}")
        assert "cannot be read" in find()
    address = {"pid": 1, "url": "http://127.0.0.1:1", "token": "secret", "started": "now"}
    (runtime / "engine.json").write_text(json.dumps(address))
    assert find() == none


class Topics:
    """What `POST /v1/topics/{topic}` promises, and failures on the way."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.fails: list[Callable[[], Response | None]] = []
        self.calls = 0

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/v1/topics/{topic}")
        async def append(topic: str, request: Request) -> Response:
            self.calls += 1
            if topic != "clicks":
                body = {"error": "TopicNotFound", "message": f"there is no topic {topic}"}
                return JSONResponse(body, 404)
            known = request.headers.get("idempotency-key")
            if known is None or known not in self.answers:
                lines = [json.loads(line) for line in (await request.body()).splitlines()]
                first = len(self.records)
                self.records += lines
                end = len(self.records)
                self.answers[known or ""] = {
                    "topic": topic,
                    "records": len(lines),
                    "partitions": [{"partition": 0, "first_offset": first, "end_offset": end}],
                    "position": f"clicks/0@{end}",
                    "without_key": 0 if request.query_params.get("key") else len(lines),
                }
            if self.fails and (answer := self.fails.pop(0)()) is not None:
                return answer
            return JSONResponse(self.answers[known or ""])

        return app


@contextmanager
def topics() -> Iterator[tuple[Topics, Client]]:
    made = Topics()
    with serve(made.app()) as url, Client(url, "t", timeout_s=5) as client:
        yield made, client


def busy(status: int) -> Response:
    return JSONResponse({"error": "EngineBusy", "message": "later"}, status)


def test_what_fails_on_its_way_is_appended_once() -> None:
    with topics() as (made, client):
        made.fails = [lambda: busy(503), lambda: busy(429)]
        appended = client.append("clicks", [{"page": "/"}, {"page": "/shop"}], key="page")
        assert (appended.records, appended.position) == (2, "clicks/0@2")
        assert (appended.without_key, made.calls) == (0, 3)
        assert made.records == [{"page": "/"}, {"page": "/shop"}]
        assert client.append("clicks", {"page": "/"}).position == "clicks/0@3"
        with pytest.raises(TopicNotFound):
            client.append("click", [{}])


def test_without_idempotency_only_what_stored_nothing_is_sent_again() -> None:
    with topics() as (made, client):
        made.fails = [lambda: busy(503)]
        with pytest.raises(EngineBusy):
            client.append("clicks", [{"page": "/"}], idempotent=False)
        assert made.calls == 1


def test_many_records_go_in_several_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.client.asking.MAX_BATCH_RECORDS", 3)
    with topics() as (made, client):
        appended = client.append("clicks", ({"n": n} for n in range(8)))
        assert (made.calls, appended.records, appended.position) == (3, 8, "clicks/0@8")
        assert appended.partitions == ({"partition": 0, "first_offset": 0, "end_offset": 8},)
        assert made.records == [{"n": n} for n in range(8)]


def test_values_that_json_lacks_are_written_as_rows_have_them() -> None:
    record = {"at": datetime(2026, 1, 1, tzinfo=UTC), "price": Decimal("1.50"), "raw": b"\xff"}
    [request] = append_requests("a/b", [record], key=None, partition=2, idempotent=True)
    assert request.path == "/v1/topics/a%2Fb"
    assert request.parameters == [("partition", "2")]
    assert json.loads(request.content or b"") == {
        "at": "2026-01-01T00:00:00Z",
        "price": "1.50",
        "raw": "/w==",
    }
    with pytest.raises(UsageError, match="cannot be appended"):
        list(append_requests("t", [{"x": object()}], key=None, partition=None, idempotent=True))


def test_pauses_grow_and_are_bounded() -> None:
    pauses = [pause_before_retry(attempt) for attempt in range(10)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[-1] == 5.0
    assert pause_before_retry(0, "2") == 2.0
    assert pause_before_retry(0, "Tue, 17 Nov 2026 10:00:00 GMT") == 0.1


def resuming(**others: Any) -> Resuming:
    asked: dict[str, Any] = {
        "after": None,
        "where": (),
        "columns": (),
        "snapshot": True,
        "patience_s": 60,
    }
    return Resuming("hits", **{**asked, **others})


def said(type: str, **body: Any) -> str:
    return json.dumps({"type": type, **body})


RESET = said("reset", view="hits", version="v1", columns=[], key=[])
PROGRESS = said("progress", token="t1", commit=1, position="", watermark_us=None)


def page(token: str | None) -> str:
    return said("changes", changes=[], token=token, commit=1)


def test_a_subscription_goes_on_behind_what_it_has() -> None:
    state = resuming(where={"k": "a b"}, columns=["x,y"])
    asked = "/v1/views/hits/changes?where=k%3D%27a+b%27&columns=%22x%2Cy%22"
    assert state.path == asked
    assert isinstance(state.received(RESET), Reset)
    assert isinstance(state.received(page(None)), Changes)
    assert state.path == asked, "within the first rows it begins anew"
    state.received(page("t0"))
    assert isinstance(state.received(PROGRESS), Progress)
    assert state.path == f"{asked}&after=t1"
    assert state.received(said("error", error="TooSlow", message="read faster")) is None
    assert state.ended(4408, "") == 0.1
    assert state.path == f"{asked}&after=t1"
    assert state.received(said("error", error="TokenTooOld", message="gone")) is None
    assert state.path == asked


def test_what_cannot_go_on_ends() -> None:
    for error, raised in (("TokenTooOld", TokenTooOld), ("ViewNotFound", ViewNotFound)):
        with pytest.raises(raised):
            resuming(after="old").received(said("error", error=error, message=""))
    began = resuming(snapshot=False)
    assert began.path == "/v1/views/hits/changes?snapshot=false"
    began.received(PROGRESS)
    with pytest.raises(TokenTooOld):  # changes would be missed, and no rows come to make up for it
        began.received(said("error", error="TokenTooOld", message=""))
    for code, final in ((4401, AccessDenied), (4403, AccessDenied), (4404, ViewNotFound)):
        with pytest.raises(final):
            resuming().ended(code, "why")
    with pytest.raises(EngineError, match="later release"):
        parse_message(said("new"))


def test_an_engine_that_stays_away_is_given_up() -> None:
    now = 0.0
    state = resuming(now=lambda: now)
    state.received(PROGRESS)
    assert [state.ended(None, "refused") for _ in range(3)] == [0.1, 0.2, 0.4]
    state.received(PROGRESS)
    assert state.ended(1012, "") == 0.1
    now = 61.0
    with pytest.raises(Unreachable, match="refused"):
        state.ended(None, "refused")
    with pytest.raises(Unreachable):
        resuming().ended(None, "the first connection is not tried again")


def test_a_change_that_does_not_fit_is_told() -> None:
    fold = Fold()
    change = {"sign": -1, "closed": False, "key": {"k": [1]}, "row": {"n": 1}}
    state = resuming()
    message = state.received(said("changes", changes=[change], token="t", commit=1))
    assert message is not None
    with pytest.raises(EngineError, match="a change of sign -1 does not fit"):
        fold.take(message)


def test_conditions_as_texts() -> None:
    assert where_texts({"a": None, "b": ("!=", "x'y"), "c": 1.5, "d": False}) == [
        "a=null",
        "b!='x''y'",
        "c=1.5",
        "d=false",
    ]


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[Server, History]]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "tumbling", random.Random(1))
    for _ in range(5):
        history.turn()
    with serving(store, tmp_path) as server:
        yield server, history
    store.close()


def test_rows_are_kept_up_to_date(growing: tuple[Server, History]) -> None:
    server, history = growing
    with Client(server.url, READ) as client:
        folds = client.fold("hits")
        for _ in range(5):
            history.turn()
            server.commits.note()
            commit, rows = shown(history.store)
            while (fold := next(folds)).commit != commit:
                pass
            assert folded(fold) == rows
            assert fold.position == f"clicks/0@{history.offset - 10}"
        folds.close()  # type: ignore[attr-defined]


def test_the_asynchronous_client_does_the_same(growing: tuple[Server, History]) -> None:
    server, history = growing

    async def run() -> None:
        async with AsyncClient(server.url, READ) as client:
            rows = await client.rows("hits", order=["-most"], limit=3)
            assert rows.commit == 6
            with pytest.raises(ViewNotFound):
                await client.rows("hit")
            with pytest.raises(ViewNotFound):
                async for _ in client.subscribe("hit"):
                    pass
            assert len(await client.query("SELECT 1 AS one")) == 1
            async for fold in client.fold("hits"):
                commit, expected = shown(history.store)
                if fold.commit == commit:
                    assert folded(fold) == expected
                    if commit > 9:
                        break
                    history.turn()
                    server.commits.note()

    asyncio.run(run())


def test_the_asynchronous_client_appends_once() -> None:
    made = Topics()
    made.fails = [lambda: busy(503)]

    async def run(url: str) -> None:
        async with AsyncClient(url, "t") as client:
            appended = await client.append("clicks", [{"n": 1}])
            assert (appended.records, appended.position) == (1, "clicks/0@1")

    with serve(made.app()) as url:
        asyncio.run(run(url))
    assert (made.calls, made.records) == (2, [{"n": 1}])
