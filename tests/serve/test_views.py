"""Rows of views over HTTP: what is asked is answered, of one commit, and nothing else can be asked.

Method: a store with a view of every type behind the real server; answers are written out.
"""

import csv
import io
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from headrace.log import EmbeddedLog
from headrace.serve.http.routes import views
from headrace.serve.http.values import ARROW, answer_to_json, read_arrow
from headrace.serve.reading import views as reading
from headrace.serve.reading.views import Answer, Views
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import History
from headrace.testing.store.failing import shares
from headrace.testing.store.samples import (
    MAIN,
    counts,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)
from serve.serving import INGEST, READ, Server, serving
from serve.subscribing import eventually
from serve.values_view import TYPES, fill


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("things")
    store = DuckDBStore(folder / "store.duckdb")
    fill(store)
    with serving(store, folder) as server:
        yield server
    store.close()


def found(server: Server, **parameters: Any) -> list[int | None]:
    """Return which rows are found, by their `n`."""
    return [row["n"] for row in server.rows("things", columns="n", **parameters)]


def test_an_answer_says_where_it_was_read(server: Server) -> None:
    answer = server.get("/v1/views/things")
    body = answer.json()
    assert body["view"] == "things"
    assert (body["version"], body["state"], body["commit"]) == ("v1", "live", 2)
    assert (body["position"], body["watermark_us"]) == ("clicks/0@10", 10_000)
    assert (body["key"], body["more"]) == (["partition", "offset"], False)
    assert {each["name"]: each["type"] for each in body["columns"]} == {
        **TYPES,
        "_events": "BIGINT",
        "_closed": "BOOLEAN",
    }
    head = {name: value for name, value in answer.headers.items() if name.startswith("headrace")}
    assert head == {
        "headrace-view": "things",
        "headrace-version": "v1",
        "headrace-state": "live",
        "headrace-commit": "2",
        "headrace-position": "clicks/0@10",
        "headrace-watermark-us": "10000",
        "headrace-more": "false",
    }


def test_values_are_written_as_everywhere(server: Server) -> None:
    rows = server.rows("things")
    assert rows[0] == {
        "yes": True,
        "tiny": 1,
        "n": 2**62,
        "single": pytest.approx(0.1),
        "real": 1.5,
        "price": "12.50",
        "whole": 10**29,
        "word": "it's",
        "raw": "AP8=",
        "day": "2026-01-31",
        "moment": "2026-01-31T12:00:00.000001Z",
        "many": [1, None],
        "named": {"a": 1},
        "pair": {"a": 1, "b": "x"},
        "n>=1": 7,
        'x,"y"; DROP': "q",
        "naïve col": "å",
        "_events": 1,
        "_closed": True,
    }
    assert (rows[1]["real"], rows[2]["real"]) == ("nan", "inf")
    assert set(rows[3].values()) == {None, 1}


CONDITIONS = {
    "yes=true": [2**62],
    "yes!=true": [-5],
    "yes=FALSE": [-5],
    "yes=null": [0, None],
    "yes!=null": [2**62, -5],
    "tiny>=0": [2**62, 0],
    "tiny=-1": [-5],
    "n<0": [-5],
    "n = 4611686018427387904": [2**62],
    "single=0.1": [2**62],
    "real>1.5": [-5, 0],  # NaN is greater than every number
    "real<=1.5": [2**62],
    "price=12.50": [2**62],
    "price<0": [-5],
    "price=12.5000": [2**62],
    "whole=100000000000000000000000000000": [2**62],
    "word=null": [None],
    "word='null'": [-5],
    "word='it''s'": [2**62],
    "word=it's": [2**62],
    "word=": [0],
    "word=''": [0],
    "raw=AP8=": [2**62],
    "raw=": [-5],
    "day<1970-01-01": [-5],
    "day=2026-01-31": [2**62],
    "moment=2026-01-31T12:00:00.000001Z": [2**62],
    "moment=2026-01-31T13:00:00.000001+01:00": [2**62],
    "moment<2000-01-01T00:00:00": [-5],
    "moment>=2000-01-01": [2**62],
    "many!=null": [2**62, -5],
    "named=null": [0, None],
    "pair!=null": [2**62, -5],
    "n>=1=7": [2**62],
    "n>=1>7": [-5, 0],
    'x,"y"; DROP=q': [2**62],
    "naïve col=å": [2**62],
    "NAÏVE COL=å": [2**62],
    "_events=1": [2**62, -5, 0, None],
    "_closed=false": [],
}


