"""Free SQL, and what an audit compares."""

import json
import threading
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field

from headrace.serve.desk import Desk
from headrace.serve.http.errors import ERRORS, Refused
from headrace.serve.http.guard import needs
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import services_of
from headrace.serve.http.values import ARROW, arrow_bytes
from headrace.store.base import MAX_ROWS

__all__ = ["router"]

router = APIRouter(tags=["sql"], responses=dict(ERRORS))

_CHUNK_BYTES = 1 << 20
_exporting = threading.Lock()


class Question(BaseModel):
    """One reading statement in DuckDB's SQL."""

    sql: str = Field(examples=["SELECT * FROM per_minute LIMIT 10"])
    max_rows: int = Field(default=MAX_ROWS, ge=1)


class Table(BaseModel):
    """A physical table; null: the ledger."""

    table: str | None = None


@router.post(
    "/v1/sql",
    summary="Ask the tables",
    dependencies=[needs(Role.READ)],
    response_class=Response,
    responses={200: {"content": {"application/json": {}, ARROW: {}}}},
)
async def sql(request: Request, question: Question) -> Response:
    """Answer one reading statement, as JSON or as a stream of Arrow."""
    desk = services_of(request).desk
    as_arrow = request.headers.get("accept") == ARROW

    def answer() -> bytes:
        # Made here, not in the event loop: a large answer would hold up every other request.
        if as_arrow:
            return arrow_bytes(desk.table(question.sql, max_rows=question.max_rows))
        return json.dumps(desk.sql(question.sql, max_rows=question.max_rows)).encode()

    media_type = ARROW if as_arrow else "application/json"
    return Response(await run_in_threadpool(answer), media_type=media_type)


@router.post(
    "/v1/export",
    summary="Export for an audit",
    dependencies=[needs(Role.ADMIN)],
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def export(request: Request, asked: Table) -> StreamingResponse:
    """Return the ledger, or all rows of a physical table, for another process to compare."""
    if not _exporting.acquire(blocking=False):
        busy = "an export is under way already; ask again when it has ended"
        raise Refused(409, "EngineBusy", busy)
    try:
        file = await run_in_threadpool(_export, services_of(request).desk, asked.table)
    finally:
        _exporting.release()
    return StreamingResponse(_chunks(file), media_type="application/octet-stream")


def _export(desk: Desk, table: str | None) -> IO[bytes]:
    """Write an export to a file without a name; the transaction ends before it is sent."""
    file = TemporaryFile()  # noqa: SIM115 - closed when it is sent
    try:
        desk.export(file, table)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
