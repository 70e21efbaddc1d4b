"""Serve the dashboard's files.

Promises:
- Only files of the package are served: they are read once, and no path is ever looked up on disk.
- Scripts and styles come from this server alone, and none stands in the page itself, so that text
  in a record cannot become code even if it reached the page as markup.
- A file is asked for again each time (`no-cache`) and sent only if it changed (a strong ETag), so
  an upgraded engine never runs with the scripts of the old one.
No permission is needed: there are no data in the files.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["ASSETS", "CONTENT_TYPES", "Asset", "dashboard_routes", "read_assets"]

ASSETS = Path(__file__).parent / "assets"
CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_PAGE = "index.html"
_POLICY = "; ".join(
    [
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        # Markup made from text is refused by browsers that know this, whatever our scripts do.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Asset:
    """A file as it is served."""

    path: str
    content_type: str
    content: bytes
    etag: str


def read_assets() -> list[Asset]:
    """Return all files of the dashboard; the page itself has the path `/`."""
    assets = []
    for file in sorted(each for each in ASSETS.rglob("*") if each.is_file()):
        name = file.relative_to(ASSETS).as_posix()
        content = file.read_bytes()
        path = "/" if name == _PAGE else f"/assets/{name}"
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        assets.append(Asset(path, CONTENT_TYPES[file.suffix], content, etag))
    return assets


def dashboard_routes() -> list[Route]:
    """Return a route for each file. They answer GET and HEAD, and need no permission."""
    return [_route(asset) for asset in read_assets()]


def _route(asset: Asset) -> Route:
    headers = {**_HEADERS, "ETag": asset.etag}

    async def send(request: Request) -> Response:
        if asset.etag in _known_tags(request):
            return Response(status_code=304, headers=headers)
        return Response(asset.content, headers=headers, media_type=asset.content_type)

    return Route(asset.path, send, methods=["GET"], include_in_schema=False)


def _known_tags(request: Request) -> set[str]:
    """Return the tags that the browser has; a proxy that compresses makes weak ones of them."""
    sent = request.headers.get("if-none-match", "").split(",")
    return {each.strip().removeprefix("W/") for each in sent}
