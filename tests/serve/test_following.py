"""Subscriptions: who may have one, what is sent, and that nobody harms anybody.

Method: the real server over a real store, real sockets; bounds are small, so that tests reach them.
"""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from websockets.sync.client import connect

from headrace.client import Fold
from headrace.client.messages import parse_message
from headrace.store.base import Store
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.testing.store.changing import History
from serve.serving import INGEST, READ, Server
from serve.subscribing import (
    SECONDS,
    Subscriber,
    closing,
    eventually,
    folded,
    follow,
    many_records,
    progress_after_turn,
    receive,
    shown,
    turn,
)


def test_a_subscription_begins_with_all_rows(server: Server, store: Store) -> None:
    commit, rows = shown(store)
    with follow(server) as connection:
        first, page, behind = (receive(connection) for _ in range(3))
    names = ["window_start", "window_end", "k", "most"]
    types = ["TIMESTAMP", "TIMESTAMP", "STRING", "BIGINT"]
    columns = [{"name": name, "type": type} for name, type in zip(names, types, strict=True)]
    assert first == {
        "type": "reset",
        "view": "hits",
        "version": "v1",
        "columns": columns,
        "key": ["window_start", "k"],
    }
    assert {change["sign"] for change in page["changes"]} == {1}
    assert (page["commit"], len(page["changes"])) == (commit, sum(rows.values()))
    assert page["token"] == behind["token"]
    assert behind == {
        "type": "progress",
        "token": page["token"],
        "commit": commit,
        "position": "clicks/0@50",
        "watermark_us": behind["watermark_us"],
    }


def test_a_browser_that_reconnects_goes_on_where_it_stood(server: Server, history: History) -> None:
    """It sends the address again, `after` included, and the last token as `Last-Event-ID`."""
    with follow(server) as connection:
        began = receive(connection, "progress")["token"]
        stood = progress_after_turn(connection, server, history)["token"]
    answer = server.http.stream(
        "GET",
        f"/v1/views/hits/changes?after={began}",
        headers={"Last-Event-ID": stood},
    )
    with answer as events:
        lines = events.iter_lines()
        assert [next(lines), next(lines)] == ["event: progress", f"id: {stood}"]


