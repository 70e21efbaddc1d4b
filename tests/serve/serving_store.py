"""A server over an embedded log and a store, without an engine, for tests of the API."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.log import EmbeddedLog
from headrace.log.base import Log
from headrace.model.definitions import Project
from headrace.project.serving import ServeSettings
from headrace.project.settings import Settings
from headrace.serve.desk import StoreDesk
from headrace.serve.http.app import make_app
from headrace.serve.http.guard import Limits
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve
from headrace.serve.http.services import Services
from headrace.serve.signal import Signal
from headrace.sql import parse_project
from headrace.store.base import Store
from headrace.store.duckdb.store import DuckDBStore

__all__ = ["TOKENS", "Server", "bearer", "serving_store"]

#: A token for each role, and one that has expired.
TOKENS = {role: f"the token for {role}" for role in Role}
EXPIRED = "the token of yesterday"


@dataclass(frozen=True)
class Server:
    """What is served, and where."""

    url: str
    log: Log
    store: Store
    services: Services


def bearer(token: str) -> dict[str, str]:
    """Return the header that a token is sent in."""
    return {"Authorization": f"Bearer {token}"}


def grants(extra: Sequence[TokenGrant] = ()) -> list[TokenGrant]:
    """Return the tokens of a server."""
    found = [TokenGrant.of(token, Grant(f"a {role}", role)) for role, token in TOKENS.items()]
    return [*found, TokenGrant.of(EXPIRED, Grant("old", Role.ADMIN, expires_us=1)), *extra]


@contextmanager
def serving_store(
    folder: Path,
    sql: str = "",
    *,
    limits: Limits | None = None,
    settings: ServeSettings | None = None,
    permissions: Permissions | None = None,
    unready: Callable[[], str | None] = lambda: None,
) -> Iterator[Server]:
    """Serve a log and a store in a folder, with the definitions of a text."""
    settings = settings or ServeSettings()
    log, store = EmbeddedLog(folder / "log"), DuckDBStore(folder / "store.duckdb")
    project = parse_project({"shop.sql": sql}) if sql else Project((), ())
    commits = Signal()
    desk = StoreDesk("shop", log, store, Settings(), pipelines=list, commits=commits)
    services = Services(desk, log, store, project=lambda: project, commits=commits, unready=unready)
    app = make_app(
        services,
        permissions or Permissions(grants()),
        limits=limits,
    )
    try:
        with serve(app, settings) as url:
            yield Server(url, log, store, services)
    finally:
        store.close()
        log.close()
