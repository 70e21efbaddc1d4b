"""What depends on the listener that a request came by.

1. **Host.** On loopback only requests to this machine's own name are answered: a browser would
   otherwise let a web page in under a name that resolves to 127.0.0.1 (DNS rebinding).
2. **Certificate.** Whether TLS has checked one of the client, which may be a permission. Only the
   listener knows: the scheme of a request is what a proxy says it is.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.project.serving import ServeSettings
from headrace.serve.http.errors import Refused
from headrace.serve.http.refusing import refuse

__all__ = ["Listener", "bracketed", "has_certificate"]

_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
_CERTIFICATE = "headrace.certificate"


class Listener:
    """Hands requests of one listener on to the app that may have several of them."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._host = bracketed(settings.host)
        self._names = {self._host, *_OWN_NAMES} if settings.is_loopback else None
        self._has_certificate = settings.tls_client_ca is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the name that is asked for."""
        if scope["type"] not in ("http", "websocket"):
            return
        name = _name_of(Headers(scope=scope).get("host", ""))
        if self._names is not None and name not in self._names:
            message = f"host {name[:100]!r} is not served here; ask {self._host}"
            await refuse(scope, receive, send, Refused(400, "UsageError", message))
            return
        scope[_CERTIFICATE] = self._has_certificate
        await self._app(scope, receive, send)


def has_certificate(scope: Scope) -> bool:
    """Whether TLS has checked a certificate of the client."""
    found: bool = scope.get(_CERTIFICATE, False)
    return found


def bracketed(host: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _name_of(host: str) -> str:
    """Return the name of a `Host`, without the port."""
    name, bracket, _ = host.partition("]") if host.startswith("[") else host.partition(":")
    return (name + "]" if bracket == "]" else name).lower()
