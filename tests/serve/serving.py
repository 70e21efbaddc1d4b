"""A real store behind the real server, without an engine: what tests of readers are played on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from headrace.log import EmbeddedLog
from headrace.model.definitions import Project
from headrace.project.serving import ServeSettings
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.serve.following.hub import FollowLimits
from headrace.serve.http.app import make_app
from headrace.serve.http.guard import Limits
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve_at
from headrace.serve.http.services import Services
from headrace.serve.signal import Signal
from headrace.store.base import Store

ADMIN, READ, INGEST = "admin token", "read token", "ingest token"
PERMISSIONS = Permissions(
    [
        TokenGrant.of(ADMIN, Grant("owner", Role.ADMIN)),
        TokenGrant.of(READ, Grant("reader", Role.READ)),
        TokenGrant.of(INGEST, Grant("producer", Role.INGEST)),
    ]
)


class Server:
    """A served store; tell it of commits with `commits.note()`."""

    def __init__(self, url: str, other_url: str, commits: Signal, app: Any) -> None:
        self.url = url
        self.other_url = other_url
        self.commits = commits
        self.app = app
        self.http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {READ}"}, trust_env=False, timeout=20
        )

    def get(self, path: str, **others: Any) -> httpx.Response:
        return self.http.get(path, **others)

    def rows(self, view: str = "hits", **parameters: Any) -> list[dict[str, Any]]:
        answer = self.get(f"/v1/views/{view}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["rows"]

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)


@contextmanager
def serving(
    store: Store,
    folder: Path,
    *,
    port: int = 0,
    max_requests: int = 64,
    permissions: Permissions = PERMISSIONS,
    **bounds: Any,
) -> Iterator[Server]:
    """Serve a store; `bounds` are those of subscriptions."""
    log = EmbeddedLog(folder / "log", sync=False)
    desk = StoreDesk("shop", log, store, Settings(), pipelines=list)
    commits = Signal()
    services = Services(desk, log, store, project=lambda: Project((), ()), commits=commits)
    limits = Limits(max_requests, requests_per_second=100_000)
    app = make_app(services, permissions, limits=limits, following_limits=FollowLimits(**bounds))
    try:
        # A second listener, as there is with TLS.
        with serve_at(app, ServeSettings(port=port), ServeSettings()) as (url, other_url):
            server = Server(url, other_url, commits, app)
            yield server
            server.http.close()
    finally:
        log.close()
