"""Whether the engine lives, is ready, and what is going on."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import grant_of, needs
from headrace.serve.http.metrics import CONTENT_TYPE, Metrics
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import full_status, services_of
from headrace.serve.turns import MAX_TURNS

__all__ = ["router"]

router = APIRouter(tags=["system"], responses=dict(ERRORS))
_READS = [needs(Role.READ)]


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, bool]:
    """Answer, whatever the engine is doing."""
    return {"ok": True}


@router.get("/readyz", summary="Whether all views can be read")
async def readyz(request: Request) -> JSONResponse:
    """Answer 200 when every view is live, 503 before; who may read is told which are not."""
    reason = await run_in_threadpool(services_of(request).unready)
    if reason is None:
        return JSONResponse({"ready": True})
    grant = grant_of(request)
    if grant is None or not grant.role.allows(Role.READ):
        reason = "views are being built; with a token you are told which"
    return JSONResponse({"ready": False, "reason": reason}, 503)


@router.get("/v1/status", summary="What is going on", dependencies=_READS)
async def status(request: Request) -> dict[str, Any]:
    """Return streams, views, sinks, units and bounds, as `headrace status --json` does."""
    return await run_in_threadpool(full_status, request.app)


@router.get("/v1/turns", summary="The last turns", dependencies=_READS)
async def turns(
    request: Request,
    unit: Annotated[str | None, Query(description="of this unit alone")] = None,
    last: Annotated[int, Query(ge=1, le=MAX_TURNS)] = 120,
) -> dict[str, list[dict[str, Any]]]:
    """Return what the last turns did and how long each step took, newest first."""
    found = services_of(request).turns.last(last, unit)
    return {
        "turns": [
            {**asdict(each.report), "ended_us": each.ended_us, "fresh_ms": each.fresh_ms}
            for each in found
        ]
    }


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    dependencies=_READS,
    response_class=PlainTextResponse,
)
async def metrics(request: Request) -> Response:
    """Return all metrics in Prometheus' text format."""
    found: Metrics = request.app.state.metrics
    return Response(await run_in_threadpool(found.text), media_type=CONTENT_TYPE)
