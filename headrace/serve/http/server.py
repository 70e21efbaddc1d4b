"""Run an ASGI app on loopback in a thread of its own."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from headrace.errors import EngineError
from headrace.serve.http.connections import WebSocketConnection, connection_class

__all__ = ["serve"]

MAX_FRAME_BYTES = 4_096  # from a client, which has nothing to say
_START_SECONDS = 10.0


@contextmanager
def serve(app: ASGIApp, *, port: int) -> Iterator[str]:
    """Serve on 127.0.0.1 and yield the URL; port 0 takes a free one. EngineError: it is taken.

    What is in `app.state.before_stop` is called when the server is about to stop.
    """
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    listener = _listen(port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws=WebSocketConnection,
        ws_max_size=MAX_FRAME_BYTES,
        ws_max_queue=1,
        ws_per_message_deflate=False,  # it would cost more than loopback carries
        server_header=False,
        http=connection_class(),
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="serve", daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise EngineError("the engine's HTTP server does not start; see the lines above")
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # Before the server waits for answers under way: those that stay open must end.
        for stop in getattr(getattr(app, "state", None), "before_stop", ()):
            stop()
        server.should_exit = True
        thread.join()
        listener.close()


def _listen(port: int) -> socket.socket:
    # With its protocol: asyncio sends at once (TCP_NODELAY) only where a socket says that it is
    # TCP. Else the end of each answer waits 40 ms for the acknowledgement of its beginning.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise EngineError(
            f"127.0.0.1:{port} cannot be served: {error.strerror}. Set another [serve] port in "
            f"headrace.toml, or 0 for any free one."
        ) from error
    return listener