@pytest.mark.parametrize(("where", "rows"), CONDITIONS.items(), ids=CONDITIONS)
def test_conditions(server: Server, where: str, rows: list[int | None]) -> None:
    assert found(server, where=where) == rows


def test_a_plus_that_was_not_escaped_is_understood(server: Server) -> None:
    plain = "/v1/views/things?where=moment=2026-01-31T13:00:00.000001+01:00"
    assert len(server.get(plain).json()["rows"]) == 1


def test_all_conditions_hold(server: Server) -> None:
    assert found(server, where=["n>=0", "tiny<1"]) == [0]


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        ("n", [-5, 0, 2**62, None]),
        ("-n", [2**62, 0, -5, None]),
        ("-_events,n", [-5, 0, 2**62, None]),
        ('"x,""y""; DROP"', [0, -5, 2**62, None]),
        ("-n>=1", [0, -5, 2**62, None]),
    ],
)
def test_orders(server: Server, order: str, rows: list[int | None]) -> None:
    assert found(server, order=order) == rows


def test_a_limit_leaves_rows_out_and_says_so(server: Server) -> None:
    for limit, more in ((1, True), (3, True), (4, False), (10_000, False)):
        body = server.get("/v1/views/things", params={"limit": limit, "order": "n"}).json()
        assert (len(body["rows"]), body["more"]) == (min(limit, 4), more)


def test_an_answer_is_bounded_in_bytes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_READ_BYTES", 1)
    body = server.get("/v1/views/things").json()
    assert (len(body["rows"]), body["more"]) == (1, True)


def test_columns_are_chosen_in_their_order(server: Server) -> None:
    params = {"columns": ['WORD,"x,""y""; DROP"', "_closed"], "limit": 1}
    body = server.get("/v1/views/things", params=params).json()
    assert body["rows"] == [{"word": "it's", 'x,"y"; DROP': "q", "_closed": True}]
    assert [each["name"] for each in body["columns"]] == ["word", 'x,"y"; DROP', "_closed"]


