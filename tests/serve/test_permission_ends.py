"""Answers that stay open end with the permission of who asked: a token expires, a browser logs out.

Method: followers of a view and of a topic, by WebSocket and by server-sent events, on the real
server; the clock of permissions is the test's.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from headrace.log import EmbeddedLog
from headrace.serve.http import permissions
from headrace.serve.http.guard import SESSION_COOKIE
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.store.base import Store
from headrace.testing.store.changing import History
from serve.serving import Server, serving
from serve.subscribing import SECONDS, closing, eventually

PATHS = ["/v1/views/hits/changes", "/v1/topics/clicks/records"]
EXPIRES_US = 5_000_000
TOKENS = [
    TokenGrant.of("for ever", Grant("me", Role.READ)),
    TokenGrant.of("for a while", Grant("guest", Role.READ, EXPIRES_US)),
]


class Clock:
    now_us = 1_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(store: Store, history: History, tmp_path: Path, clock: Clock) -> Iterator[Server]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    log.create_topic("clicks")
    log.close()
    allowed = Permissions(TOKENS, now_us=clock)
    with serving(store, tmp_path, permissions=allowed) as server:
        yield server


def last_event(server: Server, path: str, headers: dict[str, str]) -> dict[str, Any]:
    headers = {**headers, "Accept": "text/event-stream"}
    with httpx.stream(
        "GET", server.url + path, headers=headers, trust_env=False, timeout=SECONDS
    ) as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))
    return found


@contextmanager
def followers(
    server: Server, headers: dict[str, str], expected: int
) -> Iterator[list["Future[tuple[Any, int | None]]"]]:
    """Follow a view and a topic in both ways; yield what each of them is told last."""
    state = server.app.state
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(4))
        told: list[Future[tuple[Any, int | None]]] = []
        for path in PATHS:
            socket = stack.enter_context(
                connect(server.socket_url + path, additional_headers=headers, proxy=None)
            )
            told.append(pool.submit(closing, socket))
            told.append(pool.submit(lambda path=path: (last_event(server, path, headers), None)))
        eventually(lambda: state.following.subscribers + state.tails.followers == expected)
        yield told


def check_refused(told: list["Future[tuple[Any, int | None]]"]) -> None:
    for each, code in zip(told, [4401, None] * 2, strict=True):
        last, closed_with = each.result(SECONDS)
        assert (last["type"], last["error"], closed_with) == ("error", "AccessDenied", code)
        assert "expired, or its session was logged out" in last["message"]


def test_a_token_that_expires_ends_what_it_follows(
    server: Server, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "_LOOK_SECONDS", 0.05)
    lasting = connect(
        server.socket_url + PATHS[0],
        additional_headers={"Authorization": "Bearer for ever"},
        proxy=None,
    )
    headers = {"Authorization": "Bearer for a while"}
    with lasting, followers(server, headers, 5) as told:
        clock.now_us = EXPIRES_US - 1
        assert not any(each.done() for each in told)
        clock.now_us = EXPIRES_US
        check_refused(told)
        eventually(lambda: server.app.state.following.subscribers == 1)


def test_a_browser_that_logs_out_follows_nothing_any_more(server: Server) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as browser, ExitStack() as stack:
        own = {"Origin": server.url}
        browser.post("/v1/login", json={"token": "for ever"}).raise_for_status()
        headers = {**own, "Cookie": f"{SESSION_COOKIE}={browser.cookies[SESSION_COOKIE]}"}
        told = stack.enter_context(followers(server, headers, 4))
        assert browser.post("/v1/logout", headers=own).status_code == 204
        check_refused(told)
