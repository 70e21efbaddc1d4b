"""What the routes answer from, as one value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.requests import HTTPConnection

from headrace.errors import UsageError
from headrace.log.base import Log
from headrace.model.definitions import Project
from headrace.serve.desk import StoreDesk
from headrace.serve.signal import Signal
from headrace.serve.turns import Turns
from headrace.store.base import Store

__all__ = ["Control", "Services", "full_status", "services_of"]


class Control(Protocol):
    """What changes how the engine works. UsageError: there is no such view or sink."""

    def pause_view(self, name: str) -> None:
        """Pause a view."""
        ...

    def resume_view(self, name: str) -> None:
        """Let a paused view go on."""
        ...

    def pause_sink(self, name: str) -> None:
        """Pause a sink."""
        ...

    def resume_sink(self, name: str) -> None:
        """Let a paused sink go on."""
        ...


class NoControl:
    """There is no engine to control."""

    def pause_view(self, name: str) -> None:
        """Refuse to."""
        raise UsageError(f"there is no {name}: no engine runs here")

    resume_view = pause_sink = resume_sink = pause_view


@dataclass(frozen=True)
class Services:
    """The parts of a served project. An engine may take another's place: ask anew each time.

    `unready` returns why the project does not answer from all of its views yet, None: it does.
    """

    desk: StoreDesk
    log: Log
    store: Store
    project: Callable[[], Project]
    control: Control = field(default_factory=NoControl)
    commits: Signal = field(default_factory=Signal)
    turns: Turns = field(default_factory=Turns)
    unready: Callable[[], str | None] = lambda: None
    appends: Log | None = None  # what producers append with; None: `log`
    queries: Callable[[], int] = lambda: 0  # how many are being answered


def services_of(connection: HTTPConnection | Request) -> Services:
    """Return the services that a request is answered from."""
    services: Services = connection.app.state.services
    return services


def full_status(app: FastAPI) -> dict[str, Any]:
    """Return what is going on, with the server's own figures: who follows views, and topics."""
    services: Services = app.state.services
    serving = {
        "subscribers": app.state.following.subscribers,
        "followers": app.state.tails.followers,
        "queries": services.queries(),
    }
    return {**services.desk.status(), "serving": serving}
