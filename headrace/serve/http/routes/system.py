"""Whether the engine lives, is ready, and what is going on."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import needs
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import services_of

__all__ = ["router"]

router = APIRouter(tags=["system"], responses=dict(ERRORS))
_READS = [needs(Role.READ)]


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, bool]:
    """Answer, whatever the engine is doing."""
    return {"ok": True}


@router.get("/readyz", summary="Whether all views can be read")
async def readyz(request: Request) -> JSONResponse:
    """Answer 200 when every view is live, 503 with the reason before."""
    reason = await run_in_threadpool(services_of(request).unready)
    if reason is None:
        return JSONResponse({"ready": True})
    return JSONResponse({"ready": False, "reason": reason}, 503)


@router.get("/v1/status", summary="What is going on", dependencies=_READS)
async def status(request: Request) -> dict[str, Any]:
    """Return streams, views, sinks, units and bounds, as `headrace status --json` does."""
    services = services_of(request)
    found = await run_in_threadpool(services.desk.status)
    return {**found, "serving": dict(services.figures())}


@router.get("/v1/explain", summary="How views are computed", dependencies=_READS)
async def explain(request: Request) -> list[dict[str, Any]]:
    """Return the plan of every view, as `headrace explain --json` does."""
    return await run_in_threadpool(services_of(request).desk.explain)
