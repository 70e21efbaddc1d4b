"""The engine's HTTP API, in front of a desk.

    GET  /health               {"ok": true}
    GET  /status               see observe.status
    GET  /explain              one plan per view
    POST /sql                  {"sql", "max_rows"} -> {"columns", "rows"}
    POST /audit                lines of JSON: {"done", "all"} ..., then {"audit"} or {"error"}

An error is {"error": its name in the tree of errors, "message"}: 400 for what the asker can mend,
409 when an audit runs already, 413 for a body over the limit, 503 for the rest. An audit whose
asker goes away ends early.
"""

import json
import queue
import threading
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headrace.errors import EngineError, HeadraceError, UsageError
from headrace.serve.desk import Desk
from headrace.serve.guard import MAX_BODY_BYTES, Guard, TooLarge, read_body
from headrace.store.base import MAX_ROWS

__all__ = ["Api"]


class _Cancelled(Exception):
    """The asker is gone, or the engine ends."""


class Api:
    """Holds the ASGI `app`. `close` ends an audit that is under way."""

    def __init__(self, desk: Desk, *, token: str) -> None:
        self._desk = desk
        self._closed = threading.Event()
        self._auditing = threading.Lock()
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route("/status", self._status, methods=["GET"]),
            Route("/explain", self._explain, methods=["GET"]),
            Route("/sql", self._sql, methods=["POST"]),
            Route("/audit", self._audit, methods=["POST"]),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[Middleware(Guard, token=token)],
            exception_handlers={HeadraceError: _answer_error, TooLarge: _answer_too_large},
        )

    def close(self) -> None:
        """End what is under way."""
        self._closed.set()

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"ok": True})

    async def _status(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._desk.status))

    async def _explain(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._desk.explain))

    async def _sql(self, request: Request) -> Response:
        sql, max_rows = _read_question(await read_body(request))

        def answer() -> bytes:
            # Made here, not in the event loop: a large answer would hold up every other request.
            return json.dumps(self._desk.sql(sql, max_rows=max_rows)).encode()

        return Response(await run_in_threadpool(answer), media_type="application/json")

    async def _audit(self, request: Request) -> Response:
        await read_body(request)
        if not self._auditing.acquire(blocking=False):
            busy = "an audit is under way already; wait for it to end"
            return JSONResponse({"error": "EngineError", "message": busy}, status_code=409)
        return StreamingResponse(self._audit_lines(), media_type="application/x-ndjson")

    async def _audit_lines(self) -> AsyncIterator[bytes]:
        lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        gone = threading.Event()

        def progress(done: int, all: int) -> None:
            if gone.is_set() or self._closed.is_set():
                raise _Cancelled
            lines.put({"done": done, "all": all})

        def work() -> None:
            try:
                lines.put({"audit": self._desk.audit(progress)})
            except _Cancelled:
                lines.put(_error(EngineError("the engine ended before the audit did; ask again")))
            except Exception as error:  # noqa: BLE001 - the asker is told, whatever it is
                lines.put(_error(error))
            finally:
                lines.put(None)
                self._auditing.release()

        threading.Thread(target=work, name="audit", daemon=True).start()
        try:
            while (line := await run_in_threadpool(lines.get)) is not None:
                yield json.dumps(line).encode() + b"\n"
        finally:
            gone.set()


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
    return JSONResponse(_error(error), status_code=status)


async def _answer_too_large(_: Request, _error: Exception) -> Response:
    message = f"a request has at most {MAX_BODY_BYTES} bytes"
    return JSONResponse({"error": "UsageError", "message": message}, status_code=413)
