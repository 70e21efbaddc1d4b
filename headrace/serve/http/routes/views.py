"""Rows of views, and of their errors, at the commit that the answer names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from headrace.serve.http.errors import ERRORS, Refused
from headrace.serve.http.guard import needs
from headrace.serve.http.parameters import refuse_unknown
from headrace.serve.http.permissions import Role
from headrace.serve.http.room import waiting
from headrace.serve.http.values import ARROW
from headrace.serve.reading.asked import DEFAULT_LIMIT, MAX_LIMIT
from headrace.serve.reading.formats import CSV, encode, format_of, headers_of
from headrace.serve.reading.positions import parse_position
from headrace.serve.reading.views import Asked, NotYet, Views

__all__ = ["MAX_WAITING_READS", "router"]

MAX_WAITING_READS = 500
MAX_WAIT_MS = 60_000
_PARAMETERS = ("where", "order", "columns", "limit", "format", "min_position", "timeout_ms")

router = APIRouter(tags=["views"], responses=dict(ERRORS))


class ColumnBody(BaseModel):
    """A column and its type, as definitions write it."""

    name: str
    type: str


class RowsBody(BaseModel):
    """Rows of a view, and where it stood when they were read."""

    view: str
    version: str
    state: str = Field(description="of the version that is read: live, building or failed")
    commit: int
    position: str = Field(description="what was read of the log: topic/partition@next offset, ...")
    watermark_us: int | None
    columns: list[ColumnBody]
    key: list[str]
    rows: list[dict[str, Any]]
    more: bool = Field(description="whether there are rows that the limits leave out")


_OTHER_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "rows, in the format that was asked for",
        "content": {
            CSV: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get(
    "/v1/views/{name}",
    summary="Rows of a view",
    dependencies=[needs(Role.READ)],
    response_model=RowsBody,
    responses=_OTHER_FORMATS,
)
async def rows(
    request: Request,
    name: str,
    where: Annotated[
        list[str],
        Query(description="a condition: column, one of = != < <= > >=, value", examples=["n>=5"]),
    ] = [],  # noqa: B006 - FastAPI copies it
    order: Annotated[
        list[str], Query(description="columns, with - descending", examples=["-n,minute"])
    ] = [],  # noqa: B006
    columns: Annotated[list[str], Query(description="the columns to return")] = [],  # noqa: B006
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    format: Literal["json", "csv", "arrow"] | None = None,
    min_position: Annotated[
        str | None,
        Query(description="wait until the view has read up to here", examples=["payments/0@120"]),
    ] = None,
    timeout_ms: Annotated[int, Query(ge=0, le=MAX_WAIT_MS)] = 10_000,
) -> Response:
    """Return rows that readers see now, or the errors of a view: `/v1/views/NAME.errors`."""
    refuse_unknown(request, _PARAMETERS)
    views: Views = request.app.state.views
    if min_position is not None:
        await _wait(request, views, name, min_position, timeout_ms / 1000)
    media_type = format_of(format, request.headers.get("accept", ""))
    asked = Asked(where, order, columns, limit)

    def answer() -> Response:
        found = views.read(name, asked)
        return Response(encode(found, media_type), 200, headers_of(found), media_type)

    return await views.in_thread(answer, may_take_long=asked.may_take_long)


async def _wait(
    request: Request, views: Views, name: str, min_position: str, timeout_s: float
) -> None:
    wanted = parse_position(min_position)
    try:
        await views.wait_for(name, wanted, timeout_s=timeout_s, waiting=_waiting_read(request))
    except NotYet as error:
        raise Refused(504, "EngineBusy", str(error)) from error


@contextmanager
def _waiting_read(request: Request) -> Iterator[None]:
    state = request.app.state
    if state.waiting_reads >= MAX_WAITING_READS:
        message = f"{MAX_WAITING_READS} reads wait for a position already; ask again in a moment"
        raise Refused(429, "EngineBusy", message, headers={"Retry-After": "1"})
    with waiting(request):
        state.waiting_reads += 1
        try:
            yield
        finally:
            state.waiting_reads -= 1
