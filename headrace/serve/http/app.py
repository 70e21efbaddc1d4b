"""The HTTP API as one application: routes behind the guard, every error in one form."""

from fastapi import FastAPI

from headrace.serve.dashboard.routes import dashboard_routes
from headrace.serve.following.following import Following
from headrace.serve.following.hub import FollowLimits
from headrace.serve.http.bodies import MAX_APPEND_BYTES, BoundedBodies
from headrace.serve.http.errors import handle_errors
from headrace.serve.http.guard import Guard, Limits
from headrace.serve.http.ingesting import Ingesting
from headrace.serve.http.metrics import Metrics
from headrace.serve.http.permissions import Permissions
from headrace.serve.http.routes import (
    control,
    definitions,
    following,
    session,
    sql,
    system,
    topics,
    views,
)
from headrace.serve.http.services import Services, full_status
from headrace.serve.http.stopping import Stopping
from headrace.serve.ingest.appending import Ingest
from headrace.serve.reading.views import Views
from headrace.serve.sampling import LatenessSamples
from headrace.serve.tailing.following import Tails

__all__ = ["OPENAPI", "make_app"]

OPENAPI = "/v1/openapi.json"

_ABOUT = """Tables that are kept up to date from event logs, and the logs themselves.

Every answer about rows says the commit and the position in the log that it was read at. Send
`Authorization: Bearer TOKEN`; an error is `{"error", "message"}`.
"""


def make_app(
    services: Services,
    permissions: Permissions,
    *,
    limits: Limits | None = None,
    max_append_bytes: int = MAX_APPEND_BYTES,
    following_limits: FollowLimits | None = None,
) -> FastAPI:
    """Return the application."""
    app = FastAPI(
        title="Headrace",
        version="1",
        description=_ABOUT,
        openapi_url=OPENAPI,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    app.state.services = services
    app.state.permissions = permissions
    app.state.lateness = LatenessSamples(services.log)
    app.state.metrics = Metrics(services.turns, lambda: full_status(app))
    app.state.views = Views(services.store, services.log, services.commits)
    app.state.waiting_reads = 0
    app.state.following = Following(
        services.store, app.state.views, services.commits, following_limits
    )
    app.state.stopping = Stopping()
    app.state.ingesting = Ingesting(Ingest(services.appends or services.log, services.project))
    app.state.tails = Tails(services.log)
    # They end answers that stay open.
    app.state.before_stop = [app.state.following.close, app.state.stopping.note]
    for each in (system, session, definitions, sql, control, topics, views, following):
        app.include_router(each.router)
    app.routes.extend(dashboard_routes())
    handle_errors(app)
    app.add_middleware(BoundedBodies, max_append_bytes=max_append_bytes)
    app.add_middleware(Guard, permissions=permissions, limits=limits)
    return app
