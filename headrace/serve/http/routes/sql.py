"""Free SQL, and what an audit compares."""

import threading
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from headrace.serve.desk import StoreDesk
from headrace.serve.http.errors import ERRORS, Refused
from headrace.serve.http.guard import needs
from headrace.serve.http.hanging_up import hearing_hang_up
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import services_of
from headrace.serve.http.values import ARROW
from headrace.serve.queries.forms import Form
from headrace.store.base import MAX_ROWS

__all__ = ["router"]

router = APIRouter(tags=["sql"], responses=dict(ERRORS))

CSV = "text/csv"
_FORMS = {ARROW: Form.ARROW, CSV: Form.CSV}
_CHUNK_BYTES = 1 << 20
_exporting = threading.Lock()


class Question(BaseModel):
    """One reading statement in DuckDB's SQL."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(examples=["SELECT * FROM per_minute LIMIT 10"])
    max_rows: int = Field(default=MAX_ROWS, ge=1)


class Export(BaseModel):
    """A view, as a stream of Arrow; or a physical table, null for the ledger, for an audit."""

    view: str | None = None
    table: str | None = None


@router.post(
    "/v1/sql",
    summary="Ask the tables",
    dependencies=[needs(Role.READ)],
    response_class=Response,
    responses={200: {"content": {"application/json": {}, ARROW: {}, CSV: {}}}},
)
async def sql(request: Request, question: Question) -> Response:
    """Answer one reading statement in DuckDB's SQL, in a process of its own with limits.

    As JSON or, by `Accept`, as a stream of Arrow or as CSV. It ends when the asker hangs up.
    """
    form = _FORMS.get(request.headers.get("accept", ""), Form.JSON)
    async with hearing_hang_up(request) as is_gone:
        answer = await run_in_threadpool(
            services_of(request).desk.answer,
            question.sql,
            form=form,
            max_rows=question.max_rows,
            cancelled=is_gone,
        )
    headers = {"Headrace-Commit": str(answer.commit), "Headrace-Position": answer.position}
    if form is Form.JSON:
        chunks, media_type = answer.json_chunks(), "application/json"
    else:
        chunks, media_type = answer.chunks(), request.headers["accept"]
    return StreamingResponse(chunks, media_type=media_type, headers=headers)


@router.post(
    "/v1/export",
    summary="Export a view, or for an audit",
    dependencies=[needs(Role.ADMIN)],
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def export(request: Request, asked: Export) -> StreamingResponse:
    """Return all rows of a view at one commit; or what another process compares in an audit."""
    if not _exporting.acquire(blocking=False):
        busy = "an export is under way already; ask again when it has ended"
        raise Refused(409, "EngineBusy", busy)
    try:
        file = await run_in_threadpool(_export, services_of(request).desk, asked)
    finally:
        _exporting.release()
    return StreamingResponse(_chunks(file), media_type="application/octet-stream")


def _export(desk: StoreDesk, asked: Export) -> IO[bytes]:
    """Write an export to a file without a name; the transaction ends before it is sent."""
    file = TemporaryFile()  # noqa: SIM115 - closed when it is sent
    try:
        if asked.view is None:
            desk.export(file, asked.table)
        else:
            desk.export_view(file, asked.view)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
