"""Hear that a client hangs up while its request is worked on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import Request

__all__ = ["hearing_hang_up"]


@asynccontextmanager
async def hearing_hang_up(request: Request) -> AsyncIterator[Callable[[], bool]]:
    """Yield what tells, from any thread, whether the client is gone. Its body must be read."""
    gone = threading.Event()

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listener = asyncio.create_task(listen())
    try:
        yield gone.is_set
    finally:
        listener.cancel()
