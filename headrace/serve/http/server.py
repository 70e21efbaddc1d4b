"""Run an ASGI app in a thread of its own, on loopback unless the settings say otherwise."""

import asyncio
import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from headrace.errors import EngineError
from headrace.project.serving import ServeSettings
from headrace.serve.http.connections import Socket, connection_class
from headrace.serve.http.listener import Listener, bracketed

__all__ = ["serve", "serve_at"]

MAX_FRAME_BYTES = 4_096  # from a client, which has nothing to say
_START_SECONDS = 10.0
_UNSENT_BYTES = 128 << 10  # that the kernel holds of an answer, besides what is on its way
# How long a thread keeps Python's interpreter while another one waits for it. A turn asks for the
# interpreter many times; with Python's default of 5 ms, readers would slow it down each time.
_SWITCH_SECONDS = 0.0005


@contextmanager
def serve(app: ASGIApp, settings: ServeSettings | None = None) -> Iterator[str]:
    """Serve and yield the URL. EngineError: the address is taken, or a certificate unreadable."""
    with serve_at(app, settings or ServeSettings()) as [url]:
        yield url


@contextmanager
def serve_at(app: ASGIApp, *places: ServeSettings) -> Iterator[list[str]]:
    """Serve at several addresses, from one event loop, and yield their URLs. EngineError.

    What is in `app.state.before_stop` is called when the server is about to stop.
    """
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
    with ExitStack() as stack:
        listeners = [stack.enter_context(_listen(place)) for place in places]
        servers = [uvicorn.Server(_config(app, place)) for place in places]
        work = partial(_run, list(zip(servers, listeners, strict=True)))
        thread = threading.Thread(target=work, name="serve", daemon=True)
        thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not all(server.started for server in servers):
            if not thread.is_alive() or time.monotonic() > deadline:
                raise EngineError("the engine's HTTP server does not start; see the lines above")
            time.sleep(0.01)
        try:
            yield [_url(place, listener) for place, listener in zip(places, listeners, strict=True)]
        finally:
            # Before the server waits for answers under way: those that stay open must end.
            for stop in getattr(getattr(app, "state", None), "before_stop", ()):
                stop()
            for server in servers:
                server.should_exit = True
            thread.join()


def _run(servers: Sequence[tuple[uvicorn.Server, socket.socket]]) -> None:
    """Run servers in one event loop: an app belongs to one."""

    async def run_all() -> None:
        await asyncio.gather(*(server.serve([listener]) for server, listener in servers))

    with asyncio.Runner(loop_factory=servers[0][0].config.get_loop_factory()) as runner:
        runner.run(run_all())


def _config(app: ASGIApp, settings: ServeSettings) -> uvicorn.Config:
    config = uvicorn.Config(
        Listener(app, settings),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws=Socket,
        ws_max_size=MAX_FRAME_BYTES,
        ws_max_queue=1,
        ws_per_message_deflate=False,  # it would cost more than loopback carries
        server_header=False,
        http=connection_class(),
        timeout_graceful_shutdown=2,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        ssl_ca_certs=None if settings.tls_client_ca is None else str(settings.tls_client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise EngineError(
            f"TLS cannot begin: {error}. tls_certificate, tls_key and tls_client_ca of [serve] "
            f"must be files in PEM that belong together."
        ) from error
    return config


def _url(settings: ServeSettings, listener: socket.socket) -> str:
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://{bracketed(settings.host)}:{listener.getsockname()[1]}"


def _listen(settings: ServeSettings) -> socket.socket:
    where = f"{bracketed(settings.host)}:{settings.port}"
    try:
        [family, kind, protocol, _, address], *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise EngineError(
            f"{where} cannot be served: {error.strerror}; see [serve] host"
        ) from error
    # With its protocol: asyncio sends at once (TCP_NODELAY) only where a socket says that it is
    # TCP. Else the end of each answer waits 40 ms for the acknowledgement of its beginning.
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # The kernel takes little ahead. Else it would take megabytes at a time, and it could not be
    # seen for long that a slow client takes anything (connections.py).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise EngineError(
            f"{where} cannot be served: {error.strerror}. Set another [serve] port in "
            f"headrace.toml, or 0 for any free one."
        ) from error
    return listener
