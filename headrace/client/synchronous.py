"""The client for programs without an event loop."""

import os
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from headrace.client.address import Address, address_of, address_of_project
from headrace.client.answers import Answer, Appended, Rows, to_value
from headrace.client.asking import (
    Request,
    Where,
    append_requests,
    query_request,
    rows_request,
)
from headrace.client.folding import Fold
from headrace.client.messages import Message
from headrace.client.resuming import Resuming
from headrace.client.trying import MAX_MESSAGE_BYTES, Trying, closing_of, merged, refusal_of

__all__ = ["Client"]


class Client:
    """Asks a running engine. `url` and `token` default to HEADRACE_URL and HEADRACE_TOKEN.

    Errors are those of `headrace.errors`: AccessDenied, UsageError, QueryRefused, ViewNotFound,
    TokenTooOld and what else the engine answers; Unreachable where it does not answer. One client
    may be used by several threads.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 40.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._begin(address_of(url, token), timeout_s, tls)

    def _begin(self, address: Address, timeout_s: float, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._tls = tls
        # No proxy: the token is for the engine alone.
        self._http = httpx.Client(
            base_url=address.url,
            headers=address.headers,
            timeout=timeout_s,
            verify=True if tls is None else tls,
            trust_env=False,
        )

    @classmethod
    def of_project(
        cls, folder: str | os.PathLike[str] = ".", *, timeout_s: float = 40.0
    ) -> "Client":
        """Return a client of the engine that serves a project on this machine. Unreachable."""
        client = cls.__new__(cls)
        client._begin(address_of_project(folder), timeout_s, None)
        return client

    def append(
        self,
        topic: str,
        records: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        key: str | None = None,
        partition: int | None = None,
        idempotent: bool = True,
    ) -> Appended:
        """Append records as JSON; they are in the log when it returns. TopicNotFound.

        `key` names the field that is the key. What fails on its way is sent again; with
        `idempotent` it is stored once nevertheless. Records over 4 MiB or 10,000 go in several
        batches, and each is appended whole or not at all.
        """
        requests = append_requests(
            topic, records, key=key, partition=partition, idempotent=idempotent
        )
        return merged(topic, (self._ask(request) for request in requests))

    def delete(self, topic: str, keys: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Appended:
        """Delete the rows with these primary keys from the table that reads a topic.

        `client.delete("accounts", {"account": "a1"})`. It is in the log when it returns, and is
        sent again as `append` does. UsageError: no table reads the topic, or a key is not whole.
        """
        requests = append_requests(
            topic, keys, key=None, partition=None, idempotent=True, deletes=True
        )
        return merged(topic, (self._ask(request) for request in requests))

    def query(self, sql: str, *, max_rows: int | None = None) -> Answer:
        """Answer one reading statement. QueryRefused."""
        return Answer.of(self._ask(query_request(sql, max_rows)))

    def rows(
        self,
        view: str,
        *,
        where: Where = (),
        order: Sequence[str] = (),
        limit: int | None = None,
        columns: Sequence[str] = (),
        min_position: str | None = None,
        timeout_s: float = 10.0,
    ) -> Rows:
        """Return rows of a view. ViewNotFound; EngineBusy: `min_position` was not reached in time.

        `where={"country": "NO", "n": (">=", 5)}`; `order=["-n"]` is descending.
        """
        request = rows_request(
            view,
            where=where,
            order=order,
            limit=limit,
            columns=columns,
            min_position=min_position,
            timeout_s=timeout_s,
        )
        return Rows.of(self._ask(request))

    def status(self) -> dict[str, Any]:
        """Return what is going on, as `headrace status --json` does."""
        return dict(self._ask(Request("GET", "/v1/status")))

    def subscribe(
        self,
        view: str,
        *,
        after: str | None = None,
        where: Where = (),
        columns: Sequence[str] = (),
        snapshot: bool = True,
        patience_s: float | None = 60.0,
    ) -> Iterator[Message]:
        """Yield `Reset`, `Changes` and `Progress` of a view, for as long as you listen.

        When the connection is lost it is made anew, and goes on behind the last message: no change
        is missed or repeated. When that is not possible a `Reset` says so, and all rows come again.
        After `patience_s` without an engine: Unreachable. ViewNotFound, TokenTooOld (of `after`).
        """
        resuming = Resuming(
            view,
            after=after,
            where=where,
            columns=columns,
            snapshot=snapshot,
            patience_s=patience_s,
        )
        while True:
            try:
                with self._connect(resuming.path) as socket:
                    while True:
                        message = resuming.received(socket.recv())
                        if message is not None:
                            yield message
            except ConnectionClosed as error:
                pause_s = resuming.ended(*closing_of(error))
            except InvalidStatus as error:
                pause_s = resuming.refused(error.response.status_code, refusal_of(error))
            except (OSError, InvalidHandshake) as error:
                pause_s = resuming.ended(None, str(error))
            time.sleep(pause_s)

    def _connect(self, path: str) -> ClientConnection:
        return connect(
            f"{self._address.socket_url}{path}",
            additional_headers=self._address.headers,
            open_timeout=self._timeout_s,
            close_timeout=1.0,
            max_size=MAX_MESSAGE_BYTES,
            compression=None,
            ssl=self._tls,
            proxy=None,
        )

    def _ask(self, request: Request) -> Any:
        trying = Trying(request, self._address.url)
        while True:
            try:
                response = self._http.request(
                    request.method,
                    request.path,
                    params=list(request.parameters),
                    headers=dict(request.headers),
                    content=request.content,
                )
            except httpx.HTTPError as error:
                pause_s = trying.failed(error)
            else:
                asked_to_wait = trying.answered(response)
                if asked_to_wait is None:
                    return to_value(response.status_code, response.content)
                pause_s = asked_to_wait
            time.sleep(pause_s)

    def fold(self, view: str, *, where: Where = (), columns: Sequence[str] = ()) -> Iterator[Fold]:
        """Yield the rows of a view at each commit that the engine tells of: the same value anew."""
        fold = Fold()
        for message in self.subscribe(view, where=where, columns=columns):
            if fold.take(message):
                yield fold

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
