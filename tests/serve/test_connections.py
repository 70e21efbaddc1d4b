"""Who holds connections open, or asks for too much at once, locks nobody out.

Method: a real server, and sockets that send half a head, drip, or ask and wait.
"""

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import anyio.to_thread
import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from headrace.project.serving import ServeSettings
from headrace.serve.http import bodies
from headrace.serve.http.connections import MAX_HEAD_BYTES, connection_class
from headrace.serve.http.errors import handle_errors
from headrace.serve.http.guard import Guard, Limits
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import _listen, serve

HALF_A_HEAD = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n"
AUTHORIZED = {"Authorization": "Bearer t"}
LARGE = b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n\r\n"
LARGE_BYTES = 16 << 20  # more than sockets hold
LIMITS = Limits(max_requests=3, max_open_requests=2)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def url(release: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve with bounds that a test can reach; requests to `/wait` wait, `/follow` sends on."""
    quick = connection_class(head_seconds=0.5, max_waiting=8, send_seconds=1.0)
    monkeypatch.setattr("headrace.serve.http.server.connection_class", lambda: quick)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer: Response = JSONResponse({} if scope["path"] == "/nothing" else {"ok": True})
        if scope["path"] == "/large":
            answer = Response(b"x" * LARGE_BYTES)
        if scope["path"] in ("/wait", "/assets/wait"):
            await anyio.to_thread.run_sync(release.wait)
        if scope["path"] == "/follow":
            await send_until_hung_up(receive, send)
            release.set()
            return
        await answer(scope, receive, send)

    permissions = Permissions([TokenGrant.of("t", Grant("owner", Role.ADMIN))])
    with serve(Guard(app, permissions=permissions, limits=LIMITS)) as url:
        yield url


async def send_until_hung_up(receive: Receive, send: Send) -> None:
    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    listening = asyncio.create_task(listen())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not listening.done():
        await send({"type": "http.response.body", "body": b"more", "more_body": True})
        await asyncio.sleep(0.01)


def connect(url: str, sent: bytes) -> socket.socket:
    port = int(url.rpartition(":")[2])
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(sent)
    return made


@contextmanager
def connected(url: str, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(url, sent)) for _ in range(count)]


def is_closed(connection: socket.socket, *, within: float) -> bool:
    """Whether the other side closes a connection that nothing is to be read from."""
    readable, _, _ = select.select([connection], [], [], within)
    if not readable:
        return False
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(url: str, path: str = "/hello") -> httpx.Response:
    return httpx.get(f"{url}{path}", headers=AUTHORIZED, trust_env=False, timeout=10)


def test_half_open_connections_lock_nobody_out(url: str) -> None:
    with connected(url, HALF_A_HEAD, 200):
        for _ in range(5):
            assert ask(url).json() == {"ok": True}


def test_a_connection_that_sends_half_a_head_is_closed(url: str) -> None:
    with connected(url, HALF_A_HEAD, 1) as (half,):
        assert not is_closed(half, within=0.1)
        assert is_closed(half, within=5)


def test_one_that_sends_nothing_is_closed_too(url: str) -> None:
    with connected(url, b"", 1) as (silent,):
        assert is_closed(silent, within=5)


def test_dripping_gives_a_connection_no_more_time(url: str) -> None:
    with connected(url, HALF_A_HEAD, 1) as (dripping,):
        began = time.monotonic()
        while not is_closed(dripping, within=0.05):
            assert time.monotonic() < began + 3
            with suppress(ConnectionError):  # then the next look finds it closed
                dripping.sendall(b"X: y\r\n")


def test_a_head_that_drips_in_after_an_answered_request_is_closed_too(url: str) -> None:
    whole = HALF_A_HEAD + b"Authorization: Bearer t\r\n\r\n"
    with connected(url, whole, 1) as (second,):
        received(second, until=b'{"ok":true}')
        second.sendall(HALF_A_HEAD)
        assert is_closed(second, within=5)


def received(connection: socket.socket, *, until: bytes = b"") -> bytes:
    """Return what was received up to a text, or until the other side closes."""
    answer = b""
    while not until or until not in answer:
        part = connection.recv(65536)
        if not part:
            break
        answer += part
    return answer


def test_a_head_without_an_end_is_refused(url: str) -> None:
    with connected(url, HALF_A_HEAD + b"X: " + b"y" * MAX_HEAD_BYTES, 1) as (large,):
        answer = received(large)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"The head of a request has 65536 bytes at most.")


@pytest.mark.parametrize("before", ["a body", "a request that is being answered"])
def test_what_follows_is_bounded_too(url: str, before: str) -> None:
    """Fields after a chunked body, or the next head, have no end."""
    sent = b"POST /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n"
    sent += b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    if before != "a body":
        sent += b"\r\n" + HALF_A_HEAD
    with connected(url, sent, 1) as (flooding,):
        flooding.settimeout(5)
        with pytest.raises(ConnectionError):
            flooding.sendall((b"X: " + b"y" * 65536 + b"\r\n") * 1_000)


def test_requests_that_are_sent_together_are_answered_in_order(
    url: str, release: threading.Event
) -> None:
    rest = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n\r\n"
    with connected(url, b"GET /wait" + rest + b"GET /nothing" + rest, 1) as (both,):
        assert not select.select([both], [], [], 0.7)[0]
        release.set()
        answer = received(both, until=b"{}")
    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert answer.index(b'{"ok":true}') < answer.index(b"{}")


def test_who_hangs_up_is_gone_for_all_that_was_sent_together(
    url: str, release: threading.Event
) -> None:
    rest = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n\r\n"
    with connected(url, b"GET /follow" + rest + b"GET /hello" + rest, 1) as (follower,):
        received(follower, until=b"more")
    assert release.wait(5)


def test_a_connection_serves_one_request_after_another(url: str) -> None:
    with httpx.Client(base_url=url, headers=AUTHORIZED, trust_env=False) as client:
        for _ in range(4):
            assert client.get("/hello").status_code == 200
            time.sleep(0.2)


def test_answers_are_sent_at_once(url: str) -> None:
    """Else each answer on a connection that is kept waits for 40 ms (server.py)."""
    with socket.socket() as listening, _listen(ServeSettings()) as ours:
        listening.listen()
        ours.listen()
        assert [each.proto for each in (listening, ours)] == [0, socket.IPPROTO_TCP]
        with socket.create_connection(ours.getsockname()):
            accepted, _ = ours.accept()
            with accepted:
                assert accepted.proto == socket.IPPROTO_TCP


def test_a_full_server_answers_503_with_a_sentence(url: str, release: threading.Event) -> None:
    waiting = [threading.Thread(target=ask, args=(url, "/wait")) for _ in range(3)]
    for thread in waiting:
        thread.start()
    deadline = time.monotonic() + 10
    while (answer := ask(url)).status_code != 503:
        assert time.monotonic() < deadline
    assert answer.json() == {
        "error": "EngineBusy",
        "message": "the engine answers 3 requests already, which is the most at once; ask again "
        "in a moment",
    }
    # Who has no token is told so, whatever is under way.
    assert httpx.get(f"{url}/hello", trust_env=False).status_code == 401
    release.set()
    for thread in waiting:
        thread.join()
    assert ask(url).json() == {"ok": True}


def until(url: str, path: str, code: int, headers: dict[str, str] = AUTHORIZED) -> httpx.Response:
    """Ask until the answer is of a status."""
    deadline = time.monotonic() + 10
    while True:
        answer = httpx.get(f"{url}{path}", headers=headers, trust_env=False)
        if answer.status_code == code:
            return answer
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_has_no_token_takes_no_place_of_others(url: str, release: threading.Event) -> None:
    waits = b"GET /assets/wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(url, waits, 20):
        until(url, "/assets/x", 503, headers={})
        for _ in range(5):
            assert ask(url).json() == {"ok": True}
        release.set()


def test_an_answer_that_is_not_taken_is_under_way_until_it_is_cut(url: str) -> None:
    with connected(url, LARGE, 3) as untaken:
        until(url, "/hello", 503)
        until(url, "/hello", 200)
        # At least one of them was cut; the others are not if they are taken from now on.
        assert sum(len(received(each)) for each in untaken) < 3 * LARGE_BYTES


def test_an_answer_that_is_taken_slowly_is_not_cut(url: str) -> None:
    """It is for no reader but for one that takes nothing, however long all of it takes."""
    with connected(url, LARGE, 1) as (slow,):
        began, count = time.monotonic(), 0
        while count < LARGE_BYTES and (part := slow.recv(1 << 18)):
            count += len(part)
            if time.monotonic() < began + 1.5:
                time.sleep(0.05)
    assert count >= LARGE_BYTES


def test_a_websocket_that_is_refused_is_closed_at_once(url: str) -> None:
    """What it does not answer is not waited for."""
    upgrade = (
        b"GET /follow HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        b"Sec-WebSocket-Version: 13\r\n\r\n"
    )
    with connected(url, upgrade, 1) as (refused,):
        refused.settimeout(2)
        answer = received(refused)
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"the token is missing" in answer


def test_a_body_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "OPEN_BODY_SECONDS", 0.2)
    app = FastAPI()
    app.add_middleware(bodies.BoundedBodies)
    handle_errors(app)

    @app.post("/sql")
    async def take(taken: dict[str, str]) -> dict[str, str]:
        return taken

    with serve(app) as url:
        head = (
            b"POST /sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\n\r\n{"
        )
        with connected(url, head, 1) as (slow,):
            answer = received(slow, until=b"}")
    assert answer.startswith(b"HTTP/1.1 408")
    assert "did not arrive" in json.loads(answer.rpartition(b"\r\n\r\n")[2])["message"]
