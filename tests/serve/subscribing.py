"""Subscribers of a served view that keep what they folded at every commit they were told of."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from headrace.client import Client, Fold, Message
from headrace.client.messages import parse_message
from headrace.errors import EngineError, TokenRefused, Unreachable
from headrace.serve.http.values import answer_to_json
from headrace.store.base import Store
from headrace.testing.store.changing import History
from serve.serving import READ, Server

SECONDS = 30.0  # that a test waits for what must come

Rows = Counter[str]


def shown(store: Store, view: str = "hits") -> tuple[int, Rows]:
    """Return the last commit, and the rows of a view there."""
    with store.open() as snapshot:
        found = snapshot.query(f"SELECT * EXCLUDE (_events) FROM {view}", max_rows=None)
        commit = snapshot.commits()
    answer = answer_to_json(found)
    names = [column["name"] for column in answer["columns"]]
    rows = (dict(zip(names, row, strict=True)) for row in answer["rows"])
    return commit, Counter(json.dumps(row, sort_keys=True) for row in rows)


def folded(fold: Fold) -> Rows:
    return Counter(json.dumps(row, sort_keys=True) for row in fold.rows.values())


class Subscriber(threading.Thread):
    """Folds what it is sent until it is told to stop; `leave` makes it come back by its token."""

    def __init__(self, url: str, view: str = "hits", **asked: Any) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.view = view
        self.asked = asked
        self.fold = Fold()
        self.at: dict[int, Rows] = {}
        self.resets = 0
        self.failure: BaseException | None = None
        self._leaves = threading.Event()
        self._away_seconds = 0.0
        self._stops = threading.Event()

    def run(self) -> None:
        try:
            while not self._stops.is_set():
                for message in self.listen():
                    self.take(message)
                    if self._leaves.is_set() or self._stops.is_set():
                        break
                if self._leaves.is_set():
                    self._leaves.clear()
                    self._stops.wait(self._away_seconds)
        except Exception as error:  # noqa: BLE001 - told to who waits
            self.failure = error

    def take(self, message: Message) -> None:
        self.resets += type(message).__name__ == "Reset"
        if self.fold.take(message):
            commit = self.fold.commit
            assert commit is not None
            rows = folded(self.fold)
            assert self.at.setdefault(commit, rows) == rows, commit
            assert commit == max(self.at)

    def listen(self) -> Iterator[Message]:
        with Client(self.url, READ) as client:
            stream = client.subscribe(self.view, after=self.fold.token, patience_s=60, **self.asked)
            try:
                yield from stream
            except Unreachable:  # the first connection found no server
                time.sleep(0.05)
            finally:
                stream.close()  # type: ignore[attr-defined]

    def leave(self, seconds: float) -> None:
        """Go away at the next message, for so long."""
        self._away_seconds = seconds
        self._leaves.set()

    def stop(self) -> None:
        self._stops.set()
        self.join(20)
        assert not self.is_alive()

    def wait_for(self, commit: int, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while max(self.at, default=-1) < commit:
            if self.failure is not None:
                raise self.failure
            assert time.monotonic() < deadline, (commit, max(self.at, default=-1))
            time.sleep(0.01)


class EventSubscriber(Subscriber):
    """The same by server-sent events, as a browser does it."""

    def listen(self) -> Iterator[Message]:
        headers = {"Authorization": f"Bearer {READ}", "Accept": "text/event-stream"}
        if self.fold.token is not None:
            headers["Last-Event-ID"] = self.fold.token
        try:
            with httpx.stream(
                "GET",
                f"{self.url}/v1/views/{self.view}/changes",
                headers=headers,
                params=self.asked,
                trust_env=False,
                timeout=20,
            ) as answer:
                if answer.status_code in (409, 410):
                    self.fold = Fold()
                    return
                answer.raise_for_status()
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        yield parse_message(line.removeprefix("data: "))
        except (httpx.TransportError, httpx.HTTPStatusError, Unreachable):
            time.sleep(0.05)
        except TokenRefused:
            self.fold = Fold()
        except EngineError as error:
            if "further behind than" not in str(error):  # the ring is small: it comes back
                raise


def follow(
    server: Server,
    query: str = "",
    *,
    token: str = READ,
    view: str = "hits",
    url: str | None = None,
    **others: Any,
) -> ClientConnection:
    socket_url = (url or server.url).replace("http", "ws", 1)
    return connect(
        f"{socket_url}/v1/views/{view}/changes{query}",
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


def progress_after_turn(
    connection: ClientConnection, server: Server, history: History
) -> dict[str, Any]:
    """Take a turn, and return the progress that has it; it may have changed no row."""
    turn(server, history)
    commit, _ = shown(history.store)
    while (found := receive(connection, "progress"))["commit"] < commit:
        pass
    return found


def many_records(history: History, count: int, text: str) -> list[str]:
    """Let a view of records have so many more rows; return their texts."""
    texts = [f"{number} {text}" for number in range(count)]
    first = history.offset * count
    history.add([(0, number, each) for number, each in enumerate(texts, first)])
    return texts
