"""Errors as answers: `{"error": name in the tree of errors, "message"}` and a status.

400 what the asker can mend; 404 what is not there; 408 a body that does not arrive, or messages
that are not taken; 409 what is under way already, or differs from what it says it is; 410 what is
gone; 413 too large; 415 another type; 429 too many; 503 the rest.
"""

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from headrace.errors import (
    AccessDenied,
    EngineBusy,
    HeadraceError,
    InvalidTopic,
    KeyReused,
    PositionLost,
    QueryRefused,
    QueryTooLarge,
    RecordTooLarge,
    TokenRefused,
    TokenTooOld,
    TooManyQueries,
    TooSlow,
    TopicNotFound,
    UsageError,
    ViewNotFound,
)

__all__ = ["ERRORS", "ErrorBody", "Refused", "handle_errors", "status_of"]

logger = logging.getLogger("headrace.serve")

_STATUS: Mapping[type[HeadraceError], int] = {
    TopicNotFound: 404,
    ViewNotFound: 404,
    InvalidTopic: 400,
    RecordTooLarge: 413,
    QueryRefused: 400,
    QueryTooLarge: 413,
    TooManyQueries: 429,
    TokenTooOld: 410,
    TokenRefused: 409,
    PositionLost: 410,
    KeyReused: 409,
    AccessDenied: 502,
    UsageError: 400,
    EngineBusy: 429,
    TooSlow: 408,
}


class ErrorBody(BaseModel):
    """What went wrong, where, and what to do."""

    error: str
    message: str


#: For the description of routes: any of them may answer like this.
ERRORS: Mapping[int | str, dict[str, object]] = {
    "4XX": {"model": ErrorBody, "description": "what the asker can mend"},
    "5XX": {"model": ErrorBody, "description": "what the engine, its log or its store cannot do"},
}


class Refused(HTTPException):
    """A request that is answered with an error. `error` is a name, from the tree where it fits."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.error = error
        self.message = message

    @property
    def body(self) -> dict[str, str]:
        """The answer."""
        return {"error": self.error, "message": self.message}


def status_of(error: HeadraceError) -> int:
    """Return the status that an error is answered with."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return 503


def handle_errors(app: FastAPI) -> None:
    """Let every error be answered in the one form."""
    app.add_exception_handler(HeadraceError, _answer_known)
    app.add_exception_handler(Refused, _answer_refused)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_unknown)


async def _answer_known(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HeadraceError)
    body = {"error": type(error).__name__, "message": str(error) or type(error).__name__}
    headers = {"Retry-After": "5"} if isinstance(error, EngineBusy) else None
    return JSONResponse(body, status_of(error), headers=headers)


async def _answer_refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return JSONResponse(error.body, error.status_code, headers=error.headers)


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()
    ]
    body = {"error": "UsageError", "message": f"the request does not fit: {'; '.join(found)}"}
    return JSONResponse(body, 400)


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if error.status_code == 404:
        message = f"{request.url.path} is not part of the API; /v1/openapi.json lists what is"
    elif error.status_code == 405:
        message = f"{request.url.path} does not take {request.method}; see /v1/openapi.json"
    body = {"error": "UsageError", "message": message}
    return JSONResponse(body, error.status_code, headers=error.headers)


async def _answer_unknown(request: Request, error: Exception) -> JSONResponse:
    logger.error("%s %s failed: %r", request.method, request.url.path, error, exc_info=error)
    message = f"the engine failed to answer ({type(error).__name__}); its log has the details"
    return JSONResponse({"error": "EngineError", "message": message}, 500)
