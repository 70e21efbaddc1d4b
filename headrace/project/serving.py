"""What headrace.toml says about serving: where, to whom, how much.

    [serve]
    host                     default: 127.0.0.1, this machine alone
    port                     default: 0, any free one
    tls_certificate, tls_key files in PEM: HTTPS
    tls_client_ca            a file in PEM: clients need a certificate that it signed (mTLS)
    client_role              what a client with such a certificate may do without a token
    plaintext                true: serve other machines without TLS, tokens readable on the way
    max_body_mb, max_requests_per_second, max_subscribers

    [serve.tokens.NAME]
    role                     ingest, read or admin
    token                    "${VARIABLE}", of at least MIN_TOKEN characters
    expires                  a date or time; default: never

Promise: on another address than loopback nothing is served without a token or a certificate, nor,
unless `plaintext` says so, without TLS.
"""

import ipaddress
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from headrace.errors import Location, Problem
from headrace.log.secrets import VARIABLE, FromEnvironment

__all__ = ["MIN_TOKEN", "ROLES", "SERVE_KEYS", "ServeSettings", "TokenSetting", "check_serve",
           "serve_settings"]  # fmt: skip

MIN_TOKEN = 16
ROLES = ("ingest", "read", "admin")
SERVE_KEYS: Mapping[str, type] = {
    "host": str,
    "port": int,
    "tls_certificate": str,
    "tls_key": str,
    "tls_client_ca": str,
    "client_role": str,
    "plaintext": bool,
    "max_body_mb": int,
    "max_requests_per_second": int,
    "max_subscribers": int,
    "tokens": dict,
}
_FILES = ("tls_certificate", "tls_key", "tls_client_ca")
_TOKEN_KEYS = ("role", "token", "expires")

Place = Callable[[str, str], Location]


@dataclass(frozen=True)
class TokenSetting:
    """A token and what it is for; `expires_us` None: never."""

    name: str
    role: str
    token: str = field(repr=False)
    expires_us: int | None = None


@dataclass(frozen=True)
class ServeSettings:
    """Where the API is served, to whom, and its bounds."""

    host: str = "127.0.0.1"
    port: int = 0
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    client_role: str | None = None
    max_body_mb: int = 8
    max_requests_per_second: int = 1_000
    max_subscribers: int = 500
    tokens: tuple[TokenSetting, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone is served."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve_settings(folder: Path, data: Mapping[str, Any]) -> ServeSettings:
    """Return what [serve] says, once `check_serve` has found no problem."""
    given = {name: data[name] for name in SERVE_KEYS if name in data and name != "plaintext"}
    for name in _FILES:
        if name in given:
            given[name] = folder / given[name]
    given["tokens"] = tuple(
        TokenSetting(name, entry["role"], _text(entry["token"]), _expires_us(entry.get("expires")))
        for name, entry in data.get("tokens", {}).items()
    )
    return ServeSettings(**given)


def check_serve(folder: Path, data: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """Yield what is wrong with [serve]; the types of its own settings are right."""
    for name in _FILES:
        if name in data and not (folder / data[name]).is_file():
            yield Problem(place("serve", name), f"{name}: there is no file {data[name]!r}")
    if ("tls_certificate" in data) != ("tls_key" in data):
        given = "tls_certificate" if "tls_certificate" in data else "tls_key"
        yield Problem(
            place("serve", given), "TLS takes tls_certificate and tls_key; one of them is missing"
        )
    if "tls_client_ca" in data and "tls_certificate" not in data:
        yield Problem(
            place("serve", "tls_client_ca"),
            "tls_client_ca checks the certificates of clients, so the server needs one too: set "
            "tls_certificate and tls_key",
        )
    if (role := data.get("client_role")) is not None:
        if role not in ROLES:
            yield Problem(place("serve", "client_role"), _no_role(role))
        elif "tls_client_ca" not in data:
            yield Problem(
                place("serve", "client_role"),
                "client_role is for clients with a certificate; set tls_client_ca, or use "
                "[serve.tokens.NAME] role",
            )
    for name in ("max_body_mb", "max_requests_per_second", "max_subscribers"):
        if name in data and data[name] < 1:
            yield Problem(place("serve", name), f"{name} is {data[name]}; write 1 or more")
    for name, entry in data.get("tokens", {}).items():
        yield from (
            Problem(place(f"serve.tokens.{name}", key), text) for key, text in _check_token(entry)
        )
    yield from _check_exposed(data, place)


def _check_exposed(data: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    host = data.get("host", ServeSettings.host)
    if is_loopback(host):
        return
    if not data.get("tokens") and "tls_client_ca" not in data:
        yield Problem(
            place("serve", "host"),
            f"host {host} is reached from other machines, so permission is needed: add "
            f'[serve.tokens.NAME] with role = "read" and token = "${{VARIABLE}}", or set '
            f"tls_client_ca",
        )
    if "tls_certificate" not in data and not data.get("plaintext", False):
        yield Problem(
            place("serve", "host"),
            f"host {host} is reached from other machines, and without TLS tokens can be read on "
            f"the way: set tls_certificate and tls_key. If something in front of the engine does "
            f"TLS, write plaintext = true.",
        )


def _check_token(entry: object) -> Iterator[tuple[str, str]]:
    """Yield the setting and what is wrong with it."""
    if not isinstance(entry, dict):
        yield "", 'a token is a section of its own: [serve.tokens.NAME] with role = "read"'
        return
    for key in entry:
        if key not in _TOKEN_KEYS:
            yield key, f"a token has no setting {key!r}; there are: {', '.join(_TOKEN_KEYS)}"
    if entry.get("role") not in ROLES:
        yield "role", _no_role(entry.get("role"))
    token = entry.get("token")
    if not isinstance(token, str):
        yield "token", 'token is missing; write token = "${VARIABLE}"'
        return
    if missing := [name for name in VARIABLE.findall(token) if name not in os.environ]:
        yield "token", f"token: the environment has no {missing[0]}; set it"
    elif len(_text(token)) < MIN_TOKEN:
        yield (
            "token",
            f"token has fewer than {MIN_TOKEN} characters and can be guessed; make one with "
            f"`python -c 'import secrets; print(secrets.token_urlsafe(32))'`",
        )
    expires = entry.get("expires")
    if expires is not None and not isinstance(expires, date):
        yield "expires", f"expires takes a date or a time, not {expires!r}: 2027-01-01T00:00:00Z"


def _no_role(role: object) -> str:
    return f"the role {role!r} is not known; write one of: {', '.join(ROLES)}"


def _text(token: str) -> str:
    return str(FromEnvironment(token))


def _expires_us(expires: date | None) -> int | None:
    if expires is None:
        return None
    if not isinstance(expires, datetime):
        expires = datetime(expires.year, expires.month, expires.day)
    if expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return round(expires.timestamp() * 1_000_000)
