"""Topics: append to them, list them, read their records and follow them."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, WebSocket
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from headrace.errors import PositionLost, TopicNotFound, UsageError
from headrace.log import EmbeddedLog
from headrace.log.base import Log, Partition, Range
from headrace.model.definitions import Project
from headrace.serve.finding import find_topic
from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import needs
from headrace.serve.http.ingesting import Ingesting, body_kind
from headrace.serve.http.parameters import refuse_unknown, unknown
from headrace.serve.http.permissions import Role
from headrace.serve.http.routes.topic_examples import APPENDED, BODIES, RECORDS
from headrace.serve.http.services import services_of
from headrace.serve.http.streaming import EVENTS, EventStream, send_to_socket
from headrace.serve.message import Message
from headrace.serve.reading.positions import parse_position, position_text
from headrace.serve.tailing.following import Tails
from headrace.serve.tailing.pages import (
    MAX_PAGE_RECORDS,
    Page,
    check_position,
    end_of,
    read_after,
    read_last,
)

__all__ = ["router"]

router = APIRouter(tags=["topics"], responses=dict(ERRORS))

_READS = [needs(Role.READ)]
_LAST = 50
_MAX_POSITION_CHARACTERS = 16_384
POSITION_PATTERN = r"^[A-Za-z0-9._-]{1,249}/[0-9]{1,9}@[0-9]{1,18}$"

Last = Annotated[
    int | None, Query(ge=1, le=MAX_PAGE_RECORDS, description="So many of the newest records.")
]
After = Annotated[
    str | None,
    Query(
        max_length=_MAX_POSITION_CHARACTERS,
        description="The records after this position.",
        examples=["payments/0@120,payments/1@33"],
        # Told, not checked: what is no position is answered with how to write one.
        json_schema_extra={"pattern": POSITION_PATTERN},
    ),
]
Limit = Annotated[
    int, Query(ge=1, le=MAX_PAGE_RECORDS, description="So many after `after`, at most.")
]
LastEventId = Annotated[
    str | None,
    Header(max_length=_MAX_POSITION_CHARACTERS, description="As `after`, which it overrules."),
]


class PartitionRange(BaseModel):
    """Offsets `[first_offset, end_offset)` of a partition."""

    partition: int
    first_offset: int
    end_offset: int


class Appended(BaseModel):
    """Where the records of a body are. They are durable, and readers see them."""

    topic: str
    records: int
    partitions: list[PartitionRange]
    position: str
    without_key: int


class TopicAnswer(BaseModel):
    """A topic and what it holds. `bytes` is null where the log cannot tell cheaply."""

    name: str
    partitions: list[PartitionRange]
    records: int
    bytes: int | None


class Topics(BaseModel):
    """All topics of the log."""

    topics: list[TopicAnswer]


@router.post(
    "/v1/topics/{topic}",
    summary="Append records",
    dependencies=[needs(Role.INGEST)],
    openapi_extra={"requestBody": BODIES},
    responses={200: {"description": "Stored, all of them.", "content": APPENDED}},
)
async def append(
    request: Request,
    topic: str,
    key: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=500,
            description="The field, or path such as $.a.b, that holds each record's key; without "
            "it, the key that the topic's streams declare.",
        ),
    ] = None,
    partition: Annotated[
        int | None, Query(ge=0, le=2**31 - 1, description="Append to this one, not by key.")
    ] = None,
    envelope: Annotated[
        bool,
        Query(
            description='Each record is `{"key"?, "value", "headers"?: {name: text}, "delete"?}`.'
        ),
    ] = False,
    delete: Annotated[
        bool,
        Query(
            description="Each record is the primary key of a row that is deleted from the table "
            "which reads the topic."
        ),
    ] = False,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            description="The same key and request again stores nothing twice, and is answered "
            "with the same offsets. Use a new one for each request, such as a UUID.",
        ),
    ] = None,
) -> Appended:
    """Append all records of a body, or none, and answer once they are durable."""
    refuse_unknown(request, {"key", "partition", "envelope", "delete"})
    kind = body_kind(request.headers)
    ingesting: Ingesting = request.app.state.ingesting
    done = await ingesting.append(
        request,
        topic,
        kind,
        key=key,
        partition=partition,
        envelope=envelope,
        deletes=delete,
        idempotency_key=idempotency_key,
    )
    found: dict[int, PartitionRange] = {}
    for (_, number), start, end in done.ranges:
        first = min(start, found[number].first_offset) if number in found else start
        found[number] = PartitionRange(partition=number, first_offset=first, end_offset=end)
    ends = {place: end for place, _, end in done.ranges}
    return Appended(
        topic=topic,
        records=done.records,
        partitions=[found[number] for number in sorted(found)],
        position=position_text(ends),
        without_key=done.without_key,
    )


@router.get("/v1/topics", summary="All topics", dependencies=_READS)
async def topics(request: Request) -> Topics:
    """Return the topics of the log, and the offsets that each partition holds."""
    refuse_unknown(request, set())
    log = services_of(request).log

    def answer() -> Topics:
        names = [topic.name for topic in log.topics()]
        found: dict[str, list[PartitionRange]] = {name: [] for name in names}
        for place, (first, end) in log.extents(*names).items():
            found[place.topic].append(
                PartitionRange(partition=place.number, first_offset=first, end_offset=end)
            )
        return Topics(
            topics=[
                TopicAnswer(
                    name=name,
                    partitions=ranges,
                    records=sum(each.end_offset - each.first_offset for each in ranges),
                    bytes=_stored_bytes(log, name, ranges),
                )
                for name, ranges in found.items()
            ]
        )

    return await run_in_threadpool(answer)


def _stored_bytes(log: Log, topic: str, ranges: list[PartitionRange]) -> int | None:
    """Return how many bytes are stored, where that takes no reading."""
    if not isinstance(log, EmbeddedLog):
        return None
    filled = [each for each in ranges if each.first_offset < each.end_offset]
    try:
        return sum(
            log.measure(Range(Partition(topic, each.partition), each.first_offset, each.end_offset))
            for each in filled
        )
    except PositionLost:
        return None  # retention was faster


@router.get(
    "/v1/topics/{topic}/records",
    summary="Records of a topic",
    dependencies=_READS,
    response_model=None,
    responses={200: {"description": "A page, or events without end.", "content": RECORDS}},
)
async def topic_records(
    request: Request,
    topic: str,
    last: Last = None,
    after: After = None,
    limit: Limit = MAX_PAGE_RECORDS,
    last_event_id: LastEventId = None,
) -> Response:
    """Return the newest records, or those after a position.

    With `Accept: text/event-stream` follow the topic from its end, or from there.
    """
    return await _answer(request, topic, last, after, limit, last_event_id)


@router.get(
    "/v1/streams/{name}/records",
    summary="Records of a stream's topic",
    dependencies=_READS,
    response_model=None,
    responses={200: {"description": "A page, or events without end.", "content": RECORDS}},
)
async def stream_records(
    request: Request,
    name: str,
    last: Last = None,
    after: After = None,
    limit: Limit = MAX_PAGE_RECORDS,
    last_event_id: LastEventId = None,
) -> Response:
    """Return the records of the topic that a stream reads, as `/v1/topics/{topic}/records` does."""
    topic = _topic_of(services_of(request).project(), name)
    return await _answer(request, topic, last, after, limit, last_event_id)


async def _answer(
    request: Request,
    topic: str,
    last: int | None,
    after: str | None,
    limit: int,
    last_event_id: str | None,
) -> Response:
    refuse_unknown(request, {"last", "after", "limit"})
    follows = EVENTS in request.headers.get("accept", "")
    after = last_event_id or after if follows else after
    if last is not None and after is not None:
        raise UsageError("last and after exclude each other; pass one of them")
    tails: Tails = request.app.state.tails
    if not follows:
        page = await tails.read(lambda: _read(tails.log, topic, last, after, limit))
        return JSONResponse(
            {"topic": topic, "position": position_text(page.position), "records": page.records}
        )
    opening = _opening(tails, lambda: (topic, last, after))
    return EventStream(opening, send_seconds=tails.limits.send_seconds)


@asynccontextmanager
async def _opening(
    tails: Tails, asked: Callable[[], tuple[str, int | None, str | None]]
) -> AsyncIterator[AsyncGenerator[list[Message]]]:
    """Follow the topic that is asked for, from its `last` records or `after` a position."""
    topic, last, after = asked()
    with tails.place():
        # The first page gets no name here: it would be kept while the topic is followed.
        yield tails.messages(topic, await tails.read(lambda: _begin(tails.log, topic, last, after)))


@router.websocket("/v1/topics/{topic}/records")
async def follow_topic(websocket: WebSocket, topic: str) -> None:
    """Follow a topic."""
    await _follow(websocket, lambda: topic)


@router.websocket("/v1/streams/{name}/records")
async def follow_stream(websocket: WebSocket, name: str) -> None:
    """Follow the topic of a stream."""
    await _follow(websocket, lambda: _topic_of(services_of(websocket).project(), name))


async def _follow(websocket: WebSocket, topic: Callable[[], str]) -> None:
    tails: Tails = websocket.app.state.tails
    opening = _opening(tails, lambda: (topic(), *_socket_start(websocket.query_params)))
    await send_to_socket(websocket, opening, send_seconds=tails.limits.send_seconds)


def _socket_start(given: Mapping[str, str]) -> tuple[int | None, str | None]:
    last, after = given.get("last"), given.get("after")
    if others := set(given) - {"last", "after"}:
        raise unknown(others, ("last", "after"))
    if last is not None and after is not None:
        raise UsageError("last and after exclude each other; pass one of them")
    if last is None:
        return None, after
    if not (last.isascii() and last.isdecimal() and 1 <= int(last[:9]) <= MAX_PAGE_RECORDS):
        raise UsageError(f"last={last[:20]}: write a number from 1 to {MAX_PAGE_RECORDS}")
    return int(last), None


def _read(log: Log, topic: str, last: int | None, after: str | None, limit: int) -> Page:
    find_topic(log, topic)
    if after is None:
        return read_last(log, topic, last or _LAST)
    position = parse_position(after)
    check_position(log, topic, position)
    return read_after(log, topic, position, limit)


def _begin(log: Log, topic: str, last: int | None, after: str | None) -> Page:
    """Return what a follower begins with."""
    find_topic(log, topic)
    if last is not None:
        return read_last(log, topic, last)
    if after is None:
        return Page([], end_of(log, topic))
    position = parse_position(after)
    check_position(log, topic, position)
    return Page([], position)


def _topic_of(project: Project, name: str) -> str:
    known = {stream.name: stream.topic for stream in project.streams}
    known |= {view.name: view.topic for view in project.views if view.topic is not None}
    if name not in known:
        names = f"there are {', '.join(sorted(known))}" if known else "there is none"
        raise TopicNotFound(f"{name[:249]!r}: no such stream; {names}")
    return known[name]
