"""Tell answers that stay open that the server is about to stop, so that they end in good order."""

from fastapi import FastAPI

from headrace.serve.signal import Signal

__all__ = ["Stopping", "stopping_of"]


class Stopping:
    """Whether a server is about to stop. `note` is safe in any thread."""

    def __init__(self) -> None:
        self._told = Signal()

    def note(self) -> None:
        """Say that it is."""
        self._told.note()

    async def wait(self) -> None:
        """Return when it is."""
        await self._told.after(0)


def stopping_of(app: FastAPI) -> Stopping:
    """Return what tells an application's answers to end."""
    found: Stopping = app.state.stopping
    return found