@pytest.mark.parametrize(
    ("query", "token", "view", "error", "code", "status"),
    [
        ("", "wrong", "hits", None, 4401, 401),
        ("", INGEST, "hits", None, 4403, 403),
        ("", READ, "hit", "ViewNotFound", 4404, 404),
        ("", READ, "hits.errors", "ViewNotFound", 4404, 404),
        ("?after=x", READ, "hits", "TokenRefused", 4409, 409),
        ("?after=0123.v1.3", READ, "hits", "TokenRefused", 4409, 409),
        ("?where=x=1", READ, "hits", "UsageError", 4400, 400),
        ("?where=_closed=true", READ, "hits", "UsageError", 4400, 400),
        ("?columns=_events", READ, "hits", "UsageError", 4400, 400),
        ("?snapshot=maybe", READ, "hits", "UsageError", 4400, 400),
        ("?wher=n>1", READ, "hits", "UsageError", 4400, 400),
    ],
)
def test_what_is_refused_is_told(
    server: Server, query: str, token: str, view: str, error: str | None, code: int, status: int
) -> None:
    with follow(server, query, token=token, view=view) as connection:
        last, closed_with = closing(connection)
    assert closed_with == code
    assert (last and last["error"]) == error
    path = f"/v1/views/{view}/changes{query}"
    answer = server.get(path, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status
    assert answer.json()["error"] == (error or "AccessDenied")
    assert server.app.state.following.subscribers == 0


def test_a_browser_follows_from_our_own_pages_only(server: Server) -> None:
    permissions = server.app.state.permissions
    session, _ = permissions.log_in(READ)
    cookie = {"Cookie": f"headrace_session={session}"}
    address = f"{server.socket_url}/v1/views/hits/changes"
    with connect(address, additional_headers=cookie, origin="http://evil.example", proxy=None) as c:
        assert closing(c) == (None, 4403)
    with connect(address, additional_headers=cookie, origin=server.url, proxy=None) as ours:  # type: ignore[arg-type]
        assert receive(ours)["type"] == "reset"


@pytest.mark.parametrize("frame", ["hello", b"\x00\x01", "{}"])
def test_a_client_has_nothing_to_say(server: Server, frame: str | bytes) -> None:
    with follow(server) as connection:
        receive(connection, "progress")
        connection.send(frame)
        last, code = closing(connection)
    assert code == 4400
    assert last is not None
    assert "takes no messages" in last["message"]


def test_a_frame_that_is_too_large_ends_the_connection(server: Server) -> None:
    with follow(server) as connection:
        connection.send("x" * 100_000)
        assert closing(connection)[1] == 1009
    eventually(lambda: server.app.state.following.subscribers == 0)


def test_more_subscribers_than_the_most_are_refused(
    history: History, start: Callable[..., Server]
) -> None:
    server = start(max_subscribers=2)
    with follow(server) as one, follow(server) as two:
        receive(one)
        receive(two)
        with follow(server) as three:
            last, code = closing(three)
        assert code == 4429
        assert last is not None
        assert "2 subscriptions are open already" in last["message"]
        answer = server.get("/v1/views/hits/changes")
        assert (answer.status_code, answer.json()["error"]) == (429, "EngineBusy")
        assert answer.headers["Retry-After"] == "5"
    eventually(lambda: server.app.state.following.subscribers == 0)
    with follow(server) as again:
        assert receive(again)["type"] == "reset"


@pytest.mark.parametrize("query", ["where=k=a", "where=k=null", "where=most>=2&where=k!=b"])
def test_rows_that_do_not_pass_are_not_sent(
    server: Server, history: History, store: Store, query: str
) -> None:
    where = [part.removeprefix("where=") for part in query.split("&")]
    fold = Fold()
    with follow(server, f"?{query}&columns=k,most,window_start") as connection:
        for _ in range(20):
            turn(server, history)
        commit = shown(store)[0]
        while fold.commit != commit:
            fold.take(parse_message(connection.recv(timeout=SECONDS)))
    columns = "k,most,window_start,_closed"
    rows = server.rows(where=where, columns=columns, limit=10_000)
    expected = sorted(json.dumps(row, sort_keys=True) for row in rows)
    assert sorted(folded(fold).elements()) == expected
    assert rows


def test_progress_is_told_though_nothing_changes(server: Server) -> None:
    with follow(server) as connection:
        tokens = {receive(connection, "progress")["token"] for _ in range(4)}
    assert len(tokens) == 1


def test_a_subscription_may_begin_without_rows(server: Server, history: History) -> None:
    with follow(server, "?snapshot=false") as connection:
        first, second = receive(connection), receive(connection)
        assert (first["type"], second["type"]) == ("reset", "progress")
        turn(server, history)
        eventually(lambda: receive(connection, "progress")["commit"] > second["commit"])


def test_a_large_view_comes_in_pages_and_the_last_has_the_token(
    store: Store, start: Callable[..., Server]
) -> None:
    history = History(store, "records", random.Random(3))
    texts = many_records(history, 2_500, "x" * 10)
    server = start()
    with follow(server) as connection:
        assert receive(connection)["type"] == "reset"
        pages = []
        while (message := receive(connection))["type"] == "changes":
            pages.append(message)
    tokens = [page["token"] for page in pages]
    assert tokens[:-1] == [None] * (len(pages) - 1)
    assert tokens[-1] == message["token"]
    words = [change["row"]["word"] for page in pages for change in page["changes"]]
    assert sorted(words) == sorted(texts)
    assert max(len(page["changes"]) for page in pages) <= 1_024
    assert len(pages) >= 3


def test_a_view_that_is_too_large_is_refused(store: Store, start: Callable[..., Server]) -> None:
    history = History(store, "records", random.Random(3))
    many_records(history, 2_000, "x" * 100)
    server = start(max_snapshot_bytes=100_000)
    with follow(server) as connection:
        last, code = closing(connection)
    assert code == 4413
    assert last is not None
    assert "more rows than a subscriber is sent at once" in last["message"]
    assert server.get("/v1/views/hits/changes").status_code == 400
    with follow(server, "?where=word=1%20" + "x" * 100) as connection:
        assert len(receive(connection, "changes")["changes"]) == 1


def test_changes_are_read_once_for_all_subscribers(
    server: Server, history: History, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = DuckDBSnapshot.changes
    calls: list[str] = []

    def counted(snapshot: DuckDBSnapshot, view: str, *others: Any, **named: Any) -> Any:
        calls.append(view)
        return read(snapshot, view, *others, **named)

    subscribers = [Subscriber(server.url) for _ in range(20)]
    for each in subscribers:
        each.start()
    for each in subscribers:
        each.wait_for(shown(store)[0])
    monkeypatch.setattr(DuckDBSnapshot, "changes", counted)
    began = time.monotonic()
    for _ in range(10):
        turn(server, history)
    for each in subscribers:
        each.wait_for(shown(store)[0])
    reads, beats = len(calls), (time.monotonic() - began) / 0.3
    for each in subscribers:
        each.stop()
    assert reads <= 10 + beats + 1
    assert all(folded(each.fold) == shown(store)[1] for each in subscribers)