def test_csv_and_arrow_are_the_same_as_json(server: Server) -> None:
    rows = server.rows("things")
    arrow = server.get("/v1/views/things", params={"format": "arrow"})
    assert arrow.headers["content-type"] == ARROW
    table = read_arrow(arrow.content)
    values = answer_to_json(table)["rows"]
    names = table.column_names
    assert [dict(zip(names, row, strict=True)) for row in values] == rows
    answer = server.get("/v1/views/things", headers={"Accept": "text/csv;q=0.9, */*"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["headrace-commit"] == "2"
    head, *lines = csv.reader(io.StringIO(answer.text, newline=""))
    assert head == names
    for line, row in zip(lines, rows, strict=True):
        assert line == [as_csv(value) for value in row.values()]


def as_csv(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | list | dict) else str(value)


REFUSED = {
    "where=nothing=1": "there is no column 'nothing'",
    "where=wrd=1": "(did you mean word?)",
    "where=n": "has no operator",
    "where=": "has no operator",
    "where==1": "there is no column ''",
    "where=n=1.5": "'1.5' is no value of column n, which is BIGINT",
    "where=n=9223372036854775808": "is no value of column n",
    "where=n='5 OR 1=1'": "is no value of column n",
    "where=tiny=128": "is no value of column tiny",
    "where=single=1e39": "is no value of column single",
    "where=real=nan": "is no value of column real",
    "where=real=1_0": "is no value of column real",
    "where=price=1.001": "is no value of column price",
    "where=price=100000000": "is no value of column price",
    "where=yes=1": "true or false",
    "where=raw=!": "in base64",
    "where=day=today": "write 2026-01-31",
    "where=moment=noon": "write 2026-01-31T12:00:00Z",
    "where=many=[1]": "can be compared with null only",
    "where=n<null": "null has no order",
    "order=many": "has no order",
    "order=-": "there is no column",
    "order=n;DROP TABLE things": "there is no column",
    "columns=n,n": "asked for twice",
    "columns=*": "there is no column '*'",
    "columns=count(*)": "there is no column 'count(*)'",
    'columns="n': "is no list of columns",
    "limit=10001": "less than or equal to 10000",
    "limit=x": "valid integer",
    "wher=n>999999": "unknown parameters: wher (did you mean where?)",
    "offset=3&limits=1": "unknown parameters: limits (did you mean limit?), offset; see",
    "min_position=clicks": "'clicks' is no position",
    "min_position=clicks/0@-1": "is no position",
    "min_position=other/0@1": "does not read the topic other: it reads clicks",
    "min_position=clicks/9@1": "there is no partition clicks/9",
    "timeout_ms=60001&min_position=clicks/0@1": "less than or equal to 60000",
}


@pytest.mark.parametrize(("query", "said"), REFUSED.items(), ids=REFUSED)
def test_what_does_not_fit_is_refused_with_what_does(server: Server, query: str, said: str) -> None:
    answer = server.get(f"/v1/views/things?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"] == "UsageError"
    assert said in answer.json()["message"]


NASTY = [
    "'; DROP VIEW main.things; --",
    '" OR ""="',
    "word') OR 1=1 --",
    "x' UNION SELECT * FROM headrace.engine --",
    "\x00",
    "?",
    "$1",
    "{}",
    "%s",
    "\\",
    "\U0001f600" * 1_000,
    "(SELECT 1)",
]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("place", ["where=word=", "where=", "order=", "columns=", "name", "after"])
def test_no_text_from_outside_becomes_sql(server: Server, place: str, text: str) -> None:
    path, params = "/v1/views/things", {}
    if place == "name":
        path = f"/v1/views/{httpx.URL('/', params={'x': text}).query.decode()[2:]}"
    elif place == "after":
        path, params = "/v1/views/things/changes", {"after": text}
    else:
        name, _, prefix = place.partition("=")
        params = {name: f"{prefix}{text}"}
    answer = server.get(path, params=params)
    if place == "where=word=":
        assert (answer.status_code, answer.json().get("rows")) == (200, [])
    else:
        assert 400 <= answer.status_code < 500, answer.text
        assert set(answer.json()) == {"error", "message"}
    assert len(server.rows("things")) == 4


def test_an_unknown_view_is_404_with_those_there_are(server: Server) -> None:
    for path in ("/v1/views/thing", "/v1/views/thing.errors", "/v1/views/thing/changes"):
        answer = server.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "ViewNotFound")
        assert "(did you mean things?); there are: things" in answer.json()["message"]
    answer = server.get("/v1/views/things.errors")
    assert answer.status_code == 404
    assert "its rows are records" in answer.json()["message"]


def test_who_may_append_only_may_not_read(server: Server) -> None:
    headers = {"Authorization": f"Bearer {INGEST}"}
    assert server.get("/v1/views/things", headers=headers).status_code == 403


def test_errors_of_a_view_are_rows_too(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "store.duckdb")
    table = shares()
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(table)], {MAIN: {}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    rows = delta(table, ("a", 1), ("b", 2), ("c", 3))
    store.commit(turn_of(planned(epoch, 1), {table: (rows,)}))
    with serving(store, tmp_path) as server:
        body = server.get("/v1/views/shares.errors", params={"order": "k"}).json()
        assert [row["k"] for row in body["rows"]] == ["b", "c"]
        assert "6 / (n - 2) fails" in body["rows"][0]["error"]
        assert (body["view"], body["key"]) == ("shares.errors", ["k"])
        assert server.rows("shares.errors", where="k=c", columns="k") == [{"k": "c"}]
        assert [row["k"] for row in server.rows("shares")] == ["a"]
    store.close()


@pytest.fixture
def growing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, History]]:
    store: Store = DuckDBStore(tmp_path / "store.duckdb")
    history = History(store, "tumbling", random.Random(1))
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("clicks", partitions=2)
    log.close()
    with serving(store, tmp_path, max_requests=getattr(request, "param", 64)) as server:
        yield server, history
    store.close()


