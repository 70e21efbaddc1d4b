"""When a request is sent again: appends, while it is certain that nothing is stored twice."""

from collections.abc import Iterable, Mapping
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus

from headrace.client.answers import Appended, to_error, to_value
from headrace.client.asking import Request, pause_before_retry
from headrace.errors import HeadraceError, Unreachable

__all__ = ["MAX_MESSAGE_BYTES", "Trying", "closing_of", "merged", "refusal_of"]

MAX_MESSAGE_BYTES = 64 << 20

_BUSY = (429, 503)


class Trying:
    """The attempts of one request; each outcome is a pause before the next, or the end."""

    def __init__(self, request: Request, url: str) -> None:
        self._request = request
        self._url = url
        self._left = request.tries - 1

    def failed(self, error: httpx.HTTPError) -> float:
        """Return how long to wait before the request is sent again. Unreachable: it is not."""
        nothing_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if self._left > 0 and (nothing_sent or self._request.repeatable):
            return self._pause(None)
        raise Unreachable(
            f"the engine ({self._url}) does not answer: {error or type(error).__name__}. If it has "
            f"just ended, ask again."
        ) from error

    def answered(self, response: httpx.Response) -> float | None:
        """Return the same for an answer that says `later`; None: it is the answer."""
        if response.status_code not in _BUSY or self._left <= 0:
            return None
        if response.status_code != 429 and not self._request.repeatable:
            return None
        return self._pause(response.headers.get("retry-after"))

    def _pause(self, retry_after: str | None) -> float:
        self._left -= 1
        return pause_before_retry(self._request.tries - 2 - self._left, retry_after)


def merged(topic: str, answers: Iterable[Mapping[str, Any]]) -> Appended:
    """Return what several appends did as one."""
    records, without_key = 0, 0
    partitions: dict[int, dict[str, int]] = {}
    places: dict[str, str] = {}
    for answer in answers:
        records += answer["records"]
        without_key += answer.get("without_key", 0)
        for each in answer["partitions"]:
            first = partitions.get(each["partition"], each)["first_offset"]
            partitions[each["partition"]] = {**each, "first_offset": first}
        for place in filter(None, answer["position"].split(",")):
            places[place.rpartition("@")[0]] = place
    every = tuple(partitions[number] for number in sorted(partitions))
    return Appended(topic, records, every, ",".join(places.values()), without_key)


def closing_of(closed: ConnectionClosed) -> tuple[int | None, str]:
    """Return the code that an engine closed with and why; None: the connection was lost."""
    if closed.rcvd is None:
        return None, str(closed)
    return closed.rcvd.code, closed.rcvd.reason or str(closed)


def refusal_of(refused: InvalidStatus) -> HeadraceError:
    """Return why a WebSocket was refused before it was one."""
    response = refused.response
    try:
        to_value(response.status_code, bytes(response.body or b""))
    except HeadraceError as error:
        return error
    return to_error("EngineError", f"status {response.status_code}")
