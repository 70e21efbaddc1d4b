"""An engine of canned answers behind the real files of the dashboard.

For tests of single modules, and of states that a real engine is rarely in.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headrace.serve.dashboard.routes import read_assets

__all__ = ["Asked", "Refusal", "StandIn", "column", "standing_in", "view"]

#: A page with the dashboard's styles and none of its scripts, for tests that import modules.
BLANK = b"""<!doctype html><title>modules</title><link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/css/tokens.css"><main id="main"></main>"""
FILES = {asset.path: asset for asset in read_assets()}


class Refusal(Exception):
    """An answer that is an error; status 0: the connection is closed without one."""

    def __init__(self, status: int, message: str = "no") -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """A request of the API."""

    path: str
    parameters: dict[str, list[str]]
    body: Any


class StandIn:
    """Answers by path, each a value or a function of the request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reset()

    def reset(self) -> None:
        """Forget what was asked, and be an engine without definitions."""
        self.asked: list[Asked] = []
        self.views: list[dict[str, Any]] = []
        self.streams: list[dict[str, Any]] = []
        self.sinks: list[dict[str, Any]] = []
        self.definitions: dict[str, Any] = {"views": [], "streams": [], "sinks": []}
        self.answers: dict[str, Any] = {
            "/v1/session": {"name": "test", "role": "admin", "expires_us": None},
            "/v1/status": lambda _: self._status(),
            "/v1/definitions": lambda _: self.definitions,
            "/v1/turns": {"turns": []},
        }

    def count(self, path: str) -> int:
        """Return how often a path was asked for."""
        return sum(each.path == path for each in self.asked)

    def answer(self, asked: Asked) -> Any:
        """Return what is answered. Refusal: an error."""
        self.asked.append(asked)
        if asked.path not in self.answers:
            raise Refusal(404)
        found = self.answers[asked.path]
        return found(asked) if callable(found) else found

    def _status(self) -> Any:
        engine = {"version": "1", "pid": 1, "watches": False, "started": "2026-01-01T00:00:00Z"}
        return {
            "project": "test",
            "commit": 7,
            "taken_us": time.time_ns() // 1000,
            "engine": engine,
            "streams": self.streams,
            "views": self.views,
            "sinks": self.sinks,
            "units": [],
            "warnings": [],
            "definitions": None,
            "void_markers": 0,
            "outbox_records": 0,
            "sink_rows": 0,
            "written_rows": 0,
        }


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """Serve the dashboard's files and canned answers."""
    engine = StandIn("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: otherwise each answer waits 40 ms for an ACK

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/blank":
                return self._send(200, "text/html", BLANK)
            if (asset := FILES.get(parts.path)) is not None:
                return self._send(200, asset.content_type, asset.content)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(parts.path, parse_qs(parts.query), json.loads(body or b"null"))
            try:
                status, answer = 200, engine.answer(asked)
            except Refusal as refusal:
                if refusal.status == 0:
                    self.close_connection = True
                    return None
                status, answer = refusal.status, {"error": "Refused", "message": str(refusal)}
            return self._send(status, "application/json", json.dumps(answer).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def _send(self, status: int, content_type: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        engine.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield engine
        server.shutdown()


def column(name: str, type: str) -> dict[str, str]:
    """Return a column as the API names it."""
    return {"name": name, "type": type}


def view(name: str, version: str = "v1", **changes: Any) -> dict[str, Any]:
    """Return a view as the status tells of it: too large to be followed."""
    return {
        "name": name,
        "version": version,
        "kind": "view",
        "state": "live",
        "reason": None,
        "unit": "main",
        "lag_records": 0,
        "state_rows": 10_000,
        "state_bytes_estimate": 0,
        "watermark_us": None,
        "error_rows": None,
        "inputs": ["orders"],
        "readers": [],
        "topic": None,
        "counters": {"seen": 1, "late": 0, "pairs": 0, "dead": 0},
        **changes,
    }
