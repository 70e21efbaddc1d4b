"""Sessions of browsers: a cookie that scripts cannot read stands for a token."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from headrace.serve.http.errors import ERRORS, Refused
from headrace.serve.http.guard import SESSION_COOKIE, grant_of, session_of
from headrace.serve.http.permissions import SESSION_SECONDS, Grant, Permissions, Role

__all__ = ["router"]

router = APIRouter(tags=["session"], responses=dict(ERRORS))


class Login(BaseModel):
    """What begins a session."""

    token: str = Field(min_length=1, max_length=4_096, examples=["the token the engine printed"])


class Session(BaseModel):
    """Who is logged in. `expires_us` is null where the token never expires."""

    name: str
    role: Role
    expires_us: int | None


@router.post("/v1/login", summary="Begin a session")
async def log_in(request: Request, response: Response, login: Login) -> Session:
    """Set a cookie that stands for the token, for browsers. 401: the token is unknown."""
    permissions: Permissions = request.app.state.permissions
    found = permissions.log_in(login.token)
    if found is None:
        message = (
            "the token is wrong or has expired; `headrace run` prints a link with a token, and "
            "`headrace dashboard` prints it again"
        )
        raise Refused(401, "AccessDenied", message)
    session, grant = found
    response.set_cookie(
        SESSION_COOKIE,
        session,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path="/",
    )
    return _session(grant)


@router.post("/v1/logout", summary="End the session", status_code=204)
async def log_out(request: Request) -> Response:
    """Forget the session of this browser."""
    permissions: Permissions = request.app.state.permissions
    if (session := session_of(request)) is not None:
        permissions.log_out(session)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


@router.get("/v1/session", summary="Who is logged in")
async def session(request: Request) -> Session:
    """Return the name and role of whoever asks."""
    grant = grant_of(request)
    assert grant is not None, "the guard lets none in"
    return _session(grant)


def _session(grant: Grant) -> Session:
    return Session(name=grant.name, role=grant.role, expires_us=grant.expires_us)
