"""Answers that stay open are the same for views and topics: headers, batches, how they end.

Method: the real server, by WebSocket and by server-sent events; the messages are the test's.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from headrace.errors import EngineError
from headrace.log import EmbeddedLog
from headrace.serve.following.subscription import Subscription
from headrace.serve.message import Message, encode
from headrace.serve.tailing.following import Tails
from headrace.store.base import Store
from headrace.testing.store.changing import History
from serve.serving import READ, Server, serving
from serve.subscribing import closing, eventually

BATCHES = [["one"], [], ["two", "three"]]
FAILURE = "the disk is on fire; " + "wet it. " * 20

PATHS = ["/v1/views/hits/changes", "/v1/topics/clicks/records"]

pytestmark = pytest.mark.parametrize("path", PATHS)


@pytest.fixture
def server(store: Store, history: History, tmp_path: Path) -> Iterator[Server]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("clicks")
    log.close()
    with serving(store, tmp_path) as server:
        yield server


def send(monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None) -> None:
    """Let those who follow be sent BATCHES, and a failure perhaps."""

    async def messages(*_: Any) -> AsyncIterator[list[Message]]:
        for batch in BATCHES:
            yield [encode(type, None, {}) for type in batch]
        if failure is not None:
            raise failure

    monkeypatch.setattr(Subscription, "messages", messages)
    monkeypatch.setattr(Tails, "messages", messages)


def followers(server: Server) -> int:
    state = server.app.state
    return int(state.following.subscribers + state.tails.followers)


def all_events(server: Server, path: str) -> list[dict[str, Any]]:
    answer = server.get(path, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 200
    lines = [line for line in answer.text.split("\n") if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_events_are_not_kept_and_pass_proxies_at_once(server: Server, path: str) -> None:
    with server.http.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
        headers = {name: answer.headers[name] for name in ("cache-control", "x-accel-buffering")}
        assert headers == {"cache-control": "no-store", "x-accel-buffering": "no"}
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in answer.headers
    eventually(lambda: followers(server) == 0)


def test_an_answer_ends_with_its_messages(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(monkeypatch)
    assert [each["type"] for each in all_events(server, path)] == ["one", "two", "three"]
    headers = {"Authorization": f"Bearer {READ}"}
    with connect(server.socket_url + path, additional_headers=headers, proxy=None) as connection:
        types = [json.loads(connection.recv(timeout=20))["type"] for _ in range(3)]
        assert (types, closing(connection)) == (["one", "two", "three"], (None, 1000))
    eventually(lambda: followers(server) == 0)


def test_what_ends_an_answer_early_is_told(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(monkeypatch, EngineError(FAILURE))
    told = {"type": "error", "error": "EngineError", "message": FAILURE}
    assert all_events(server, path)[-1] == told
    headers = {"Authorization": f"Bearer {READ}"}
    with connect(server.socket_url + path, additional_headers=headers, proxy=None) as connection:
        assert closing(connection) == (told, 1011)
        assert connection.close_reason == FAILURE[:120]
    eventually(lambda: followers(server) == 0)


def test_who_comes_while_the_server_stops_is_told(server: Server, path: str) -> None:
    for stop in server.app.state.before_stop:
        stop()
    assert "error" not in {each["type"] for each in all_events(server, path)}
    headers = {"Authorization": f"Bearer {READ}"}
    with connect(server.socket_url + path, additional_headers=headers, proxy=None) as connection:
        assert closing(connection)[1] == 1012
        assert connection.close_reason == "the engine stops; ask again when it is back"
    eventually(lambda: followers(server) == 0)
