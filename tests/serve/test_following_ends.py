"""How subscriptions end: slow readers, leases, swaps, dropped views, an engine that stops.

Method: as in test_following.py.
"""

import random
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from headrace.client import Fold
from headrace.client.messages import parse_message
from headrace.ledger.following import ChangeLimits, Followers, Token
from headrace.serve.following import leases
from headrace.serve.following.hub import Hub
from headrace.serve.following.leases import Leases
from headrace.serve.http import connections
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.changing import History
from serve.serving import READ, Server, serving
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

UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def slow_socket(server: Server, headers: str) -> socket.socket:
    """Subscribe, with little room in the kernel, and read the first bytes only."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    made.sendall(
        f"GET /v1/views/hits/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {READ}\r\n{headers}\r\n".encode()
    )
    assert made.recv(12) in (b"HTTP/1.1 101", b"HTTP/1.1 200")
    return made


@pytest.mark.parametrize("headers", [UPGRADE, ""], ids=["WebSocket", "SSE"])
def test_a_reader_that_never_reads_is_dropped_and_harms_nobody(
    store: Store,
    start: Callable[..., Server],
    headers: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connections, "DROP_SECONDS", SECONDS)
    history = History(store, "records", random.Random(3))
    server = start(send_seconds=0.5, ring_bytes=64 << 20)
    other = Subscriber(server.url)
    other.start()
    with slow_socket(server, headers) as slow:
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
    assert [each for each in caplog.messages if "Exception in ASGI application" in each] == []
    other.stop()
    assert folded(other.fold) == rows


def test_a_reader_that_falls_behind_the_ring_is_told(
    store: Store, start: Callable[..., Server]
) -> None:
    history = History(store, "records", random.Random(3))
    server = start(send_seconds=SECONDS, ring_bytes=100_000)
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


def test_who_leaves_by_one_address_ends_nothing_at_another(
    history: History, start: Callable[..., Server]
) -> None:
    server = start(resume_seconds=0.2, progress_seconds=0.1)
    with follow(server) as connection:
        receive(connection, "progress")
        with follow(server, url=server.other_url) as other:
            receive(other, "progress")
            assert server.app.state.following.subscribers == 2
        eventually(lambda: server.app.state.following.subscribers == 1)
        began = time.monotonic()
        while time.monotonic() < began + 0.6:  # it is let go in 0.2 s if nobody follows
            progress_after_turn(connection, server, history)


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


def test_what_was_taken_over_is_let_go_once(history: History, store: Store) -> None:
    """Subscribers came back to a view, left it, and others came, before it was to be let go."""
    names = ("following hits", "resuming hits")
    for name in names:
        store.follow(name, "hits")
    taken_over = Leases(store, "hits", resume_seconds=1.0)
    taken_over.adopt(names)
    taken_over.begin()
    taken_over.end()
    Leases(store, "hits", resume_seconds=1.0).begin()
    taken_over.end_unless_followed()
    with store.open() as snapshot:
        assert sorted(snapshot.leases()) == list(names)


def test_a_stale_token_harms_no_lease(
    history: History,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Somebody asks with it all the time; a token of this moment is kept nevertheless."""
    monkeypatch.setattr(leases, "_STEP_SECONDS", 0.0)
    store.set_followers(history.epoch, Followers(limits=ChangeLimits(commits=20)), {})
    kept = Leases(store, "hits", resume_seconds=0.0)
    kept.begin()
    for _ in range(40):
        history.turn()
        with store.open() as snapshot:
            kept.move(snapshot.token("hits"))
        kept.pin("stale", Token("0", "x", 0))
    assert caplog.messages == []  # no lease has ended
    with store.open() as snapshot:
        recent = snapshot.token("hits")
        assert snapshot.kept_changes()["hits"].since > recent.commit - 20
    kept.pin("recent", recent)
    for _ in range(18):
        history.turn()
        with store.open() as snapshot:
            kept.move(snapshot.token("hits"))
    with store.open() as snapshot:
        assert snapshot.changes("hits", recent, max_rows=1).rows.num_rows == 1


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


def test_what_was_not_foreseen_ends_the_subscriptions_of_a_view(
    server: Server, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    with follow(server) as connection:
        receive(connection, "progress")
        with monkeypatch.context() as patched:
            patched.setattr(Hub, "_read", lambda *_: 1 // 0)
            turn(server, history)
            last, code = closing(connection)
    assert (code, last and last["error"]) == (1011, "EngineError")
    assert last is not None
    assert "ZeroDivisionError" in last["message"]
    with follow(server) as connection:  # a new hub
        progress_after_turn(connection, server, history)


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
        for stop in server.app.state.before_stop:
            stop()
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
