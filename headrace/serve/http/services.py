"""What the routes answer from, as one value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fastapi import Request
from fastapi.requests import HTTPConnection

from headrace.log.base import Log
from headrace.model.definitions import Project
from headrace.serve.commits import Commits
from headrace.serve.desk import StoreDesk
from headrace.store.base import Store

__all__ = ["Services", "services_of"]


@dataclass(frozen=True)
class Services:
    """The parts of a served project. An engine may take another's place: ask anew each time.

    `unready` returns why the project does not answer from all of its views yet, None: it does.
    """

    desk: StoreDesk
    log: Log
    store: Store
    project: Callable[[], Project]
    commits: Commits = field(default_factory=Commits)
    unready: Callable[[], str | None] = lambda: None
    appends: Log | None = None  # what producers append with; None: `log`
    figures: Callable[[], Mapping[str, int]] = dict  # of the server itself, for status


def services_of(connection: HTTPConnection | Request) -> Services:
    """Return the services that a request is answered from."""
    services: Services = connection.app.state.services
    return services
