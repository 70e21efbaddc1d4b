"""Address and token of an engine: from arguments, the environment, or the folder of a project."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import Unreachable, UsageError

__all__ = ["TOKEN_VARIABLE", "URL_VARIABLE", "Address", "address_of", "address_of_project"]

URL_VARIABLE = "HEADRACE_URL"
TOKEN_VARIABLE = "HEADRACE_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class Address:
    """Where an engine answers; the token is not shown where the value is printed."""

    url: str
    token: str = field(default="", repr=False)

    @property
    def socket_url(self) -> str:
        """The same for WebSockets."""
        return f"ws{self.url.removeprefix('http')}"

    @property
    def headers(self) -> dict[str, str]:
        """What says who asks."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def address_of(url: str | None, token: str | None) -> Address:
    """Return the address from arguments or, without, from the environment. UsageError."""
    found = url or os.environ.get(URL_VARIABLE, "")
    if not found:
        raise UsageError(
            f"the address of the engine is missing: give url=, set {URL_VARIABLE}, or use "
            f"Client.of_project(FOLDER) on the machine where it runs"
        )
    if not found.startswith(("http://", "https://")):
        raise UsageError(f"{found!r} is no address of an engine; write http://HOST:PORT")
    known = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    return Address(found.rstrip("/"), known)


def address_of_project(folder: str | os.PathLike[str]) -> Address:
    """Return the address of the engine that serves a project now. Unreachable: none does.

    An address that a dead engine left is not taken: its port may be another program's by now, which
    would be sent the token.
    """
    # Not above: other systems lack the lock, and can use the client by address.
    from headrace.project.lock import address_of_holder, lock_holder

    runtime = Path(folder) / ".headrace"
    try:
        holder = lock_holder(runtime)
        found = None if holder is None else address_of_holder(runtime, holder)
    except (OSError, ValueError, TypeError) as error:
        raise Unreachable(
            f"{folder}: the address of the engine cannot be read: {error}; give url= and token="
        ) from error
    if holder is None:
        raise Unreachable(f"{folder}: no engine serves this project; start one with `headrace run`")
    if found is None:
        raise Unreachable(
            f"{folder}: the engine (pid {holder.pid}, since {holder.started}) is still starting; "
            f"ask again in a moment"
        )
    return Address(found.url, found.token)
