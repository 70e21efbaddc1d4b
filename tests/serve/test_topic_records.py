"""Following topics over HTTP, by SSE and WebSocket: every record once, and followers harm nobody.

Method: a served embedded log; clients are httpx and websockets, or a bare socket that does not
read. Threads are counted, since a follower that leaves must take its thread along.
"""

import json
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from headrace.serve.http import connections
from headrace.serve.http.routes import topics
from headrace.serve.tailing.following import TailLimits
from headrace.serve.tailing.pages import Page
from serve.topics_served import Served, put, read, serving, serving_log

if TYPE_CHECKING:
    from broker import Broker

AUTHORIZED = {"Authorization": "Bearer reader"}
QUICK = TailLimits(max_followers=3, send_seconds=1.0, progress_seconds=0.2)
SECONDS = 20.0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, limits=QUICK) as served:
        yield served


def await_true(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tail_threads() -> int:
    return sum(thread.name == "tails" for thread in threading.enumerate())


# Following by SSE


class Events:
    """The events of an answer, one by one."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.iter_lines()

    def next(self, *types: str) -> dict[str, Any]:
        """Return the next event of these types."""
        while True:
            event: dict[str, str] = {}
            for line in self._lines:
                if not line:
                    break
                name, _, value = line.partition(": ")
                event[name] = value
            else:
                raise EOFError
            data: dict[str, Any] = json.loads(event["data"])
            assert data["type"] == event["event"]
            assert data.get("token") == event.get("id")
            if data["type"] in types:
                return data


@contextmanager
def events(served: Served, query: str = "", **headers: str) -> Iterator[Events]:
    url = f"{served.url}/v1/topics/clicks/records{query}"
    asked = {**AUTHORIZED, "Accept": "text/event-stream", **headers}
    with httpx.stream("GET", url, headers=asked, timeout=SECONDS, trust_env=False) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Events(answer)


def test_events_begin_at_the_end_and_follow(served: Served) -> None:
    put(served, '{"n": 0}')
    with events(served) as found:
        assert found.next("progress")["token"] == "clicks/0@1,clicks/1@0"
        put(served, '{"n": 1}', partition=1)
        told = found.next("records")
        assert [each["value"] for each in told["records"]] == ['{"n": 1}']
        assert told["token"] == "clicks/0@1,clicks/1@1"
        assert found.next("progress")["token"] == told["token"]  # though nothing comes


def test_events_go_on_exactly_where_they_ended(served: Served) -> None:
    seen: list[int] = []
    token = "clicks/0@0,clicks/1@0"
    for round_ in range(5):
        for number in range(4):
            put(served, json.dumps({"n": round_ * 4 + number}), partition=number % 2)
        # The header of a browser that connects again is newer than the address it was given.
        query = "?after=clicks/0@0,clicks/1@0"
        with events(served, query, **{"Last-Event-ID": token}) as found:
            while len(seen) < round_ * 4 + 4:
                told = found.next("records")
                seen += [json.loads(each["value"])["n"] for each in told["records"]]
                token = told["token"]
    assert sorted(seen) == list(range(20))


def test_events_can_begin_with_the_last_records(served: Served) -> None:
    put(served, '{"n": 0}', '{"n": 1}')
    with events(served, "?last=1") as found:
        assert [each["value"] for each in found.next("records")["records"]] == ['{"n": 1}']
        put(served, '{"n": 2}')
        assert [each["value"] for each in found.next("records")["records"]] == ['{"n": 2}']


def test_the_first_page_is_not_kept_while_a_topic_is_followed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = topics._begin
    pages: list[weakref.ref[Page]] = []

    def noted(*asked: Any) -> Page:
        page = begin(*asked)
        pages.append(weakref.ref(page))
        return page

    monkeypatch.setattr(topics, "_begin", noted)
    put(served, '{"n": 0}')
    with events(served, "?last=1") as found:
        assert len(found.next("records")["records"]) == 1
        await_true(lambda: [page() for page in pages] == [None])


def test_more_followers_than_may_are_refused(served: Served) -> None:
    with events(served) as one, events(served) as two, events(served) as three:
        for each in (one, two, three):
            each.next("progress")
        answer = served.ask(
            "GET", "/v1/topics/clicks/records", headers={"Accept": "text/event-stream"}
        )
        assert (answer.status_code, answer.json()["error"]) == (429, "EngineBusy")
        assert answer.headers["Retry-After"] == "5"
        with socket_to(served) as fourth:
            assert json.loads(fourth.recv(SECONDS))["error"] == "EngineBusy"
            assert closed_with(fourth) == 4429
    await_true(lambda: tail_threads() == 0)
    with events(served) as again:
        again.next("progress")


def test_followers_that_leave_leave_nothing_behind(served: Served) -> None:
    before = threading.active_count()
    for _ in range(10):
        with events(served) as found:
            found.next("progress")
        with socket_to(served) as follower:
            follower.recv(SECONDS)
    await_true(lambda: tail_threads() == 0)
    assert threading.active_count() <= before + 8  # threads of the pool, which are few


def test_events_end_in_good_order_when_the_server_stops(tmp_path: Path) -> None:
    began = threading.Event()
    ended: list[str] = []

    def follow() -> None:
        with events(served) as found:
            found.next("progress")
            began.set()
            try:
                while True:
                    found.next("progress")
            except EOFError:
                ended.append("at its end")

    thread = threading.Thread(target=follow)
    with serving(tmp_path) as served:
        thread.start()
        assert began.wait(SECONDS)
    thread.join(SECONDS)
    assert ended == ["at its end"]
    await_true(lambda: tail_threads() == 0)


def test_a_topic_that_is_deleted_ends_its_events(served: Served) -> None:
    with events(served) as found:
        found.next("progress")
        served.log.delete_topic("clicks")
        assert found.next("error")["error"] == "TopicNotFound"
        with pytest.raises(EOFError):
            found.next("progress")


# Following by WebSocket


@contextmanager
def socket_to(served: Served, query: str = "", *, path: str = "topics/clicks") -> Iterator[Any]:
    url = f"{served.url.replace('http', 'ws')}/v1/{path}/records{query}"
    with connect(url, additional_headers=AUTHORIZED, proxy=None, close_timeout=1) as follower:
        yield follower


def closed_with(follower: ClientConnection) -> int:
    with pytest.raises(ConnectionClosed) as caught:
        drain(follower)
    assert caught.value.rcvd is not None
    return int(caught.value.rcvd.code)


def drain(follower: ClientConnection) -> None:
    while True:
        follower.recv(SECONDS)


@pytest.mark.parametrize("path", ["topics/clicks", "streams/clicks"])
def test_a_socket_follows(served: Served, path: str) -> None:
    put(served, '{"n": 0}', '{"n": 1}')
    with socket_to(served, "?after=clicks/0@1", path=path) as follower:
        values: list[str] = []
        for number in range(2, 12):
            put(served, json.dumps({"n": number}), partition=number % 2)
        while len(values) < 11:
            told = json.loads(follower.recv(SECONDS))
            values += [each["value"] for each in told.get("records", ())]
        assert sorted(json.loads(value)["n"] for value in values) == list(range(1, 12))
        assert told["token"] == "clicks/0@7,clicks/1@5"


@pytest.mark.parametrize("frame", ["hello", b"hello"])
def test_a_socket_takes_no_frames(served: Served, frame: str | bytes) -> None:
    with socket_to(served) as follower:
        follower.recv(SECONDS)
        follower.send(frame)
        while (told := json.loads(follower.recv(SECONDS)))["type"] == "progress":
            pass
        assert told["error"] == "UsageError"
        assert "takes no messages" in told["message"]
        assert closed_with(follower) == 4400


@pytest.mark.parametrize(
    ("path", "query", "code", "error"),
    [
        ("topics/nothing", "", 4404, "TopicNotFound"),
        ("streams/nothing", "", 4404, "TopicNotFound"),
        ("topics/clicks", "?after=x", 4400, "UsageError"),
        ("topics/clicks", "?after=clicks/0@9", 4410, "PositionLost"),
        ("topics/clicks", "?last=0", 4400, "UsageError"),
        ("topics/clicks", "?last=1&after=clicks/0@0", 4400, "UsageError"),
        ("topics/clicks", "?from=0", 4400, "UsageError"),
    ],
)
def test_a_socket_is_told_why_it_is_closed(
    served: Served, path: str, query: str, code: int, error: str
) -> None:
    with socket_to(served, query, path=path) as follower:
        assert json.loads(follower.recv(SECONDS))["error"] == error
        assert closed_with(follower) == code


def test_a_socket_needs_permission(served: Served) -> None:
    url = f"{served.url.replace('http', 'ws')}/v1/topics/clicks/records"
    for token, code in (("nothing", 4401), ("producer", 4403)):
        headers = {"Authorization": f"Bearer {token}"}
        with connect(url, additional_headers=headers, proxy=None) as follower:
            assert closed_with(follower) == code


def test_a_socket_is_closed_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        opened = socket_to(served)
        follower = opened.__enter__()
        follower.recv(SECONDS)
    assert closed_with(follower) == 1012
    opened.__exit__(None, None, None)
    await_true(lambda: tail_threads() == 0)


# Readers that do not read


def stuck(served: Served, more: str) -> socket.socket:
    """Return the connection of a follower that reads nothing."""
    address = urlsplit(served.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect((address.hostname, address.port))
    head = f"GET /v1/topics/clicks/records HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n"
    connection.sendall(
        head.replace("\r\n\r\n", "\r\nAuthorization: Bearer reader\r\n\r\n").encode()
    )
    return connection


def read_all(connection: socket.socket) -> bytes:
    found = b""
    while chunk := connection.recv(1 << 20):
        found += chunk
    return found


@pytest.mark.parametrize(
    "more",
    [
        "Accept: text/event-stream\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    ],
    ids=["SSE", "WebSocket"],
)
def test_a_reader_that_does_not_read_is_told_and_dropped(
    served: Served, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DROP_SECONDS", 3.0)
    with stuck(served, more) as reader, stuck(served, more) as sleeper, events(served) as other:
        other.next("progress")
        large = json.dumps({"x": "x" * 500_000})
        for number in range(40):
            put(served, large, partition=number % 2)
        seen = 0
        while seen < 40:  # the others are not held up
            seen += len(other.next("records")["records"])
        await_true(lambda: served.tails.followers == 1)
        # One reads at last, and learns why it was dropped; of the other the connection is cut.
        reader.settimeout(SECONDS)
        assert b'"TooSlow"' in read_all(reader)[-1_000:]
        sleeper.settimeout(SECONDS)
        time.sleep(3.5)
        assert b'"TooSlow"' not in read_all(sleeper)
    await_true(lambda: tail_threads() == 0)


# On Kafka


@pytest.mark.slow
def test_on_kafka_offsets_without_records_are_passed_over(broker: "Broker", tmp_path: Path) -> None:
    from headrace.log.kafka.log import KafkaLog

    properties = {"bootstrap.servers": broker.bootstrap}
    with closing(KafkaLog(properties, prefix=f"{uuid4().hex}.")) as log:
        log.create_topic("clicks", partitions=2)
        with serving_log(tmp_path, log, limits=QUICK) as served:
            # By key, to both partitions: transactions, which leave an offset behind each.
            for number in range(4):
                body = json.dumps([{"n": number * 10 + at} for at in range(10)])
                assert served.append("clicks", body, key="n").status_code == 200
            found = [json.loads(each)["n"] for each in served.values("clicks")]
            assert sorted(found) == list(range(40))
            with events(served) as followed:
                followed.next("progress")
                served.append("clicks", '[{"n": 40}, {"n": 41}, {"n": 42}, {"n": 43}]', key="n")
                seen: list[int] = []
                while len(seen) < 4:
                    told = followed.next("records")["records"]
                    seen += [json.loads(each["value"])["n"] for each in told]
            assert sorted(seen) == [40, 41, 42, 43]
            assert read(served, last=4)["position"] == followed_to(served)


def followed_to(served: Served) -> str:
    ends = served.log.extents("clicks")
    return ",".join(f"{place}@{extent.end_offset}" for place, extent in sorted(ends.items()))
