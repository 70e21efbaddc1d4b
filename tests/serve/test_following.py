"""Subscriptions: who may have one, what is sent, and that nobody harms anybody.

Method: the real server over a real store, real sockets; bounds are small, so that tests reach them.
"""

import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from headrace.client import Fold
from headrace.client.messages import parse_message
from headrace.ledger.following import ChangeLimits, Followers
from headrace.serve.http import connections
from headrace.store.base import Store
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import History
from serve.serving import INGEST, READ, Server, serving
from serve.subscribing import Subscriber, folded, shown

SECONDS = 30.0  # that a test waits for what must come


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = DuckDBStore(tmp_path / "store.duckdb")
    yield store
    store.close()


@pytest.fixture
def history(store: Store) -> History:
    history = History(store, "tumbling", random.Random(1))
    for _ in range(5):
        history.turn()
    return history


@pytest.fixture
def start(store: Store, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:
        yield lambda **bounds: stack.enter_context(serving(store, tmp_path, **bounds))


@pytest.fixture
def server(history: History, start: Callable[..., Server]) -> Server:
    return start(progress_seconds=0.3)


def follow(
    server: Server, query: str = "", *, token: str = READ, view: str = "hits", **others: Any
) -> ClientConnection:
    return connect(
        f"{server.socket_url}/v1/views/{view}/changes{query}",
        additional_headers={"Authorization": f"Bearer {token}", **others.pop("headers", {})},
        proxy=None,
        compression=None,
        **others,
    )


def receive(connection: ClientConnection, type: str | None = None) -> dict[str, Any]:
    """Return the next message, or the next one of a type."""
    while True:
        message: dict[str, Any] = json.loads(connection.recv(timeout=SECONDS))
        if type in (None, message["type"]):
            return message


def closing(connection: ClientConnection) -> tuple[dict[str, Any] | None, int]:
    """Return the last message and the code that a connection is closed with."""
    last = None
    try:
        while True:
            last = json.loads(connection.recv(timeout=SECONDS))
    except ConnectionClosed as closed:
        return last, closed.rcvd.code if closed.rcvd is not None else 1006


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def turn(server: Server, history: History) -> None:
    history.turn()
    server.commits.note()


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


def many_records(history: History, count: int, text: str) -> list[str]:
    """Let a view of records have so many more rows; return their texts."""
    texts = [f"{number} {text}" for number in range(count)]
    first = history.offset * count
    history.add([(0, number, each) for number, each in enumerate(texts, first)])
    return texts


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


def slow_socket(server: Server, query: str = "") -> socket.socket:
    """Subscribe, with little room in the kernel, and read the first bytes only."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    made.sendall(
        f"GET /v1/views/hits/changes{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {READ}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert made.recv(12) == b"HTTP/1.1 101"
    return made


def test_a_reader_that_never_reads_is_dropped_and_harms_nobody(
    store: Store, start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DROP_SECONDS", SECONDS)
    history = History(store, "records", random.Random(3))
    server = start(drain_seconds=0.5, ring_bytes=64 << 20)
    other = Subscriber(server.url)
    other.start()
    with slow_socket(server) as slow:
        eventually(lambda: server.app.state.following.subscribers == 2)
        for _ in range(40):
            many_records(history, 100, "x" * 2_000)
            server.commits.note()
        commit, rows = shown(store)
        other.wait_for(commit)
        eventually(lambda: server.app.state.following.subscribers == 1)
        # What was on its way comes; then it is told why it ends.
        slow.settimeout(SECONDS)
        received = b""
        try:
            while piece := slow.recv(1 << 20):
                received = (received + piece)[-1_000:]
        except ConnectionResetError:
            pass
    assert b'"error":"TooSlow"' in received
    other.stop()
    assert folded(other.fold) == rows


def test_a_reader_that_falls_behind_the_ring_is_told(
    store: Store, start: Callable[..., Server]
) -> None:
    history = History(store, "records", random.Random(3))
    server = start(drain_seconds=SECONDS, ring_bytes=100_000)
    with follow(server, max_queue=1) as slow:
        receive(slow, "progress")
        for _ in range(60):
            many_records(history, 100, "x" * 2_000)
            server.commits.note()
            time.sleep(0.02)  # so that the hub reads each commit by itself
        last, code = closing(slow)
    assert code == 4408
    assert last is not None
    assert last["error"] == "TooSlow"
    assert "further behind than 100000 bytes" in last["message"]


def test_changes_are_let_go_when_nobody_came_back(
    history: History, store: Store, start: Callable[..., Server]
) -> None:
    server = start(resume_seconds=0.5, progress_seconds=0.1)
    with follow(server) as connection:
        token = receive(connection, "progress")["token"]
        turn(server, history)
        receive(connection, "progress")
    with follow(server, f"?after={token}") as connection:
        assert receive(connection)["type"] in ("changes", "progress")
        with store.open() as snapshot:
            assert snapshot.kept_changes()["hits"].leases == 2

    def none_is_kept() -> bool:
        with store.open() as snapshot:
            return snapshot.kept_changes() == {} and snapshot.leases() == {}

    eventually(none_is_kept)
    turn(server, history)
    with follow(server, f"?after={token}") as connection:
        last, code = closing(connection)
    assert (code, last and last["error"]) == (4409, "TokenTooOld")
    assert server.get(f"/v1/views/hits/changes?after={token}").status_code == 410


def test_a_token_is_good_after_a_restart_and_a_dead_lease_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    store = DuckDBStore(path)
    history = History(store, "tumbling", random.Random(1))
    fold = Fold()
    with serving(store, tmp_path) as server, follow(server) as connection:
        while not fold.take(parse_message(connection.recv(timeout=SECONDS))):
            pass
    store.close()
    store = DuckDBStore(path)
    history.reopen(store)
    limits = ChangeLimits(commits=1_000)
    store.set_followers(history.epoch, Followers(limits=limits), {})
    for _ in range(30):
        history.turn()
    commit, rows = shown(store)
    with serving(store, tmp_path) as server, follow(server, f"?after={fold.token}") as connection:
        while fold.commit != commit:
            message = parse_message(connection.recv(timeout=SECONDS))
            assert type(message).__name__ != "Reset"
            fold.take(message)
        assert folded(fold) == rows
        history.turn()
    # The process dies: its leases are still in the store, and the next one lets them go.
    with store.open() as snapshot:
        assert snapshot.leases() == {"following hits": "hits", "resuming hits": "hits"}
    store.close()
    store = DuckDBStore(path)
    with serving(store, tmp_path, resume_seconds=0.2):

        def none_is_left() -> bool:
            with store.open() as snapshot:
                return snapshot.leases() == {}

        eventually(none_is_left)
    store.close()


def test_a_lease_that_ends_for_its_limits_costs_no_subscriber_its_place(
    history: History, store: Store, start: Callable[..., Server]
) -> None:
    """`resuming` is too far behind for what the store may keep; the hub's own place is not."""
    store.set_followers(history.epoch, Followers(limits=ChangeLimits(commits=10)), {})
    server = start(progress_seconds=0.1, resume_seconds=1.0)
    subscriber = Subscriber(server.url)
    subscriber.start()
    for _ in range(80):
        turn(server, history)
        subscriber.wait_for(shown(store)[0])
    time.sleep(1.2)
    for _ in range(40):
        turn(server, history)
        subscriber.wait_for(shown(store)[0])

    def is_kept() -> bool:
        with store.open() as snapshot:
            return "resuming hits" in snapshot.leases()

    eventually(is_kept)  # its lease may just have ended; the hub takes another when it reads on
    subscriber.stop()
    assert subscriber.resets == 1
    assert folded(subscriber.fold) == shown(store)[1]


@pytest.mark.parametrize("wide", [False, True])
def test_a_swap_is_changes_or_a_reset(server: Server, history: History, wide: bool) -> None:
    fold, resets = Fold(), 0
    with follow(server) as connection:
        while not fold.take(parse_message(connection.recv(timeout=SECONDS))):
            pass
        history.swap(wide=wide)
        server.commits.note()
        commit, rows = shown(history.store)
        while fold.commit != commit:
            message = parse_message(connection.recv(timeout=SECONDS))
            resets += type(message).__name__ == "Reset"
            fold.take(message)
    assert resets == wide
    assert folded(fold) == rows
    assert ("again" in [each["name"] for each in fold.columns]) == wide


def test_a_filter_that_the_new_columns_do_not_have_ends_it(
    server: Server, history: History
) -> None:
    history.swap(wide=True)
    with follow(server, "?where=again>=0") as connection:
        receive(connection, "progress")
        narrow = False
        while not narrow:
            narrow = not history.swap(wide=False) or len(history.table.outputs) == 4
        server.commits.note()
        last, code = closing(connection)
    assert code == 4400
    assert last is not None
    assert "there is no column 'again'" in last["message"]


def test_a_view_that_is_dropped_ends_its_subscriptions(
    server: Server, history: History, store: Store
) -> None:
    with follow(server) as connection:
        receive(connection, "progress")
        with store.open() as snapshot:
            held = [each for each in snapshot.holdings() if each.kind == "view"]
        store.drop(history.epoch, held)
        server.commits.note()
        last, code = closing(connection)
    assert (code, last and last["error"]) == (4409, "TokenRefused")
    assert server.get("/v1/views/hits").status_code == 404


def test_an_engine_that_stops_says_so(store: Store, history: History, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving(store, tmp_path))
        connection = stack.enter_context(follow(server))
        receive(connection, "progress")
        events = stack.enter_context(httpx.Client(trust_env=False, timeout=SECONDS))
        answer = stack.enter_context(
            events.stream(
                "GET",
                f"{server.url}/v1/views/hits/changes",
                headers={"Authorization": f"Bearer {READ}"},
            )
        )
        lines = answer.iter_lines()
        assert next(lines) == "event: reset"
        server.app.state.following.close()
        assert closing(connection)[1] == 1012
        assert list(lines)[-1] == ""


def test_a_thousand_idle_connections_leave_reads_working(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(5):
            receive(stack.enter_context(follow(server)))
        port = int(server.url.rpartition(":")[2])
        for _ in range(1_000):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            made.sendall(b"GET /v1/views/hits HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for _ in range(20):
            assert server.rows()
        assert server.app.state.following.subscribers == 5
