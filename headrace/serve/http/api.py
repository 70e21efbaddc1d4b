"""The engine's HTTP API, in front of a desk.

    GET  /health               {"ok": true}
    GET  /status               see observe.status
    GET  /explain              one plan per view
    POST /sql                  {"sql", "max_rows"} -> {"columns", "rows"}; a stream of Arrow for
                               who accepts application/vnd.apache.arrow.stream
    POST /export               {"table": name or null} -> bytes, see store/duckdb/exporting.py;
                               {"view": name} -> a stream of Arrow, see serve/exporting.py

An error is {"error": its name in the tree of errors, "message"}: 400 for what the asker can mend,
408 for a body that does not arrive, 409 when an export is under way already, 413 for a body over
the limit or a query that reads too much, 429 for too many queries, 503 for the rest.
"""

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headrace.errors import HeadraceError, QueryTooLarge, TooManyQueries, UsageError
from headrace.serve.desk import StoreDesk
from headrace.serve.http.guard import MAX_BODY_BYTES, Guard, TooLarge, TooSlow, read_body
from headrace.serve.http.hanging_up import hearing_hang_up
from headrace.serve.http.values import ARROW
from headrace.serve.queries.forms import Form
from headrace.store.base import MAX_ROWS

__all__ = ["Api"]

_CHUNK_BYTES = 1 << 20
_STATUS: dict[type[HeadraceError], int] = {QueryTooLarge: 413, TooManyQueries: 429}


class Api:
    """Holds the ASGI `app`."""

    def __init__(self, desk: StoreDesk, *, token: str) -> None:
        self._desk = desk
        self._exporting = threading.Lock()
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route("/status", self._status, methods=["GET"]),
            Route("/explain", self._explain, methods=["GET"]),
            Route("/sql", self._sql, methods=["POST"]),
            Route("/export", self._export, methods=["POST"]),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[Middleware(Guard, token=token)],
            exception_handlers={
                HeadraceError: _answer_error,
                TooLarge: _answer_too_large,
                TooSlow: _answer_too_slow,
            },
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"ok": True})

    async def _status(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._desk.status))

    async def _explain(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._desk.explain))

    async def _sql(self, request: Request) -> Response:
        sql, max_rows = _read_question(await read_body(request))
        form = Form.ARROW if request.headers.get("accept") == ARROW else Form.JSON
        async with hearing_hang_up(request) as is_gone:
            answer = await run_in_threadpool(
                self._desk.answer, sql, form=form, max_rows=max_rows, cancelled=is_gone
            )
        headers = {"Headrace-Commit": str(answer.commit), "Headrace-Position": answer.position}
        if form is Form.ARROW:
            return StreamingResponse(answer.chunks(), media_type=ARROW, headers=headers)
        media_type = "application/json"
        return StreamingResponse(answer.json_chunks(), media_type=media_type, headers=headers)

    async def _export(self, request: Request) -> Response:
        write = self._read_export(await read_body(request))
        if not self._exporting.acquire(blocking=False):
            busy = "an export is under way already; ask again when it has ended"
            return JSONResponse({"error": "EngineError", "message": busy}, status_code=409)
        try:
            file = await run_in_threadpool(_exported, write)
        finally:
            self._exporting.release()
        return StreamingResponse(_chunks(file), media_type="application/octet-stream")

    def _read_export(self, body: bytes) -> Callable[[IO[bytes]], None]:
        """Return what writes the export that is asked for."""
        try:
            asked = json.loads(body)
            view = asked.get("view")
            table = asked["table"] if view is None else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                'the body names no table; send {"view": "NAME"} or {"table": null}'
            ) from error
        if not isinstance(view, str | None) or not isinstance(table, str | None):
            raise UsageError("view and table take a name, table also null for the ledger")
        if view is not None:
            return partial(self._desk.export_view, view=view)
        return partial(self._desk.export, table=table)


def _exported(write: Callable[[IO[bytes]], None]) -> IO[bytes]:
    """Write an export to a file without a name; the transaction ends before it is sent."""
    file = TemporaryFile()  # noqa: SIM115 - closed when it is sent
    try:
        write(file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _read_question(body: bytes) -> tuple[str, int]:
    try:
        question = json.loads(body)
        sql, max_rows = question["sql"], question.get("max_rows", MAX_ROWS)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError('the body is not a question; send {"sql": "SELECT ..."}') from error
    if not isinstance(sql, str) or type(max_rows) is not int or max_rows < 1:
        raise UsageError("sql takes text and max_rows a whole number of 1 or more")
    return sql, max_rows


def _error(error: Exception) -> dict[str, Any]:
    name = type(error).__name__ if isinstance(error, HeadraceError) else "EngineError"
    return {"error": name, "message": str(error) or type(error).__name__}


async def _answer_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HeadraceError)
    status = 400 if error.exit_code == UsageError.exit_code else 503
    status = _STATUS.get(type(error), status)
    return JSONResponse(_error(error), status_code=status)


async def _answer_too_large(_: Request, _error: Exception) -> Response:
    message = f"a request has at most {MAX_BODY_BYTES} bytes"
    return JSONResponse({"error": "UsageError", "message": message}, status_code=413)


async def _answer_too_slow(_: Request, _error: Exception) -> Response:
    message = "the request's body did not arrive in time; send it again"
    return JSONResponse({"error": "UsageError", "message": message}, status_code=408)
