"""Pause views and sinks, and let them go on."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import needs
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import services_of

__all__ = ["router"]

router = APIRouter(tags=["control"], responses=dict(ERRORS), dependencies=[needs(Role.ADMIN)])


class Controlled(BaseModel):
    """What was asked for, and what it does now."""

    name: str
    state: str


@router.post("/v1/views/{name}/pause", summary="Pause a view")
async def pause_view(request: Request, name: Annotated[str, Path()]) -> Controlled:
    """Keep the view's rows as they are from its next turn on; the others go on.

    It answers when the turn under way has ended.
    """
    await run_in_threadpool(services_of(request).control.pause_view, name)
    return Controlled(name=name, state="paused")


@router.post("/v1/views/{name}/resume", summary="Let a paused view go on")
async def resume_view(request: Request, name: Annotated[str, Path()]) -> Controlled:
    """Let the view read what it missed; it is live again when it is level."""
    await run_in_threadpool(services_of(request).control.resume_view, name)
    return Controlled(name=name, state="building")


@router.post("/v1/sinks/{name}/pause", summary="Pause a sink")
async def pause_sink(request: Request, name: Annotated[str, Path()]) -> Controlled:
    """Let the sink be told nothing; what it is owed waits in the store."""
    await run_in_threadpool(services_of(request).control.pause_sink, name)
    return Controlled(name=name, state="paused")


@router.post("/v1/sinks/{name}/resume", summary="Let a paused sink go on")
async def resume_sink(request: Request, name: Annotated[str, Path()]) -> Controlled:
    """Let the sink be told what waits for it, in order."""
    await run_in_threadpool(services_of(request).control.resume_sink, name)
    return Controlled(name=name, state="live")
