"""What the project defines, how it hangs together, and how late its records come."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool

from headrace.model.names import closest
from headrace.plan.explain_text import explanation_text
from headrace.serve.describing import describe_graph, describe_project
from headrace.serve.http.errors import ERRORS, Refused
from headrace.serve.http.guard import needs
from headrace.serve.http.permissions import Role
from headrace.serve.http.services import services_of
from headrace.serve.sampling import LatenessSamples

__all__ = ["router"]

router = APIRouter(tags=["definitions"], responses=dict(ERRORS), dependencies=[needs(Role.READ)])

_TEXT_WIDTH = 100


@router.get("/v1/definitions", summary="Streams, views and sinks as they are defined")
async def definitions(request: Request) -> dict[str, Any]:
    """Return each definition's text, columns, keys and options."""
    services = services_of(request)
    return await run_in_threadpool(
        lambda: describe_project(services.project(), services.desk.pipelines())
    )


@router.get("/v1/graph", summary="Topics, streams, operators, views and sinks as a graph")
async def graph(request: Request) -> dict[str, Any]:
    """Return nodes and edges; an edge has the number of records that went along it."""
    services = services_of(request)
    return await run_in_threadpool(
        lambda: describe_graph(services.project(), services.desk.status())
    )


@router.get("/v1/explain", summary="How views are computed")
async def explain(
    request: Request, view: Annotated[str | None, Query(description="of this view alone")] = None
) -> list[dict[str, Any]]:
    """Return the plan of every view, as `headrace explain --json` does, and as text."""
    plans = await run_in_threadpool(services_of(request).desk.explain)
    chosen = [plan for plan in plans if view is None or plan["view"] == view]
    if view is not None and not chosen:
        known = sorted({plan["view"] for plan in plans})
        raise _not_found("view", view, known)
    return [{**plan, "text": explanation_text(plan, _TEXT_WIDTH)} for plan in chosen]


@router.get("/v1/streams/{name}/lateness", summary="How late the last records of a stream came")
async def lateness(request: Request, name: Annotated[str, Path()]) -> dict[str, Any]:
    """Measure the last records of each partition: a histogram, and what the views lost of them.

    `headrace lateness` measures the whole topic.
    """
    services = services_of(request)
    project = services.project()
    stream = next((each for each in project.streams if each.name == name), None)
    if stream is None:
        raise _not_found("stream", name, [each.name for each in project.streams])
    samples: LatenessSamples = request.app.state.lateness
    return await run_in_threadpool(samples.of, stream, project)


def _not_found(kind: str, name: str, known: list[str]) -> Refused:
    there = ", ".join(known) or "none"
    message = f"there is no {kind} {name}{closest(name, known)}; there are: {there}"
    return Refused(404, "UsageError", message)
