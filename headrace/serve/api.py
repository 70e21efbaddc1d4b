"""The engine's API: what it answers from, who may ask, and where it listens."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING

from headrace.log.base import Log
from headrace.log.opening import KafkaPlace, open_log
from headrace.observe.status import EngineStatus
from headrace.project.config import Config
from headrace.project.lock import Holder, owner_token, publish_address
from headrace.project.serving import ServeSettings
from headrace.serve.desk import StoreDesk
from headrace.serve.following.hub import FollowLimits
from headrace.serve.http.app import make_app
from headrace.serve.http.guard import Limits
from headrace.serve.http.permissions import Grant, Permissions, Role, TokenGrant
from headrace.serve.http.server import serve_at
from headrace.serve.http.services import Services
from headrace.serve.queries.pool import QueryPool

if TYPE_CHECKING:
    from headrace.serve.process import Served

__all__ = ["serving_api"]


@contextmanager
def _opened_for_producers(config: Config) -> Iterator[Log | None]:
    """Open a log for what producers send by HTTP, where the engine's own would hold them up.

    On Kafka a log with a name makes one transaction at a time: a turn would wait for producers.
    """
    if not isinstance(config.log, KafkaPlace):
        yield None
        return
    with closing(open_log(config.log, name=f"ingest:{config.name}")) as log:
        yield log


@contextmanager
def serving_api(
    config: Config, served: "Served", holder: Holder, *, watches: bool
) -> Iterator[str]:
    """Serve the API of an engine and yield its URL; its address is left for other commands."""
    tools, token = served.engine.tools, owner_token(config.runtime)
    permissions = _permissions(config.serve, token)
    with ExitStack() as stack:
        # What holds the processes to their limits is Linux': elsewhere queries are answered here.
        queries = None
        if sys.platform == "linux":
            queries = stack.enter_context(QueryPool(tools.store, folder=config.runtime))
        services = Services(
            _make_desk(config, served, holder, watches, queries),
            tools.log,
            tools.store,
            project=lambda: served.engine.project,
            control=served,
            commits=served.commits,
            turns=served.turns,
            unready=served.unready,
            appends=stack.enter_context(_opened_for_producers(config)),
            queries=lambda: 0 if queries is None else queries.under_way,
        )

        app = make_app(
            services,
            permissions,
            limits=Limits(requests_per_second=config.serve.max_requests_per_second),
            max_append_bytes=config.serve.max_body_mb << 20,
            following_limits=FollowLimits(max_subscribers=config.serve.max_subscribers),
        )
        places = [config.serve]
        if not config.serve.is_loopback or config.serve.tls_certificate is not None:
            # The owner's commands need neither a certificate nor a name that one was made for.
            places.append(ServeSettings())
        urls = stack.enter_context(serve_at(app, *places))
        stack.enter_context(publish_address(config.runtime, urls[-1], holder, token))
        if queries is not None:
            stack.callback(queries.close)  # before the server, which would wait for their answers
        yield urls[0]


def _make_desk(
    config: Config, served: "Served", holder: Holder, watches: bool, queries: QueryPool | None
) -> StoreDesk:
    tools = served.engine.tools
    return StoreDesk(
        config.name,
        tools.log,
        tools.store,
        config.settings,
        pipelines=lambda: [unit.pipeline for unit in list(served.engine.units.values())],
        disk=served.disk,
        engine=EngineStatus(holder.pid, holder.started, watches, package_version("headrace")),
        last_turns=lambda: served.engine.last_turns(),
        prepares_plans=config.prepares_plans,
        commits=served.commits,
        queries=queries,
    )


def _permissions(settings: ServeSettings, token: str) -> Permissions:
    """Return the grants of headrace.toml, and the owner's, who has the project's folder."""
    grants = [TokenGrant.of(token, Grant("owner", Role.ADMIN))]
    for each in settings.tokens:
        grant = Grant(each.name, Role(each.role), each.expires_us)
        grants.append(TokenGrant.of(each.token, grant))
    certificate = None
    if settings.client_role is not None:
        certificate = Grant("certificate", Role(settings.client_role))
    key = hashlib.sha256(f"sessions of {token}".encode()).digest()
    return Permissions(grants, certificate=certificate, key=key)