def test_a_read_waits_for_its_position(growing: tuple[Server, History]) -> None:
    server, history = growing
    history.turn()
    answers: list[dict[str, Any]] = []

    def ask() -> None:
        with httpx.Client(trust_env=False, timeout=20) as http:
            headers = {"Authorization": f"Bearer {READ}"}
            params = {"min_position": "clicks/0@30"}
            answer = http.get(f"{server.url}/v1/views/hits", headers=headers, params=params)
            answers.append(answer.json())

    waiting = [threading.Thread(target=ask) for _ in range(5)]
    for each in waiting:
        each.start()
    deadline = time.monotonic() + 20
    while server.app.state.waiting_reads < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    history.turn()
    server.commits.note()
    assert answers == []
    history.turn()
    server.commits.note()
    for each in waiting:
        each.join(20)
    assert [answer["position"] for answer in answers] == ["clicks/0@30"] * 5
    assert server.app.state.waiting_reads == 0


@pytest.mark.parametrize("growing", [1], indirect=True)
def test_a_read_has_a_place_among_the_requests_but_while_it_waits(
    growing: tuple[Server, History], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, history = growing
    history.turn()
    reads, go_on = threading.Event(), threading.Event()
    read = Views.read

    def read_slowly(*asked: Any) -> Answer:
        reads.set()
        assert go_on.wait(20)
        return read(*asked)

    with ThreadPoolExecutor(5) as pool:

        def ask(position: str) -> "Future[httpx.Response]":
            return pool.submit(server.get, "/v1/views/hits", params={"min_position": position})

        waiting = []
        for count in (1, 2, 3):
            waiting.append(ask("clicks/0@20"))
            eventually(lambda count=count: server.app.state.waiting_reads == count)
        monkeypatch.setattr(Views, "read", read_slowly)
        other = ask("clicks/0@10")  # the view is there already
        assert reads.wait(20)
        assert ask("clicks/0@10").result(20).status_code == 503
        history.turn()
        server.commits.note()
        assert [each.result(20).status_code for each in waiting] == [503] * 3
        go_on.set()
        assert other.result(20).status_code == 200
        assert ask("clicks/0@20").result(20).status_code == 200


def test_a_position_that_is_not_reached_in_time_is_504(growing: tuple[Server, History]) -> None:
    server, history = growing
    history.turn()
    params = {"min_position": "clicks/0@11", "timeout_ms": 50}
    answer = server.get("/v1/views/hits", params=params)
    assert (answer.status_code, answer.json()["error"]) == (504, "EngineBusy")
    assert "hits stands at clicks/0@10, not yet at clicks/0@11" in answer.json()["message"]
    # A partition that the view has not begun to read is waited for; one that is not there is not.
    params = {"min_position": "clicks/1@1", "timeout_ms": 0}
    assert server.get("/v1/views/hits", params=params).status_code == 504
    params = {"min_position": "clicks/2@1", "timeout_ms": 0}
    assert server.get("/v1/views/hits", params=params).status_code == 400


def test_only_so_many_reads_wait(
    growing: tuple[Server, History], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, history = growing
    history.turn()
    monkeypatch.setattr(views, "MAX_WAITING_READS", 0)
    answer = server.get("/v1/views/hits", params={"min_position": "clicks/0@11"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert server.get("/v1/views/hits").status_code == 200


def test_a_read_takes_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_READ_SECONDS", 0.001)
    store = DuckDBStore(tmp_path / "store.duckdb")
    table = counts()
    epoch = store.begin_epoch()
    store.hold(epoch, [stream_holding(), holding(table)], {MAIN: {}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    count = 300_000
    rows = {"k": [f"{number:x}" for number in range(count)]}
    rows |= {each.name: range(count) for each in table.values}
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    store.commit(turn_of(planned(epoch, 1), {table: (pa.table(rows).cast(schema),)}))
    with serving(store, tmp_path) as server:
        params = {"order": "-greatest,least,k", "limit": 10_000}
        answer = server.get("/v1/views/hits", params=params)
        assert (answer.status_code, answer.json()["error"]) == (400, "QueryRefused")
        assert "took more than 0.001 seconds" in answer.json()["message"]
    store.close()
